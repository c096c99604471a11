/**
 * The bound on bytes under way.
 *
 * Owns the count of a client's unanswered bytes and the line of runs that wait for room. The bound
 * holds over all connections of a client.
 *
 * @module
 */

import { Deque } from './deque.js';
import type { Run } from './ticket.js';

export class Room {
  #used = 0;
  readonly #waiting = new Deque<Run>();
  readonly #max: number;
  readonly #admit: (run: Run) => void;

  /** `admit` is called with each run when there is room for it, in order. */
  constructor(max: number, admit: (run: Run) => void) {
    this.#max = max;
    this.#admit = admit;
  }

  enter(run: Run): void {
    if (run.weight > 0 && (this.#waiting.length > 0 || !this.#fits(run))) {
      this.#waiting.push(run);
    } else {
      this.#used += run.weight;
      this.#admit(run);
    }
  }

  /** A run that had entered is answered or given up. */
  leave(run: Run): void {
    this.#used -= run.weight;
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (!next.dropped && !this.#fits(next)) break;
      this.#waiting.shift();
      if (next.dropped) continue;
      this.#used += next.weight;
      this.#admit(next);
    }
  }

  /** Everything that waits, leaving nothing. */
  takeWaiting(): Run[] {
    return this.#waiting.takeAll().filter((run) => !run.dropped);
  }

  /** A run larger than the bound goes when it is alone. */
  #fits(run: Run): boolean {
    return this.#used === 0 || this.#used + run.weight <= this.#max;
  }
}
