/**
 * Collects small calls into frames: the automatic batching.
 *
 * Owns the decision when what has been collected becomes a frame. Time is an argument; sending is the
 * outbox's part. No frame belongs to a caller: whoever gives up takes only his own items out.
 *
 * - auto: at once when nothing of this kind is under way or there is enough for a frame of its own,
 *   else when an answer comes.
 * - linger: when the oldest item has waited `lingerMs` or the batch is full.
 * - disabled: one frame per call.
 *
 * @module
 */

import { Deque } from './deque.js';
import type { BatchMode } from './options.js';
import type { Run } from './ticket.js';

const ENOUGH = 100; // items that need not wait for company

/** Bounds of one frame. */
export interface BatchLimits {
  readonly mode: BatchMode;
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly lingerMs: number;
}

/** Runs of one kind (enqueues, acks, nacks or releases) waiting for their frame, in order. */
export class Collector {
  framesInFlight = 0;
  readonly #limits: BatchLimits;
  readonly #runs = new Deque<Run>();
  #messages = 0;
  #bytes = 0;
  #gone = 0; // runs that were given up and are still in line
  #oldestAt = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  add(run: Run, now: number): void {
    if (this.#messages === 0) this.#oldestAt = now;
    this.#runs.push(run);
    this.#count(run, 1);
  }

  /** Puts runs that were sent before back to where they came from. */
  putBack(runs: readonly Run[]): void {
    this.#runs.unshift(runs);
    for (const run of runs) this.#count(run, 1);
  }

  /**
   * A run that was given up counts no more. Its memory goes with that of others like it, when they are
   * half of what waits: a broker may be away for long, while calls come and give up.
   */
  forget(run: Run): void {
    this.#count(run, -1);
    this.#gone++;
    if (this.#gone * 2 < this.#runs.length) return;
    this.#gone = 0;
    this.#runs.filter((one) => !one.dropped);
  }

  /** The next frame's runs, if it is time for one. */
  takeDue(now: number): Run[] | undefined {
    if (this.#messages === 0) return undefined;
    const { mode, maxMessages, maxBytes, lingerMs } = this.#limits;
    const full = this.#messages >= maxMessages || this.#bytes >= maxBytes;
    if (!full) {
      if (mode === 'auto' && this.framesInFlight > 0 && this.#messages < ENOUGH) return undefined;
      if (mode === 'linger' && now < this.#oldestAt + lingerMs) return undefined;
    }
    return this.#take();
  }

  takeAll(): Run[] {
    this.#messages = 0;
    this.#bytes = 0;
    this.#gone = 0;
    return this.#runs.takeAll().filter((run) => !run.dropped);
  }

  /** When a lingering batch is due. */
  get dueAt(): number | undefined {
    const lingers = this.#limits.mode === 'linger' && this.#messages > 0;
    return lingers ? this.#oldestAt + this.#limits.lingerMs : undefined;
  }

  /** The longest beginning that fits one frame and has one opcode, so that order is kept. */
  #take(): Run[] | undefined {
    const { mode, maxMessages, maxBytes } = this.#limits;
    const taken: Run[] = [];
    let messages = 0;
    let bytes = 0;
    for (let run = this.#runs.peek(); run !== undefined; run = this.#runs.peek()) {
      if (run.dropped) {
        this.#runs.shift();
        this.#gone--;
        continue;
      }
      if (taken.length > 0) {
        if (mode === 'disabled' || run.opcode !== taken[0]?.opcode) break;
        if (messages + run.places.length > maxMessages) break;
        if (bytes + run.bytes.length > maxBytes) break;
      }
      this.#runs.shift();
      this.#count(run, -1);
      messages += run.places.length;
      bytes += run.bytes.length;
      taken.push(run);
    }
    return taken.length > 0 ? taken : undefined;
  }

  #count(run: Run, sign: 1 | -1): void {
    this.#messages += sign * run.places.length;
    this.#bytes += sign * run.bytes.length;
  }
}
