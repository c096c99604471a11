/**
 * How long to wait before the next attempt to connect.
 *
 * Owns the growing, jittered pause. Randomness is an argument.
 *
 * @module
 */

/** Doubling pauses between two bounds, each shortened at random by up to half. */
export class Backoff {
  /** Attempts that failed since the last success. */
  failures = 0;

  constructor(
    private readonly minMs: number,
    private readonly maxMs: number,
    private readonly random: () => number = Math.random,
  ) {}

  nextMs(): number {
    const pause = Math.min(Math.max(this.minMs, this.maxMs), this.minMs * 2 ** this.failures);
    this.failures++;
    // Many clients lose one broker at the same moment; they must not come back at one moment.
    return pause * (1 - this.random() / 2);
  }

  reset(): void {
    this.failures = 0;
  }
}
