/**
 * The bound on bytes under way.
 *
 * Owns the count of a client's unanswered bytes and the line of runs that wait for room. The bound
 * holds over all connections of a client. What was given up does not wait for room with its bytes.
 *
 * @module
 */

import { Deque } from './deque.js';
import type { Run } from './ticket.js';

export class Room {
  #used = 0;
  readonly #waiting = new Deque<Run>();
  #gone = 0; // runs that were given up and are still in line
  readonly #max: number;
  readonly #admit: (run: Run) => void;

  /** `admit` is called with each run when there is room for it, in order. */
  constructor(max: number, admit: (run: Run) => void) {
    this.#max = max;
    this.#admit = admit;
  }

  enter(run: Run): void {
    if (run.weight > 0 && (this.#waiting.length > 0 || !this.#fits(run))) {
      run.outbox = this;
      this.#waiting.push(run);
    } else {
      this.#used += run.weight;
      this.#admit(run);
    }
  }

  /** A run that had entered is answered or given up. */
  leave(run: Run): void {
    this.#used -= run.weight;
    this.#admitNext();
  }

  /** A run that waits is given up. */
  forget(run: Run): void {
    run.outbox = undefined;
    run.dropped = true;
    this.#gone++;
    // Its memory goes with that of others like it, when they are half of the line.
    if (this.#gone * 2 >= this.#waiting.length) {
      this.#gone = 0;
      this.#waiting.filter((one) => !one.dropped);
    }
    this.#admitNext();
  }

  /** Everything that waits, leaving nothing. */
  takeWaiting(): Run[] {
    this.#gone = 0;
    const waiting = this.#waiting.takeAll().filter((run) => !run.dropped);
    for (const run of waiting) run.outbox = undefined;
    return waiting;
  }

  #admitNext(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (!next.dropped && !this.#fits(next)) break;
      this.#waiting.shift();
      if (next.dropped) {
        this.#gone--;
        continue;
      }
      next.outbox = undefined;
      this.#used += next.weight;
      this.#admit(next);
    }
  }

  /** A run larger than the bound goes when it is alone. */
  #fits(run: Run): boolean {
    return this.#used === 0 || this.#used + run.weight <= this.#max;
  }
}
