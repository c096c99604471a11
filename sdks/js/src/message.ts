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
import { endOfText, TAIL_BYTES, textAt } from './wire/delivery.js';

/** Who settles a message: the client, over the connection it came by. */
export interface Settler {
  settle(
    verb: 'ack' | 'nack' | 'release',
    message: Message,
    error: string | undefined,
    options: CallOptions | undefined,
  ): Promise<void>;

  extend(message: Message, visibilityMs: number, options: CallOptions | undefined): Promise<void>;
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
  readonly #at: number;
  readonly #payload: number;
  readonly #end: number;
  #headers: Headers | undefined;

  /** @internal */
  constructor(
    settler: Settler,
    body: Buffer,
    at: number,
    payload: number,
    end: number,
    queue: string,
  ) {
    this.#settler = settler;
    this.#body = body;
    this.#at = at;
    this.#payload = payload;
    this.#end = end;
    this.id = textAt(body, at, 'latin1');
    this.queue = queue;
  }

  /** Headers as they were enqueued. */
  get headers(): Headers {
    return (this.#headers ??= readHeaders(
      this.#body,
      endOfText(this.#body, endOfText(this.#body, this.#at)),
    ));
  }

  /** The content's bytes. */
  get payload(): Uint8Array {
    const start = this.#body.byteOffset + this.#payload + 4;
    return new Uint8Array(this.#body.buffer, start, this.#payloadBytes);
  }

  /** The content as UTF-8 text. */
  text(): string {
    return this.#body.toString('utf8', this.#payload + 4, this.#fairnessKeyAt);
  }

  /** The content parsed as JSON; throws `SyntaxError` when it is none. */
  json<T = unknown>(): T {
    return JSON.parse(this.text()) as T;
  }

  /** Whose message it is. */
  get fairnessKey(): string {
    return textAt(this.#body, this.#fairnessKeyAt);
  }

  /** The weight of its fairness key. */
  get weight(): number {
    return this.#body.readUInt32BE(endOfText(this.#body, this.#fairnessKeyAt));
  }

  /** The names under which it is rate limited. */
  get throttleKeys(): readonly string[] {
    let at = endOfText(this.#body, this.#fairnessKeyAt) + 4;
    const count = this.#body.readUInt16BE(at);
    at += 2;
    return Array.from({ length: count }, () => {
      const key = textAt(this.#body, at);
      at = endOfText(this.#body, at);
      return key;
    });
  }

  /** How often it failed before: 0 at the first delivery. */
  get attemptCount(): number {
    return this.#body.readUInt32BE(this.#end - TAIL_BYTES);
  }

  /** When it was enqueued, in milliseconds since 1970. */
  get enqueuedAtMs(): number {
    return Number(this.#body.readBigUInt64BE(this.#end - 16));
  }

  /** When it was leased to this consumer, in milliseconds since 1970. */
  get leasedAtMs(): number {
    return Number(this.#body.readBigUInt64BE(this.#end - 8));
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

  /** Failed: the queue's `on_failure` hook sees `error`, 4,096 characters of it at most, and decides. */
  nack(error = '', options?: CallOptions): Promise<void> {
    return this.#settler.settle('nack', this, error, options);
  }

  /** Hands it back at once, to its old place and without a counted attempt. */
  release(options?: CallOptions): Promise<void> {
    return this.#settler.settle('release', this, undefined, options);
  }

  /** Lets its lease end `visibilityMs` from now; 0 means the queue's timeout. */
  extend(visibilityMs = 0, options?: CallOptions): Promise<void> {
    return this.#settler.extend(this, visibilityMs, options);
  }

  /** What ends up in logs: no payload, no header values. */
  toJSON(): Record<string, unknown> {
    return {
      id: this.id,
      queue: this.queue,
      fairnessKey: this.fairnessKey,
      attemptCount: this.attemptCount,
      payloadBytes: this.#payloadBytes,
    };
  }

  get #payloadBytes(): number {
    return this.#body.readUInt32BE(this.#payload);
  }

  get #fairnessKeyAt(): number {
    return this.#payload + 4 + this.#payloadBytes;
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
    const name = textAt(body, at);
    at = endOfText(body, at);
    setOwn(headers, name, textAt(body, at));
    at = endOfText(body, at);
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
