/**
 * A subscription to a queue, read as an async iterable.
 *
 * Owns waiting for messages. What arrives and what becomes of lost connections is the stream's part.
 *
 * @module
 */

import { onAbort } from './abort.js';
import type { Message } from './message.js';
import type { Stream } from './stream.js';
import { after } from './timer.js';

/** Options of {@link Client.consume}. */
export interface ConsumeOptions {
  /** How many messages may be here unsettled at a time. Default 256. */
  readonly prefetch?: number | undefined;
  /**
   * Extends the leases of all it holds, read or unread, until they are settled, however long that takes.
   * Default false.
   */
  readonly heartbeat?: boolean | undefined;
  /** Closes the consumer; whoever waits for a message gets the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Consumer.receive} and {@link Consumer.receiveMany}. */
export interface ReceiveOptions {
  /** How long to wait for a message; for ever if left out. */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting; the consumer stays open. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Messages of one queue, as they come. After a lost connection it subscribes again by itself.
 *
 * @example
 * ```ts
 * for await (const message of client.consume('orders')) {
 *   await handle(message.payload);
 *   await message.ack();
 * }
 * ```
 *
 * Leaving the loop closes the consumer: what was fetched and not handed out goes back to the queue at
 * once. A stream that failed rejects; one that was closed ends. Several workers may wait for messages
 * of one consumer at the same time.
 */
export class Consumer implements AsyncIterableIterator<Message>, AsyncDisposable {
  readonly #stream: Stream;
  readonly #forget: (stream: Stream) => void;
  readonly #unwatchSignal: (() => void) | undefined;

  /** @internal */
  constructor(stream: Stream, signal: AbortSignal | undefined, forget: (stream: Stream) => void) {
    this.#stream = stream;
    this.#forget = forget;
    if (signal === undefined) return;
    this.#unwatchSignal = onAbort(signal, () => {
      stream.close(signal.reason as Error);
      this.#end();
    });
  }

  /** The queue it consumes. */
  get queue(): string {
    return this.#stream.queue;
  }

  /** It was closed, or its client was. */
  get closed(): boolean {
    return this.#stream.closed || this.#stream.error !== undefined;
  }

  /** Waits until the broker has accepted the subscription. Rejects when it refuses. */
  async ready(options: ReceiveOptions = {}): Promise<boolean> {
    const found = await this.#wait(options, () => (this.#stream.opened ? true : undefined));
    return found ?? false;
  }

  /** The next message; undefined when none came in time or the consumer is closed. */
  async receive(options: ReceiveOptions = {}): Promise<Message | undefined> {
    return this.#stream.take() ?? this.#wait(options, () => this.#stream.take());
  }

  /** Waits like `receive` for a first message and adds what else is here already. */
  async receiveMany(limit: number, options: ReceiveOptions = {}): Promise<Message[]> {
    if (!Number.isInteger(limit) || limit < 1) {
      throw new RangeError(`limit must be a positive whole number, not ${String(limit)}`);
    }
    const first = this.#stream.take() ?? (await this.#wait(options, () => this.#stream.take()));
    const messages: Message[] = [];
    for (let next = first; next !== undefined; next = this.#stream.take()) {
      messages.push(next);
      if (messages.length >= limit) break;
    }
    return messages;
  }

  /** Messages in arrays of at most `limit`: what is here already comes together. */
  async *batches(limit = 100): AsyncGenerator<Message[], void, undefined> {
    try {
      for (;;) {
        const messages = await this.receiveMany(limit);
        if (messages.length === 0) return;
        yield messages;
      }
    } finally {
      this.close();
    }
  }

  /** The next message, for `for await`. */
  async next(): Promise<IteratorResult<Message, undefined>> {
    const value = await this.receive();
    return value === undefined ? { value, done: true } : { value, done: false };
  }

  /** Closes the consumer, when a `for await` loop is left. */
  return(): Promise<IteratorResult<Message, undefined>> {
    this.close();
    return Promise.resolve({ value: undefined, done: true });
  }

  /** Itself: a consumer is read once. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Ends the subscription. What was fetched and not handed out goes back to the queue; messages already
   * handed out can still be settled.
   */
  close(): void {
    this.#stream.close();
    this.#end();
  }

  /** Closes the consumer, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  #end(): void {
    this.#unwatchSignal?.();
    this.#forget(this.#stream);
  }

  /** What `look` finds, when it finds something; undefined when nothing will or time is up. */
  #wait<T>(options: ReceiveOptions, look: () => T | undefined): Promise<T | undefined> {
    const { signal, timeoutMs } = options;
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let unwatch: (() => void) | undefined;
      const end = (): void => {
        clearTimeout(timer);
        stream.watchers.delete(check);
        unwatch?.();
      };
      const abort = (): void => {
        end();

        reject(signal?.reason);
      };
      const check = (): void => {
        const found = look();
        if (found === undefined && stream.error === undefined && !stream.closed) return;
        end();
        if (found === undefined && stream.error !== undefined) reject(stream.error);
        else resolve(found);
      };
      if (signal?.aborted) {
        abort();
        return;
      }
      stream.watchers.add(check);
      if (signal !== undefined) unwatch = onAbort(signal, abort);
      if (timeoutMs !== undefined) {
        timer = after(timeoutMs, () => {
          end();
          resolve(undefined);
        });
      }
      check();
    });
  }
}
