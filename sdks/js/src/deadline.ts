/**
 * A promise that ends: by its answer, its deadline or its caller's signal.
 *
 * Owns the timer and the abort listener of one call, and letting go of both when it is settled.
 *
 * @module
 */

import { onAbort } from './abort.js';
import { RequestTimeoutError } from './errors.js';
import { after } from './timer.js';

/** What a call is and how long it may take. */
export interface Limits {
  /** For the text of a timeout, for example `enqueue`. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** One call under way. */
export class Deadline<T> {
  readonly promise: Promise<T>;
  settled = false;
  /** Called when the call is given up, before its promise rejects. */
  onGiveUp: (() => void) | undefined;
  /** Called once, however it ended. */
  onSettled: (() => void) | undefined;
  /** Called when time is up, instead of rejecting. */
  onTimeout: ((error: RequestTimeoutError) => void) | undefined;
  #resolve!: (value: T) => void;
  #reject!: (reason: unknown) => void;
  readonly #limits: Limits;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #unwatch: (() => void) | undefined;

  /** Throws the signal's reason when it was aborted before. `where` completes a timeout's text. */
  constructor(limits: Limits, where: () => string) {
    const { signal, timeoutMs } = limits;
    signal?.throwIfAborted();
    this.#limits = limits;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (timeoutMs !== Infinity) {
      this.#timer = after(timeoutMs, () => {
        this.#timeOut(where());
      });
    }
    if (signal !== undefined) {
      this.#unwatch = onAbort(signal, () => {
        this.#giveUp(signal.reason);
      });
    }
  }

  resolve(value: T): void {
    if (this.settled) return;
    this.#end();
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    if (this.settled) return;
    this.#end();
    this.#reject(reason);
  }

  #timeOut(where: string): void {
    const { what, timeoutMs } = this.#limits;
    const error = new RequestTimeoutError(`${what}: no answer within ${timeoutMs} ms; ${where}`);
    if (this.onTimeout === undefined) this.#giveUp(error);
    else this.onTimeout(error);
  }

  #giveUp(reason: unknown): void {
    if (this.settled) return;
    this.onGiveUp?.();
    this.reject(reason);
  }

  #end(): void {
    this.settled = true;
    clearTimeout(this.#timer);
    this.#unwatch?.();
    this.onSettled?.();
  }
}
