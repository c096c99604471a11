// The JSON API of spec/http.md: its documents as types, requests and refusals. Owns the CSRF token.

export type Cause =
  | "earlier"
  | "retry"
  | "paused"
  | "throttled"
  | "no_consumer"
  | "own"
  | "turn"
  | "busy_own"
  | "busy_others"
  | "capped";
export type Waits = Partial<Record<Cause, number>>;
export type Points = Record<string, number[]>;

export interface Session {
  auth: boolean;
  signed_in: boolean;
  who: string;
  superadmin: boolean;
  administers_all: boolean;
  csrf: string;
  version: string;
  started_ms: number;
  now_ms: number;
}

export interface Rates {
  enqueued: number;
  delivered: number;
  acked: number;
  nacked: number;
  expired: number;
  dead_lettered: number;
  redriven: number;
}

export interface Paused {
  since_ms: number;
  by: string;
  reason: string;
}

export interface Series {
  end_ms: number;
  step_ms: number;
  points: Points;
}

/** A document has its past (`series`); an event of a stream has the newest point of it. */
export interface Timed {
  series?: Series;
  point?: Record<string, number>;
}

export interface QueueRow extends Timed {
  name: string;
  depth: number;
  in_flight: number;
  consumers: number;
  keys: number;
  throttled: number;
  dlq: { name: string; depth: number } | null;
  is_dlq: boolean;
  paused: Paused | null;
  admin: boolean;
  rates: Rates;
}

export interface Overview {
  at_ms: number;
  totals: {
    queues: number;
    depth: number;
    in_flight: number;
    consumers: number;
    connections: number;
    dlq_depth: number;
    throttled: number;
    quarantined: number;
    rates: Rates;
  };
  queues: QueueRow[];
  quarantined: { name: string; since_ms: number; cause: string }[];
}

export interface Named {
  name: string;
  ref: string;
}

export interface Bucket extends Named {
  tokens: number;
  rate: number;
  burst: number;
  waiting_lanes: number;
  waiting_messages: number;
  passed: number;
  limited: number;
}

export interface Hook {
  breaker: string;
  executions: number;
  errors: number;
  timeouts: number;
  memory: number;
  bypassed: number;
  trips: number;
  fail_mode: string;
  late: number;
  kept_out: number;
  quarantined: number;
  quarantined_keys: string[];
  strangers_kept_out: boolean;
  mean_us: number;
  memory_bytes: number;
  last_problem: string;
}

export interface ConsumerRow {
  id: string;
  connection: number;
  peer: string;
  who: string;
  prefetch: number;
  credit: number;
  in_flight: number;
  held: boolean;
  ready: boolean;
}

export interface TopKey extends Named, Timed {
  share: number;
  fair_share: number;
  ratio: number | null;
  weight: number;
  pending: number;
}

export interface QueueDocument extends Omit<QueueRow, "consumers" | "admin"> {
  at_ms: number;
  active_keys: number;
  active_weight: number;
  quantum: number;
  cost: "messages" | "bytes";
  visibility_ms: number;
  created_ms: number;
  latency_ms: { p50: number | null; p95: number | null; p99: number | null };
  waits: Waits;
  consumers: ConsumerRow[];
  consumers_total: number;
  hooks: Record<string, Hook | null>;
  buckets: Bucket[];
  top: TopKey[];
}

/** What an operator says of a key; null: what its messages say. */
export interface Override {
  weight: number | null;
  rate: number | null;
  burst: number | null;
  expires_ms: number | null;
  since_ms: number;
  by: string;
  note: string;
}

export interface KeyRow extends Named {
  pending: number;
  in_flight: number;
  throttled: number;
  weight: number;
  deficit: number;
  state: string;
  paused: Paused | null;
  override: Override | null;
  delivered: number;
  rate: number | null;
  share: number;
  fair_share: number;
  ratio: number | null;
  wait_ms: number;
  waits: Waits;
}

export interface KeysDocument {
  at_ms: number;
  queue: string;
  total: number;
  matched: number;
  offset: number;
  rows: KeyRow[];
}

export interface KeyDocument extends Timed {
  at_ms: number;
  queue: string;
  key: KeyRow;
  tracked: boolean;
  buckets: Bucket[];
  neighbours: (Named & { share: number; fair_share: number; weight: number })[];
}

export interface ErrorGroup {
  error: string;
  count: number;
  example: string;
  first_ms: number;
  last_ms: number;
  message: string;
}

export interface DeadLetters {
  at_ms: number;
  queue: string;
  dlq: string;
  depth: number;
  redriving: boolean;
  since_ms: number;
  groups: ErrorGroup[];
}

/** A message in a list: of its headers and payload the beginning. */
export interface MessageRow {
  id: string;
  at: string;
  state: string;
  key: Named;
  throttle_keys: Named[];
  weight: number;
  attempts: number;
  enqueued_ms: number;
  ready_ms: number;
  headers: Record<string, string>;
  headers_total: number;
  preview: string;
  payload_bytes: number;
}

export interface MessageList {
  queue: string;
  snapshot: string;
  messages: MessageRow[];
  looked: number;
  next: string;
}

export interface WholeMessage extends Omit<MessageRow, "preview" | "headers_total"> {
  payload: string;
}

export interface BucketList {
  at_ms: number;
  total: number;
  buckets: Bucket[];
}

export interface Setting {
  key: string;
  value: string;
}

export interface QueueVersion {
  version: number;
  at_ms: number;
  who: string;
  note: string;
  changed: string[];
}

/** What a hook would decide about a sample message. */
export interface TriedHook {
  message: number;
  hook: string;
  fairness_key?: string;
  weight?: number;
  throttle_keys?: string[];
  action?: "retry" | "dlq";
  delay_ms?: number;
  time_us: number;
  problem: string | null;
}

export interface Backup {
  name: string;
  state: string;
  at_ms: number;
  files: number;
  bytes: number;
  new_bytes: number;
  done_bytes: number;
  error: string;
}

export interface ApiKey {
  key_id: string;
  name: string;
  created_at_ms: number;
  expires_at_ms: number;
  is_superadmin: boolean;
}

export interface Permission {
  kind: string;
  pattern: string;
}

/** The parts of spec/explain.md that are shown. */
interface OfQueue {
  broker: string;
  queue: string;
}

interface OfTenant extends OfQueue {
  key: string;
}

/** What `fila pipeline run` left in the journal's directory, if it did. */
export interface Pipeline {
  journal: boolean;
  found: {
    reached_ms: number;
    minutes: number;
    queues: OfQueue[];
    fairness: (OfTenant & {
      weight: number;
      delivered: number;
      fair: number;
      ratio: number | null;
      pending: number;
    })[];
    slo: (OfTenant & {
      deliveries: number;
      slow: number;
      target: number;
      within_ms: number;
      burn_rate: number;
    })[];
    blame: (OfTenant & { waited_s: number; messages: number; by: { key: string; s: number }[] })[];
  } | null;
}

export interface Explanation {
  sentence: string;
  waiting_for?: Cause | "busy";
  age_ns?: number;
  parts_ns?: Waits;
  mostly?: Cause;
  eta_ms?: number | null;
  eta_because?: string;
  outlook?: { eta_ms: number | null; sentence: string; changes: { do: string; eta_ms: number }[] };
  served_meanwhile?: {
    messages: number;
    own: number;
    others: { key: string; messages: number; weight: number; pending: number }[];
  };
  changes?: { do: string; text: string; command: string | null; eta_ms: number | null }[];
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | undefined>;

let csrf = "";

export async function get<T>(name: string, query: Query = {}): Promise<T> {
  return (await ask("GET", pathOf(name, query))) as T;
}

export async function post<T>(name: string, fields: object): Promise<T> {
  return (await ask("POST", pathOf(name, {}), fields)) as T;
}

/** An operation of the table, by its name and with its fields (spec/operations.json). */
export function operate<T>(name: string, fields: object): Promise<T> {
  return post<T>(`operations/${name}`, fields);
}

export async function readSession(): Promise<Session> {
  return keep(await get<Session>("session"));
}

export async function signIn(secret: string): Promise<Session> {
  return keep(await post<Session>("login", { api_key: secret }));
}

export function pathOf(name: string, query: Query): string {
  const fields = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") fields.set(field, String(value));
  }
  const text = fields.toString();
  return `/api/v1/${name}${text ? `?${text}` : ""}`;
}

/** The `ref` of a key that an explanation names as text. */
export function refOf(name: string): string {
  const bytes = String.fromCharCode(...new TextEncoder().encode(name));
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function keep(session: Session): Session {
  csrf = session.csrf;
  return session;
}

async function ask(method: string, path: string, fields?: object): Promise<unknown> {
  const headers: Record<string, string> = {};
  if (fields) {
    headers["Content-Type"] = "application/json";
    if (csrf) headers["X-Fila-CSRF"] = csrf;
  }
  let response: Response;
  try {
    const body = fields ? JSON.stringify(fields) : undefined;
    response = await fetch(path, { method, headers, body, credentials: "same-origin" });
  } catch {
    throw new Refusal(0, "Unreachable", "the broker cannot be reached");
  }
  const document = await response.json().catch(() => null);
  if (!response.ok) {
    const error = document?.error ?? { code: "BadRequest", message: `status ${response.status}` };
    throw new Refusal(response.status, error.code, error.message);
  }
  return document;
}
