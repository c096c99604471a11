/**
 * Turns what a producer passes in into bytes, before anything is sent.
 *
 * Owns the checks on queue, headers, payload and options, and cutting long lists into runs that fit a
 * frame. Never touches connections.
 *
 * @module
 */

import type { Settings } from './options.js';
import { spares } from './spares.js';
import type { Run, Settled, Stored, Ticket } from './ticket.js';
import { Writer } from './wire/codec.js';
import { Opcode } from './wire/operations.js';

/** Of what a nack says: a handler's error may be of any length. */
const REASON_LENGTH_MAX = 4096;

/** Headers of a message: text to text. */
export type Headers = Readonly<Record<string, string>>;

/** A message's content; text is sent as UTF-8. */
export type Payload = Uint8Array | string;

/** How a message is stored. Without a hook on the queue, the last three say where it stands. */
export interface MessageOptions {
  /** The message becomes ready this much later; at most 366 days. */
  readonly delayMs?: number | undefined;
  /** A queue that remembers this key stores nothing and tells the first message's id. */
  readonly idempotencyKey?: string | undefined;
  /** Whose message it is. Ignored where the queue has an `on_enqueue` hook. */
  readonly fairnessKey?: string | undefined;
  /** How large the fairness key's share is. Ignored where the queue has an `on_enqueue` hook. */
  readonly weight?: number | undefined;
  /** Names under which it is rate limited. Ignored where the queue has an `on_enqueue` hook. */
  readonly throttleKeys?: readonly string[] | undefined;
  /** W3C trace context for the header `traceparent`; see {@link ClientOptions.traceparent}. */
  readonly traceparent?: string | undefined;
}

/** A message to enqueue. */
export interface NewMessage extends MessageOptions {
  readonly queue: string;
  readonly headers?: Headers | null | undefined;
  readonly payload: Payload;
}

const ITEM_OVERHEAD_BYTES = 64;

/** Messages as runs, in order; each fits one frame unless a single message does not. */
export function enqueueRuns(
  messages: readonly NewMessage[],
  ticket: Ticket<Stored>,
  settings: Settings,
): Run[] {
  const trace = settings.traceparent?.();
  const runs: Run[] = [];
  let from = 0;
  while (from < messages.length) {
    const withOptions = hasOptions(messages[from] as NewMessage);
    let size = 0;
    let to = from;
    while (to < messages.length && to - from < settings.maxBatchMessages) {
      const message = messages[to] as NewMessage;
      const bytes = sizeHint(message);
      if (
        to > from &&
        (size + bytes > settings.maxBatchBytes || !alike(messages[from] as NewMessage, message))
      ) {
        break;
      }
      size += bytes;
      to++;
    }
    runs.push(enqueueRun(messages, from, to, size, withOptions, ticket, trace));
    from = to;
  }
  ticket.runs.push(...runs);
  return runs;
}

function enqueueRun(
  messages: readonly NewMessage[],
  from: number,
  to: number,
  size: number,
  withOptions: boolean,
  ticket: Ticket<Stored>,
  trace: string | undefined,
): Run {
  const out = new Writer(spares.take(size));
  const ends: number[] = [];
  const queues: string[] = [];
  const places: number[] = [];
  let keyed = withOptions;
  for (let place = from; place < to; place++) {
    const message = messages[place] as NewMessage;
    out.string(message.queue, 'queue');
    const headers = message.headers ?? undefined;
    const traceparent = message.traceparent ?? trace;
    const own = headers !== undefined && Object.hasOwn(headers, 'traceparent');
    if (traceparent === undefined || own) out.record(headers, 'headers');
    else out.record(headers, 'headers', ['traceparent', traceparent]);
    out.bytes(message.payload, 'payload');
    if (withOptions) {
      out.u64(delayOf(message), 'delayMs');
      out.string(message.idempotencyKey ?? '', 'idempotencyKey');
      out.string(message.fairnessKey ?? '', 'fairnessKey');
      out.u32(message.weight ?? 0, 'weight');
      out.strings(message.throttleKeys ?? [], 'throttleKeys');
      keyed &&= Boolean(message.idempotencyKey);
    }
    ends.push(out.length);
    queues.push(message.queue);
    places.push(place);
  }
  return {
    opcode: withOptions ? Opcode.EnqueueWith : Opcode.Enqueue,
    bytes: out.take(),
    ends,
    queues,
    ids: undefined,
    ticket,
    places,
    repeatable: keyed,
    hops: 0,
    dropped: false,
    outbox: undefined,
    weight: out.length,
    memory: out.memory,
  };
}

/** Acks, nacks or releases of one queue as runs. `reason` is what a nack says. */
export function settlementRuns(
  opcode: number,
  queue: string,
  ids: readonly string[],
  reason: string | undefined,
  ticket: Ticket<Settled>,
  places: readonly number[],
  settings: Settings,
): Run[] {
  const runs: Run[] = [];
  const error = reason === undefined ? undefined : readable(reason);
  for (let from = 0; from < ids.length; from += settings.maxBatchMessages) {
    const chosen = ids.slice(from, from + settings.maxBatchMessages);
    const perItem = queue.length * 3 + (error?.length ?? 0) * 3 + 48;
    const out = new Writer(chosen.length * perItem);
    const ends: number[] = [];
    for (const id of chosen) {
      out.string(queue, 'queue');
      out.string(id, 'message id');
      if (error !== undefined) out.string(error, 'error');
      ends.push(out.length);
    }
    runs.push({
      opcode,
      bytes: out.take(),
      ends,
      queues: chosen.map(() => queue),
      ids: chosen,
      ticket,
      places: places.slice(from, from + settings.maxBatchMessages),
      repeatable: false,
      hops: 0,
      dropped: false,
      outbox: undefined,
      weight: 0,
      memory: undefined,
    });
  }
  ticket.runs.push(...runs);
  return runs;
}

/** A reason of a length that is pleasant to read and that can be sent, without halves of characters. */
function readable(reason: string): string {
  return (
    reason.length > REASON_LENGTH_MAX ? reason.slice(0, REASON_LENGTH_MAX) : reason
  ).toWellFormed();
}

/** Messages of one run have one form, and all of them may be sent again or none. */
function alike(one: NewMessage, other: NewMessage): boolean {
  const sameForm = hasOptions(one) === hasOptions(other);
  return sameForm && Boolean(one.idempotencyKey) === Boolean(other.idempotencyKey);
}

function hasOptions(message: NewMessage): boolean {
  return Boolean(
    message.delayMs ||
    message.idempotencyKey ||
    message.fairnessKey ||
    message.weight ||
    message.throttleKeys?.length,
  );
}

function sizeHint({ queue, headers, payload, throttleKeys }: NewMessage): number {
  if (typeof queue !== 'string') throw new TypeError(`queue must be a string, not ${typeof queue}`);
  if (typeof payload !== 'string' && !((payload as unknown) instanceof Uint8Array)) {
    throw new TypeError(`payload must be a Uint8Array or a string, not ${typeof payload}`);
  }
  let size = ITEM_OVERHEAD_BYTES + queue.length + payload.length;
  for (const name in headers) size += 4 + name.length + (headers[name]?.length ?? 0);
  if (throttleKeys !== undefined) size += 64 * throttleKeys.length;
  return size;
}

function delayOf({ delayMs = 0 }: NewMessage): bigint {
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new RangeError(`delayMs must be 0 or more, not ${String(delayMs)}`);
  }
  return BigInt(Math.ceil(delayMs));
}
