/**
 * A message as a consumer sees it.
 *
 * Owns the fields of a received message, read from the delivery's memory when they are first looked
 * at, and settling it. Never touches connections.
 *
 * @module
 */

import type { Buffer } from 'node:buffer';

import type { CallOptions } from './options.js';
import type { Headers } from './outgoing.js';
import { TAIL_BYTES, type Outline } from './wire/delivery.js';

/** Who settles a message: the client, over the connection it came by. */
export interface Settler {
  settle(
    verb: 'ack' | 'nack' | 'release',
    message: Message,
    error: string | undefined,
    options: CallOptions | undefined,
  ): Promise<void>;
}

/**
 * One delivered message. Its lease lasts for the queue's visibility timeout: settle it before.
 *
 * The payload is a view of the memory it arrived in, shared with the messages that came with it. Copy
 * it (`payload.slice()`) to keep a small one for long.
 */
export class Message {
  /** UUID as text, unique and increasing; a good key for deduplication. */
  readonly id: string;
  /** The queue's name. */
  readonly queue: string;
  readonly #settler: Settler;
  readonly #body: Buffer;
  readonly #outline: Outline;
  #headers: Headers | undefined;

  /** @internal */
  constructor(settler: Settler, body: Buffer, outline: Outline, queue: string) {
    this.#settler = settler;
    this.#body = body;
    this.#outline = outline;
    this.id = body.toString('latin1', outline.id + 2, outline.queue);
    this.queue = queue;
  }

  /** Headers as they were enqueued. */
  get headers(): Headers {
    return (this.#headers ??= readHeaders(this.#body, this.#outline.headers));
  }

  /** The content's bytes. */
  get payload(): Uint8Array {
    const start = this.#outline.payload + 4;
    const size = this.#body.readUInt32BE(this.#outline.payload);
    return new Uint8Array(this.#body.buffer, this.#body.byteOffset + start, size);
  }

  /** The content as UTF-8 text. */
  text(): string {
    const start = this.#outline.payload + 4;
    return this.#body.toString('utf8', start, this.#outline.fairnessKey);
  }

  /** The content parsed as JSON; throws `SyntaxError` when it is none. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T;
  }

  /** Whose message it is. */
  get fairnessKey(): string {
    return stringAt(this.#body, this.#outline.fairnessKey);
  }

  /** The weight of its fairness key. */
  get weight(): number {
    return this.#body.readUInt32BE(endOfString(this.#body, this.#outline.fairnessKey));
  }

  /** The names under which it is rate limited. */
  get throttleKeys(): readonly string[] {
    let at = endOfString(this.#body, this.#outline.fairnessKey) + 4;
    const count = this.#body.readUInt16BE(at);
    at += 2;
    return Array.from({ length: count }, () => {
      const key = stringAt(this.#body, at);
      at = endOfString(this.#body, at);
      return key;
    });
  }

  /** How often it failed before: 0 at the first delivery. */
  get attemptCount(): number {
    return this.#body.readUInt32BE(this.#outline.end - TAIL_BYTES);
  }

  /** When it was enqueued, in milliseconds since 1970. */
  get enqueuedAtMs(): number {
    return Number(this.#body.readBigUInt64BE(this.#outline.end - 16));
  }

  /** When it was leased to this consumer, in milliseconds since 1970. */
  get leasedAtMs(): number {
    return Number(this.#body.readBigUInt64BE(this.#outline.end - 8));
  }

  /** When it was enqueued. */
  get enqueuedAt(): Date {
    return new Date(this.enqueuedAtMs);
  }

  /** When it was leased to this consumer. */
  get leasedAt(): Date {
    return new Date(this.leasedAtMs);
  }

  /** The producer's trace context, from the header `traceparent`. */
  get traceparent(): string | undefined {
    return this.headers.traceparent;
  }

  /** Done and gone. Rejects with `MessageNotFoundError` when the lease ran out before. */
  ack(options?: CallOptions): Promise<void> {
    return this.#settler.settle('ack', this, undefined, options);
  }

  /** Failed: the queue's `on_failure` hook sees `error` and decides what happens. */
  nack(error = '', options?: CallOptions): Promise<void> {
    return this.#settler.settle('nack', this, error, options);
  }

  /** Hands it back at once, to its old place and without a counted attempt. */
  release(options?: CallOptions): Promise<void> {
    return this.#settler.settle('release', this, undefined, options);
  }

  /** What ends up in logs: no payload, no header values. */
  toJSON(): Record<string, unknown> {
    return {
      id: this.id,
      queue: this.queue,
      fairnessKey: this.fairnessKey,
      attemptCount: this.attemptCount,
      payloadBytes: this.#body.readUInt32BE(this.#outline.payload),
    };
  }

  /** @internal */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Message ${JSON.stringify(this)}`;
  }
}

function readHeaders(body: Buffer, start: number): Headers {
  const headers: Record<string, string> = {};
  let at = start + 2;
  for (let pairs = body.readUInt16BE(start); pairs > 0; pairs--) {
    const name = stringAt(body, at);
    at = endOfString(body, at);
    setOwn(headers, name, stringAt(body, at));
    at = endOfString(body, at);
  }
  return headers;
}

/** An assignment that is safe for every name, `__proto__` included. */
export function setOwn(target: Record<string, string>, name: string, value: string): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else {
    target[name] = value;
  }
}

function stringAt(body: Buffer, at: number): string {
  return body.toString('utf8', at + 2, endOfString(body, at));
}

function endOfString(body: Buffer, at: number): number {
  return at + 2 + body.readUInt16BE(at);
}
