/**
 * The conformance adapter: the runner's requests as calls of this client. It decides nothing and checks
 * nothing; what it must answer is in sdks/conformance/PROTOCOL.md.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import {
  Client,
  FilaError,
  type ClientOptions,
  type Consumer,
  type Message,
  type NewMessage,
  type Permission,
  type SettleResult,
} from '../src/index.js';
import { InvalidBodyError } from '../src/wire/index.js';
import { CODEC } from './codec.js';
import { plain, Values, type Json } from './values.js';

const PAYLOAD_SHOWN_MAX = 4096;
const LANGUAGE = 'js';
const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  }
).version;

interface Session {
  readonly client: Client;
  readonly events: string[];
  readonly lines: object[];
}

interface Subscription {
  readonly consumer: Consumer;
  readonly held: Map<string, Message>;
}

type Operation = (values: Values, signal: AbortSignal) => Promise<object> | object;

const sessions = new Map<string, Session>();
const subscriptions = new Map<string, Subscription>();
const running = new Map<number, AbortController>();
const trace = new AsyncLocalStorage<string | undefined>();

const OPERATIONS: Record<string, Operation> = {
  ...CODEC,
  hello: () => ({ protocol: 1, language: LANGUAGE, version: VERSION }),
  stats: () => {
    (globalThis as { gc?: () => void }).gc?.();
    return { rss_bytes: process.memoryUsage.rss() };
  },
  abort: (values) => {
    running.get(values.number('request'))?.abort();
    return {};
  },

  connect: async (values, signal) => {
    const lines: object[] = [];
    const client = new Client(values.text('address'), {
      ...optionsOf(values.object('options')),
      traceparent: () => trace.getStore(),
      log: ({ level, message, fields }) => {
        lines.push({ level, text: [message, ...Object.values(fields)].map(String).join(' ') });
      },
    });
    const events: string[] = [];
    for (const name of ['connected', 'disconnected', 'closed'] as const) {
      client.on(name, () => events.push(name));
    }
    sessions.set(values.text('client'), { client, events, lines });
    await client.connect({ signal });
    return {};
  },
  close: async (values) => {
    await clientOf(values).close();
    return {};
  },
  drain: async (values) => {
    await clientOf(values).drain({ timeoutMs: values.optional('timeout_ms') });
    return {};
  },
  events: (values) => ({ events: sessions.get(values.text('client'))?.events ?? [] }),
  logs: (values) => ({ lines: sessions.get(values.text('client'))?.lines ?? [] }),

  enqueue: async (values, signal) => {
    const { queue, headers, payload, ...options } = newMessage(values);
    const id = await clientOf(values).enqueue(queue, headers, payload, {
      ...options,
      timeoutMs: values.optional('timeout_ms'),
      signal,
    });
    return { message_id: id };
  },
  enqueue_many: async (values, signal) => {
    const messages = values.objects('messages').map(newMessage);
    const results = await clientOf(values).enqueueMany(messages, {
      timeoutMs: values.optional('timeout_ms'),
      signal,
    });
    return {
      results: results.map(({ id, error }) =>
        error === undefined ? { message_id: id } : { error: errorOf(error) },
      ),
    };
  },
  consume: async (values, signal) => {
    const consumer = clientOf(values).consume(values.text('queue'), {
      prefetch: values.optional('prefetch'),
      heartbeat: values.optional('heartbeat'),
    });
    subscriptions.set(values.text('consumer'), { consumer, held: new Map() });
    await consumer.ready({ signal });
    return {};
  },
  next: async (values, signal) => {
    const { consumer, held } = subscriptionOf(values);
    const max = values.number('max');
    const end = performance.now() + values.number('timeout_ms');
    const messages: Message[] = [];
    while (messages.length < max) {
      const timeoutMs = Math.max(0, end - performance.now());
      try {
        const message = await consumer.receive({ timeoutMs, signal });
        if (message === undefined) break;
        messages.push(message);
        held.set(message.id, message);
      } catch (error) {
        if (messages.length === 0) throw error;
        break;
      }
    }
    return { messages: messages.map(described), end: messages.length < max && consumer.closed };
  },
  cancel: (values) => {
    subscriptionOf(values).consumer.close();
    return {};
  },
  ack: (values, signal) => settle(values, signal, 'ack'),
  nack: (values, signal) => settle(values, signal, 'nack'),
  release: (values, signal) => settle(values, signal, 'release'),
  extend: async (values, signal) => ({ results: await extend(values, signal) }),

  create_queue: async (values, signal) => ({
    queue_id: await clientOf(values).createQueue(values.text('queue'), {
      onEnqueue: values.optional('on_enqueue'),
      onFailure: values.optional('on_failure'),
      visibilityTimeoutMs: values.optional('visibility_timeout_ms'),
      signal,
    }),
  }),
  delete_queue: async (values, signal) => {
    await clientOf(values).deleteQueue(values.text('queue'), { signal });
    return {};
  },
  list_queues: async (values, signal) => ({
    queues: plain(await clientOf(values).listQueues({ signal })),
  }),
  get_stats: async (values, signal) =>
    plain(await clientOf(values).getStats(values.text('queue'), { signal })) as object,
  set_config: async (values, signal) => {
    await clientOf(values).setConfig(values.text('key'), values.text('value'), { signal });
    return {};
  },
  get_config: async (values, signal) => ({
    value: (await clientOf(values).getConfig(values.text('key'), { signal })) ?? null,
  }),
  list_config: async (values, signal) => ({
    entries: await clientOf(values).listConfig(values.optional('prefix'), { signal }),
  }),
  redrive: async (values, signal) => ({
    redriven: await clientOf(values).redrive(values.text('queue'), values.optional('limit'), {
      signal,
    }),
  }),
  explain: async (values, signal) => ({
    document: await clientOf(values).explain(values.optional('queue'), {
      fairnessKey: values.optional('fairness_key'),
      messageId: values.optional('message_id'),
      signal,
    }),
  }),
  pause_queue: async (values, signal) => {
    const reason = values.optional<string>('reason');
    await clientOf(values).pauseQueue(values.text('queue'), reason, { signal });
    return {};
  },
  resume_queue: async (values, signal) => {
    await clientOf(values).resumeQueue(values.text('queue'), { signal });
    return {};
  },
  pause_key: async (values, signal) => {
    const [queue, key] = [values.text('queue'), values.text('fairness_key')];
    await clientOf(values).pauseKey(queue, key, values.optional('reason'), { signal });
    return {};
  },
  resume_key: async (values, signal) => {
    const [queue, key] = [values.text('queue'), values.text('fairness_key')];
    await clientOf(values).resumeKey(queue, key, { signal });
    return {};
  },
  purge: async (values, signal) => {
    const fairnessKey = values.optional<string>('fairness_key');
    return { purged: await clientOf(values).purge(values.text('queue'), { fairnessKey, signal }) };
  },
  create_api_key: async (values, signal) =>
    plain(
      await clientOf(values).createApiKey(values.text('name'), {
        expiresAtMs: values.optional('expires_at_ms'),
        isSuperadmin: values.optional('is_superadmin'),
        signal,
      }),
    ) as object,
  revoke_api_key: async (values, signal) => {
    await clientOf(values).revokeApiKey(values.text('key_id'), { signal });
    return {};
  },
  list_api_keys: async (values, signal) => ({
    keys: plain(await clientOf(values).listApiKeys({ signal })),
  }),
  set_acl: async (values, signal) => {
    const pairs = values.optional<[string, string][]>('permissions') ?? [];
    const permissions: Permission[] = pairs.map(([kind, pattern]) => ({ kind, pattern }));
    await clientOf(values).setAcl(values.text('key_id'), permissions, { signal });
    return {};
  },
  get_acl: async (values, signal) => {
    const acl = await clientOf(values).getAcl(values.text('key_id'), { signal });
    const permissions = acl.permissions.map(({ kind, pattern }) => [kind, pattern]);
    return { permissions, is_superadmin: acl.isSuperadmin };
  },
};

async function settle(
  values: Values,
  signal: AbortSignal,
  verb: 'ack' | 'nack' | 'release',
): Promise<object> {
  const ids = values.optional<string[]>('ids') ?? [];
  const error = values.optional<string>('error') ?? '';
  const results = values.has('consumer')
    ? await settleHeld(subscriptionOf(values), ids, error, signal, verb)
    : await settleById(clientOf(values), values.text('queue'), ids, error, signal, verb);
  return { results };
}

function extend(values: Values, signal: AbortSignal): Promise<object[]> {
  const ids = values.optional<string[]>('ids') ?? [];
  const visibilityMs = values.number('visibility_ms');
  if (!values.has('consumer')) {
    const call = clientOf(values).extendMany(values.text('queue'), ids, visibilityMs, { signal });
    return call.then((results) => results.map(shownResult));
  }
  const { held } = subscriptionOf(values);
  return Promise.all(
    ids.map((id) => {
      const message = held.get(id);
      if (message === undefined) throw new Error(`the consumer did not hand out ${id}`);
      return resultOf(message.extend(visibilityMs, { signal }));
    }),
  );
}

/** By the methods of the messages themselves. */
function settleHeld(
  { held }: Subscription,
  ids: readonly string[],
  error: string,
  signal: AbortSignal,
  verb: 'ack' | 'nack' | 'release',
): Promise<object[]> {
  return Promise.all(
    ids.map(async (id) => {
      const message = held.get(id);
      if (message === undefined) throw new Error(`the consumer did not hand out ${id}`);
      held.delete(id);
      return resultOf(
        verb === 'nack' ? message.nack(error, { signal }) : message[verb]({ signal }),
      );
    }),
  );
}

/** By the client: one id by the call for one, several by the call for many. */
async function settleById(
  client: Client,
  queue: string,
  ids: readonly string[],
  error: string,
  signal: AbortSignal,
  verb: 'ack' | 'nack' | 'release',
): Promise<object[]> {
  const [only] = ids;
  if (only !== undefined && ids.length === 1) {
    const call =
      verb === 'nack'
        ? client.nack(queue, only, error, { signal })
        : client[verb](queue, only, { signal });
    return [await resultOf(call)];
  }
  const results =
    verb === 'nack'
      ? await client.nackMany(queue, ids, error, { signal })
      : await client[`${verb}Many`](queue, ids, { signal });
  return results.map(shownResult);
}

function shownResult({ error }: SettleResult): object {
  return error === undefined ? {} : { error: errorOf(error) };
}

async function resultOf(call: Promise<void>): Promise<object> {
  try {
    await call;
    return {};
  } catch (error) {
    if (!(error instanceof FilaError)) throw error;
    return { error: errorOf(error) };
  }
}

function clientOf(values: Values): Client {
  const session = sessions.get(values.text('client'));
  if (session === undefined) throw new Error(`no client ${values.text('client')}`);
  return session.client;
}

function subscriptionOf(values: Values): Subscription {
  const found = subscriptions.get(values.text('consumer'));
  if (found === undefined) throw new Error(`no consumer ${values.text('consumer')}`);
  return found;
}

function optionsOf(values: Values): ClientOptions {
  const file = (name: string): string | undefined => {
    const path = values.optional<string>(name);
    return path === undefined ? undefined : readFileSync(path, 'utf8');
  };
  const batch = values.optional<string>('batch');
  return {
    tls: values.optional('tls') || undefined,
    caCert: file('ca'),
    clientCert: file('cert'),
    clientKey: file('key'),
    apiKey: values.optional('api_key'),
    timeoutMs: values.optional('timeout_ms'),
    connectTimeoutMs: values.optional('connect_timeout_ms'),
    batchMode: batch === 'off' ? 'disabled' : (batch as ClientOptions['batchMode']),
    lingerMs: values.optional('linger_ms'),
    maxInFlightBytes: values.optional('in_flight_bytes_max'),
    reconnect: values.optional('reconnect'),
    reconnectMinMs: values.optional('reconnect_pause_min_ms'),
    reconnectMaxMs: values.optional('reconnect_pause_max_ms'),
    keepAliveIntervalMs: values.optional('keepalive_interval_ms'),
    keepAliveTimeoutMs: values.optional('keepalive_timeout_ms'),
  };
}

function newMessage(values: Values): NewMessage {
  return {
    queue: values.text('queue'),
    headers: values.optional('headers'),
    payload: values.payload('payload'),
    delayMs: values.optional('delay_ms'),
    idempotencyKey: values.optional('idempotency_key'),
    fairnessKey: values.optional('fairness_key'),
    weight: values.optional('weight'),
    throttleKeys: values.optional('throttle_keys'),
  };
}

function described(message: Message): object {
  const { payload } = message;
  return {
    id: message.id,
    queue: message.queue,
    headers: message.headers,
    payload: payload.length > PAYLOAD_SHOWN_MAX ? null : Buffer.from(payload).toString('base64'),
    size: payload.length,
    sha256: createHash('sha256').update(payload).digest('hex'),
    fairness_key: message.fairnessKey,
    weight: message.weight,
    throttle_keys: message.throttleKeys,
    attempt_count: message.attemptCount,
    enqueued_at_ms: message.enqueuedAtMs,
    leased_at_ms: message.leasedAtMs,
    traceparent: message.traceparent ?? null,
  };
}

function errorOf(error: unknown): object {
  if (error instanceof FilaError) {
    const { code, message, retryable, metadata } = error;
    return { code, message, retryable, metadata };
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const code =
    error instanceof InvalidBodyError
      ? 'InvalidFrame'
      : error instanceof TypeError || error instanceof RangeError
        ? 'InvalidArgument'
        : name === 'AbortError'
          ? 'Cancelled'
          : 'Unexpected';
  if (code === 'Unexpected') console.error(error);
  return { code, message, retryable: false, metadata: {} };
}

async function answer(id: number, op: string, values: Values): Promise<object> {
  const operation = OPERATIONS[op];
  if (operation === undefined) return { id, error: { code: 'NotImplemented', message: op } };
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const traceparent = values.optional<string>('traceparent');
    return { id, ok: await trace.run(traceparent, () => operation(values, controller.signal)) };
  } catch (error) {
    return { id, error: errorOf(error) };
  } finally {
    running.delete(id);
  }
}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on('line', (line) => {
  const request = JSON.parse(line) as Record<string, Json> & { id: number; op: string };
  void answer(request.id, request.op, new Values(request)).then((response) => {
    process.stdout.write(`${JSON.stringify(response)}\n`);
  });
});
lines.on('close', () => {
  void Promise.all([...sessions.values()].map(({ client }) => client.close())).then(() => {
    process.exit(0);
  });
});
