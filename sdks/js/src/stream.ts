/**
 * A consumer's stream: what was delivered and not yet read.
 *
 * Owns the bounded buffer between the connection and the reader, those who wait for a message, and
 * which messages are in the reader's hands. Outlives connections: the link subscribes it again.
 *
 * @module
 */

import { Buffer } from 'node:buffer';

import { Deque } from './deque.js';
import type { FilaError } from './errors.js';
import { Message, type Settler } from './message.js';
import type { CallOptions } from './options.js';
import { endOfText, scanDelivery, textAt } from './wire/delivery.js';

/** What a stream needs of its connection. */
export interface StreamLink {
  unsubscribe(stream: Stream): void;
}

type Verb = 'ack' | 'nack' | 'release';
type Settle = (
  stream: Stream,
  verb: Verb,
  message: Message,
  error: string | undefined,
  options: CallOptions | undefined,
) => Promise<void>;

type Extend = (
  message: Message,
  visibilityMs: number,
  options: CallOptions | undefined,
) => Promise<void>;

export class Stream implements Settler {
  link: StreamLink | undefined;
  /** Of its Consume on the present connection. */
  requestId: number | undefined;
  /** The broker accepted it once: what happens to its connection since is the client's business. */
  opened = false;
  /** Why no more comes. */
  error: Error | undefined;
  closed = false;
  /** Sent on from node to node so often without success. */
  hops = 0;
  /** Called at every change somebody may wait for. */
  readonly watchers = new Set<() => void>();
  readonly #buffer = new Deque<Message>();
  /** How often each message that was delivered before is in the buffer, by id. */
  readonly #again = new Map<string, number>();
  /** What was handed out and is not settled: each id with the beat before it was. */
  readonly #inHand = new Map<string, number>();
  #beats = 0;
  #lingers = false; // what is in hand may still be settled after the end
  readonly #queueBytes: Buffer; // as a delivery names it
  readonly #settle: Settle;

  constructor(
    readonly queue: string,
    readonly prefetch: number,
    settle: Settle,
    readonly extend: Extend,
  ) {
    this.#settle = settle;
    const size = Buffer.byteLength(queue);
    this.#queueBytes = Buffer.concat([Buffer.from([size >> 8, size & 0xff]), Buffer.from(queue)]);
  }

  get buffered(): number {
    return this.#buffer.length;
  }

  /** How many messages were handed out and not settled. */
  get inHand(): number {
    return this.#inHand.size;
  }

  /** Whether a heart-beat has something to extend, now or later. */
  get needsBeats(): boolean {
    const ended = this.closed || this.error !== undefined;
    return !ended || (this.#lingers && this.#inHand.size > 0);
  }

  /** Whether the client drains, and gives what is in hand time to be settled. */
  set lingers(on: boolean) {
    this.#lingers = on;
    this.notify();
  }

  /** Begins a beat. Ids of what was delivered and not settled, read or not. */
  heldIds(): string[] {
    this.#beats++;
    return [...this.#inHand.keys(), ...[...this.#buffer].map((message) => message.id)];
  }

  /** Hands the next message out. */
  take(): Message | undefined {
    const message = this.#shift();
    if (message !== undefined) {
      this.#inHand.set(message.id, this.#beats);
      if (this.#inHand.size > this.prefetch) this.#forgetOldest();
    }
    return message;
  }

  push(body: Buffer): void {
    scanDelivery(body, (at, payload, end) => {
      const queueAt = endOfText(body, at);
      const queue = this.#isOwnQueue(body, queueAt) ? this.queue : textAt(body, queueAt);
      const message = new Message(this, body, at, payload, end, queue);
      this.#buffer.push(message);
      if (message.attemptCount > 0) {
        this.#again.set(message.id, (this.#again.get(message.id) ?? 0) + 1);
      }
      // The broker sends more than the credit only when leases ran out, and the oldest unread
      // messages are those: they belong to somebody else by now.
      if (this.#buffer.length > this.prefetch) this.#shift();
    });
    this.notify();
  }

  settle(
    verb: Verb,
    message: Message,
    error: string | undefined,
    options: CallOptions | undefined,
  ): Promise<void> {
    return this.#settle(this, verb, message, error, options);
  }

  /** A message of this stream was settled, or cannot be any more. */
  settled(id: string): void {
    if (this.#inHand.delete(id) && this.#inHand.size === 0) this.notify();
  }

  /** These were not leased here when this beat was answered. What was handed out since may be. */
  forget(ids: Iterable<string>): void {
    for (const id of ids) {
      if ((this.#inHand.get(id) ?? Infinity) < this.#beats) this.settled(id);
    }
  }

  /**
   * The broker has settled a message. If its lease had run out before, it may have been delivered a
   * second time and be here unread: that copy is nobody's now.
   */
  dropCopies(id: string): void {
    if (this.#again.size > 0 && this.#again.delete(id))
      this.#buffer.filter((message) => message.id !== id);
  }

  /** What was delivered and nobody has read. */
  takeUnread(): Message[] {
    this.#again.clear();
    return this.#buffer.takeAll();
  }

  accepted(): void {
    this.opened = true;
    this.hops = 0;
    this.notify();
  }

  /**
   * What was delivered over the old connection cannot be acknowledged over a new one that consumes the
   * same queue, so it waits for its redelivery.
   */
  connectionLost(): void {
    this.takeUnread();
    this.#inHand.clear();
    this.requestId = undefined;
    this.notify();
  }

  fail(error: FilaError): void {
    if (this.error !== undefined || this.closed) return;
    // The user's own doing is no failure: readers stop, nothing is thrown.
    if (error.code === 'ClientClosed') this.closed = true;
    else this.error = error;
    this.connectionLost();
  }

  /** No more is read from it; what is in the reader's hands may still be settled. */
  close(reason?: Error): void {
    if (this.closed || this.error !== undefined) return;
    if (reason === undefined) this.closed = true;
    else this.error = reason;
    this.link?.unsubscribe(this);
    this.takeUnread();
    this.notify();
  }

  notify(): void {
    for (const watcher of [...this.watchers]) watcher();
  }

  #shift(): Message | undefined {
    const message = this.#buffer.shift();
    if (message !== undefined && message.attemptCount > 0) {
      const count = this.#again.get(message.id) ?? 0;
      if (count > 1) this.#again.set(message.id, count - 1);
      else this.#again.delete(message.id);
    }
    return message;
  }

  #forgetOldest(): void {
    const [oldest] = this.#inHand.keys();
    if (oldest !== undefined) this.#inHand.delete(oldest);
  }

  #isOwnQueue(body: Buffer, at: number): boolean {
    const name = this.#queueBytes;
    const end = at + name.length;
    return end <= body.length && body.compare(name, 0, name.length, at, end) === 0;
  }
}
