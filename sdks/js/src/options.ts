/**
 * What a user may set on a client, with every default and limit.
 *
 * Owns names, defaults and validation. Reads no environment and no files.
 *
 * @module
 */

import type { LogEntry } from './events.js';

/** How calls made at the same time share frames; see {@link ClientOptions.batchMode}. */
export type BatchMode = 'auto' | 'linger' | 'disabled';

/** Options of a client. Times are in milliseconds. */
export interface ClientOptions {
  /** Sent with the handshake, where the broker has authentication on. */
  readonly apiKey?: string | undefined;

  /** Use TLS and trust the system's certificates. Any of the three below switches it on. */
  readonly tls?: boolean | undefined;
  /** Certificates to trust instead of the system's: PEM text or bytes, not a path. */
  readonly caCert?: string | Uint8Array | undefined;
  /** The client's own certificate in PEM, with {@link clientKey}. */
  readonly clientCert?: string | Uint8Array | undefined;
  /** The key of {@link clientCert} in PEM. */
  readonly clientKey?: string | Uint8Array | undefined;

  /** Default deadline of every call; `Infinity` waits for ever. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** For opening a connection, TLS and handshake included. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;

  /**
   * How enqueues share frames.
   *
   * - `auto` (default): calls of one turn of the event loop leave together, and while an answer is on
   *   its way further calls are collected until it comes or a hundred are there. No call waits for
   *   company.
   * - `linger`: calls are collected for {@link lingerMs} or until the batch is full.
   * - `disabled`: one frame per call.
   *
   * Acks, nacks and releases are batched likewise, never lingering.
   */
  readonly batchMode?: BatchMode | undefined;
  /** How long `linger` collects. Default 5. */
  readonly lingerMs?: number | undefined;
  /** Most messages in one frame. Default 1,000. */
  readonly maxBatchMessages?: number | undefined;
  /** Most bytes in one frame; a larger message goes alone. Default 1 MiB. */
  readonly maxBatchBytes?: number | undefined;
  /** Enqueues wait while this many bytes are under way unanswered. Default 64 MiB. */
  readonly maxInFlightBytes?: number | undefined;

  /** Come back after a lost connection. Default true. */
  readonly reconnect?: boolean | undefined;
  /** Pauses between attempts double from this… Default 50. */
  readonly reconnectMinMs?: number | undefined;
  /** …to this, each shortened at random by up to half. Default 5,000. */
  readonly reconnectMaxMs?: number | undefined;
  /** A Ping is sent after this much silence. Default 15,000. */
  readonly keepAliveIntervalMs?: number | undefined;
  /** The connection is given up when nothing comes back in this time. Default 10,000. */
  readonly keepAliveTimeoutMs?: number | undefined;

  /**
   * The current trace as a W3C `traceparent`, asked once per enqueue call. It becomes the message's
   * header `traceparent`, unless the message has one.
   */
  readonly traceparent?: (() => string | undefined) | undefined;
  /** Called with what happens to connections and consumers; never with payloads or keys. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
}

/** Options of every call. */
export interface CallOptions {
  /** Deadline of this call instead of the client's {@link ClientOptions.timeoutMs | timeoutMs}. */
  readonly timeoutMs?: number | undefined;
  /** Gives the call up: it rejects with the signal's reason, and what was not sent never will be. */
  readonly signal?: AbortSignal | undefined;
}

/** Validated options with all defaults. */
export interface Settings {
  readonly apiKey: string | undefined;
  readonly tls: boolean;
  readonly caCert: string | Uint8Array | undefined;
  readonly clientCert: string | Uint8Array | undefined;
  readonly clientKey: string | Uint8Array | undefined;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly batchMode: BatchMode;
  readonly lingerMs: number;
  readonly maxBatchMessages: number;
  readonly maxBatchBytes: number;
  readonly maxInFlightBytes: number;
  readonly reconnect: boolean;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly traceparent: (() => string | undefined) | undefined;
  readonly log: ((entry: LogEntry) => void) | undefined;
}

const DEFAULTS: Settings = {
  apiKey: undefined,
  tls: false,
  caCert: undefined,
  clientCert: undefined,
  clientKey: undefined,
  timeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  batchMode: 'auto',
  lingerMs: 5,
  maxBatchMessages: 1_000,
  maxBatchBytes: 1024 * 1024,
  maxInFlightBytes: 64 * 1024 * 1024,
  reconnect: true,
  reconnectMinMs: 50,
  reconnectMaxMs: 5_000,
  keepAliveIntervalMs: 15_000,
  keepAliveTimeoutMs: 10_000,
  traceparent: undefined,
  log: undefined,
};

const POSITIVE = [
  'timeoutMs',
  'connectTimeoutMs',
  'lingerMs',
  'maxBatchMessages',
  'maxBatchBytes',
  'maxInFlightBytes',
  'reconnectMinMs',
  'reconnectMaxMs',
  'keepAliveIntervalMs',
  'keepAliveTimeoutMs',
] as const;

export const PREFETCH_DEFAULT = 256;
const PREFETCH_MAX = 65_535;

/** Checks options and fills in what was left out. */
export function settingsOf(options: ClientOptions, addressAsksTls: boolean): Settings {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (!(name in DEFAULTS)) {
      throw new TypeError(
        `unknown option "${name}"; known are ${Object.keys(DEFAULTS).join(', ')}`,
      );
    }
    if (value !== undefined) given[name] = value;
  }
  const merged = { ...DEFAULTS, ...given };
  const files = merged.caCert ?? merged.clientCert ?? merged.clientKey;
  const settings = { ...merged, tls: merged.tls || addressAsksTls || files !== undefined };
  validate(settings, options.tls);
  return settings;
}

function validate(settings: Settings, tlsAsGiven: boolean | undefined): void {
  for (const name of POSITIVE) {
    const value: unknown = settings[name];
    if (typeof value !== 'number' || !(value > 0)) {
      throw new RangeError(`${name} must be a positive number, not ${String(value)}`);
    }
  }
  if (settings.apiKey !== undefined && typeof settings.apiKey !== 'string') {
    throw new TypeError(`apiKey must be a string, not ${typeof settings.apiKey}`);
  }
  if (!['auto', 'linger', 'disabled'].includes(settings.batchMode)) {
    const given: string = settings.batchMode;
    throw new TypeError(`batchMode must be "auto", "linger" or "disabled", not "${given}"`);
  }
  if ((settings.clientCert === undefined) !== (settings.clientKey === undefined)) {
    throw new TypeError('clientCert and clientKey belong together: give both or neither');
  }
  if (tlsAsGiven === false && settings.tls) {
    throw new TypeError('tls is false, but a certificate or an https:// address asks for TLS');
  }
  for (const name of ['caCert', 'clientCert', 'clientKey'] as const) {
    const pem = settings[name];
    if (typeof pem === 'string' && !pem.includes('-----BEGIN')) {
      throw new TypeError(`${name} must be PEM text, not a path: read the file first`);
    }
  }
}

/** Checks a consumer's prefetch. */
export function checkPrefetch(prefetch: number): number {
  if (!Number.isInteger(prefetch) || prefetch < 1 || prefetch > PREFETCH_MAX) {
    throw new RangeError(`prefetch must be from 1 to ${PREFETCH_MAX}, not ${String(prefetch)}`);
  }
  return prefetch;
}

/** Checks a call's own deadline. */
export function timeoutOf(options: CallOptions | undefined, settings: Settings): number {
  const timeoutMs = options?.timeoutMs ?? settings.timeoutMs;
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0)) {
    throw new RangeError(`timeoutMs must be positive or Infinity, not ${String(timeoutMs)}`);
  }
  return timeoutMs;
}
