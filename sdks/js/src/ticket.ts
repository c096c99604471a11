/**
 * The answers of a call with several items, and the runs of items it was cut into.
 *
 * Owns the results of one call until all of them are there. Knows nothing of connections.
 *
 * @module
 */

import { Buffer } from 'node:buffer';

import type { FilaError } from './errors.js';

/** An enqueued message that was stored. */
export interface Stored {
  readonly id: string;
  readonly duplicate: boolean;
  readonly error: undefined;
}

/** A message that was acknowledged, rejected or released. */
export interface Settled {
  readonly error: undefined;
}

/** An item that came to nothing, of whatever call. */
export interface Failed {
  readonly id: undefined;
  readonly duplicate: false;
  readonly error: FilaError;
}

/** What came of one item. Callers get it as it is: one object per message, made once. */
export type Outcome<T extends Stored | Settled> = T | Failed;

/** Collects one outcome per item, in the order of the items. */
export class Ticket<T extends Stored | Settled> {
  /** What the call was cut into, so that giving it up finds what was not sent. */
  readonly runs: Run[] = [];
  readonly outcomes: (Outcome<T> | undefined)[];
  #outstanding: number;
  readonly #done: (outcomes: Outcome<T>[]) => void;

  /** `done` is called once, when the last outcome is there; never for a call without items. */
  constructor(count: number, done: (outcomes: Outcome<T>[]) => void) {
    this.outcomes = new Array<Outcome<T> | undefined>(count).fill(undefined);
    this.#outstanding = count;
    this.#done = done;
  }

  /** Something is known of at least one item. */
  get hasOutcome(): boolean {
    return this.#outstanding < this.outcomes.length;
  }

  settle(index: number, outcome: Outcome<T>): void {
    if (this.outcomes[index] !== undefined) return;
    this.outcomes[index] = outcome;
    if (--this.#outstanding === 0) this.#done(this.outcomes as Outcome<T>[]);
  }

  /** Settles all that is still open with one error. */
  failRest(error: FilaError): void {
    this.outcomes.forEach((outcome, index) => {
      if (outcome === undefined) this.settle(index, failed(error));
    });
  }
}

export function failed(error: FilaError): Failed {
  return { id: undefined, duplicate: false, error };
}

/**
 * Consecutive items of one call, encoded; what batches are made of.
 *
 * A run is never taken apart on its path unless the broker refuses the frame as a whole.
 */
export interface Run {
  readonly opcode: number;
  bytes: Buffer;
  /** Where each item ends in `bytes`. */
  readonly ends: readonly number[];
  readonly queues: readonly string[];
  /** Message ids of settlements; none for enqueues. */
  readonly ids: readonly string[] | undefined;
  readonly ticket: Ticket<Stored> | Ticket<Settled>;
  /** The place of each item in the ticket. */
  readonly places: readonly number[];
  /** Every item has an idempotency key: it may be sent again when its answer was lost. */
  readonly repeatable: boolean;
  /** How often it was sent on to another node. */
  hops: number;
  /** Nobody waits for it any more: it is not sent, or not sent again. */
  dropped: boolean;
  /** Where it waits to be sent; undefined before and after. */
  outbox: { forget(run: Run): void } | undefined;
  /** Bytes that count against the client's bound. */
  readonly weight: number;
  /** What `bytes` are a part of, when no other run is: free once the broker has answered. */
  memory: Buffer | undefined;
}

/** Settles every item of a run with one error. */
export function failRun(run: Run, error: FilaError): void {
  for (const place of run.places) run.ticket.settle(place, failed(error));
}

/** Some items of a run as a run of their own. */
export function partOf(run: Run, items: readonly number[]): Run {
  const pieces = items.map((item) => run.bytes.subarray(run.ends[item - 1] ?? 0, run.ends[item]));
  let end = 0;
  const ends = pieces.map((piece) => (end += piece.length));
  const part: Run = {
    ...run,
    bytes: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, end),
    ends,
    queues: items.map((item) => run.queues[item] as string),
    ids: run.ids && items.map((item) => run.ids?.[item] as string),
    places: items.map((item) => run.places[item] as number),
    weight: run.weight === 0 ? 0 : end,
    memory: undefined,
  };
  run.ticket.runs.push(part);
  return part;
}

/** A run as one run per queue, in the order in which the queues first appear. */
export function perQueue(run: Run): Run[] {
  const first = run.queues[0];
  if (run.queues.every((queue) => queue === first)) return [run];
  const items = new Map<string, number[]>();
  run.queues.forEach((queue, item) => {
    const found = items.get(queue);
    if (found === undefined) items.set(queue, [item]);
    else found.push(item);
  });
  return [...items.values()].map((chosen) => partOf(run, chosen));
}
