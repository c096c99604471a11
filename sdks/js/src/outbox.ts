/**
 * What producers and consumers hand in, from call to answer: enqueues, acks, nacks and releases.
 *
 * Owns the collectors of one connection and settling tickets when answers come. The link sends the
 * frames and tells what came back. Never touches sockets.
 *
 * @module
 */

import { Buffer } from 'node:buffer';

import { Collector } from './batch.js';
import {
  protocolError,
  refusedEnqueue,
  refusedSettlement,
  type FilaError,
  type RefusedError,
} from './errors.js';
import type { Settings } from './options.js';
import { spares } from './spares.js';
import {
  failed,
  failRun,
  partOf,
  perQueue,
  type Run,
  type Settled,
  type Stored,
  type Ticket,
} from './ticket.js';
import { Code } from './wire/catalogue.js';
import { InvalidBodyError } from './wire/codec.js';
import { Opcode } from './wire/operations.js';

/** A frame of runs, sent and not yet answered. */
export interface Flight {
  readonly opcode: number;
  readonly runs: readonly Run[];
}

const DONE: Settled = { error: undefined };

export class Outbox {
  readonly #send: (opcode: number, parts: Buffer[], flight: Flight) => void;
  readonly #landed: (run: Run) => void;
  readonly #settled: (queue: string, id: string) => void;
  readonly #enqueues: Collector;
  readonly #collectors: ReadonlyMap<number, Collector>; // by opcode
  readonly #all: readonly Collector[];

  /**
   * `landed` is told of every run that will not be sent again, however it ended; `settled` of every
   * message that was settled, before its caller is.
   */
  constructor(
    settings: Settings,
    send: (opcode: number, parts: Buffer[], flight: Flight) => void,
    landed: (run: Run) => void,
    settled: (queue: string, id: string) => void,
  ) {
    this.#send = send;
    this.#landed = landed;
    this.#settled = settled;
    const limits = {
      mode: settings.batchMode,
      maxMessages: settings.maxBatchMessages,
      maxBytes: settings.maxBatchBytes,
      lingerMs: settings.lingerMs,
    };
    // Lingering would only keep leases longer than needed.
    const prompt = { ...limits, mode: limits.mode === 'linger' ? 'auto' : limits.mode } as const;
    this.#enqueues = new Collector(limits);
    this.#collectors = new Map([
      [Opcode.Ack, new Collector(prompt)],
      [Opcode.Nack, new Collector(prompt)],
      [Opcode.Release, new Collector(prompt)],
      // One collector for both forms, so that a producer's messages stay in order.
      [Opcode.Enqueue, this.#enqueues],
      [Opcode.EnqueueWith, this.#enqueues],
    ]);
    this.#all = [...new Set(this.#collectors.values())];
  }

  add(run: Run, now: number): void {
    run.outbox = this;
    this.#collectorOf(run.opcode).add(run, now);
  }

  /** What an abandoned call has not sent yet never will be. */
  forget(run: Run): void {
    run.outbox = undefined;
    run.dropped = true;
    this.#collectorOf(run.opcode).forget(run);
    this.#landed(run);
  }

  /** Makes frames of what has been collected, as far as it is time for them. */
  pump(now: number): void {
    for (const collector of this.#all) {
      for (let runs = collector.takeDue(now); runs; runs = collector.takeDue(now)) {
        this.#sendRuns(runs);
      }
    }
  }

  /** When a lingering batch is due. */
  get dueAt(): number | undefined {
    return this.#enqueues.dueAt;
  }

  /** Settles a frame's items. Throws when the answer does not fit the question. */
  answered(flight: Flight, body: Buffer): void {
    if (flight.opcode === Opcode.Enqueue || flight.opcode === Opcode.EnqueueWith) {
      settleEnqueues(flight, body);
    } else {
      settleSettlements(flight, body, this.#settled);
    }
    this.#collectorOf(flight.opcode).framesInFlight--;
    for (const run of flight.runs) {
      // The broker has read all of it.
      if (run.memory !== undefined) spares.give(run.memory);
      run.memory = undefined;
      this.#landed(run);
    }
  }

  /** A frame came to nothing. */
  failed(flight: Flight, error: FilaError): void {
    this.#collectorOf(flight.opcode).framesInFlight--;
    for (const run of flight.runs) {
      failRun(run, error);
      this.#landed(run);
    }
  }

  /** The broker refused the frame as a whole; nothing of it counted. */
  refused(flight: Flight, error: RefusedError): void {
    const apart = separated(flight.runs, error);
    if (apart === undefined) {
      this.failed(flight, error);
      return;
    }
    this.#collectorOf(flight.opcode).framesInFlight--;
    // One caller's mistake must not cost the others who shared the frame.
    for (const runs of apart) this.#sendRuns(runs);
  }

  /** Takes a frame out of the books without settling it: its runs go elsewhere. */
  withdrawn(flight: Flight): readonly Run[] {
    this.#collectorOf(flight.opcode).framesInFlight--;
    return flight.runs;
  }

  /** No answer will come: what is safe to send again waits for its turn, the rest fails. */
  lost(flights: readonly Flight[], error: FilaError): void {
    for (const flight of flights.toReversed()) {
      const collector = this.#collectorOf(flight.opcode);
      collector.framesInFlight--;
      const again = flight.runs.filter((run) => run.repeatable && !run.dropped);
      for (const run of again) run.outbox = this;
      collector.putBack(again);
      for (const run of flight.runs) {
        if (run.outbox !== undefined) continue;
        failRun(run, error);
        this.#landed(run);
      }
    }
  }

  /** Everything that was not sent. */
  takeWaiting(): Run[] {
    const waiting = this.#all.flatMap((collector) => collector.takeAll());
    for (const run of waiting) run.outbox = undefined;
    return waiting;
  }

  #sendRuns(runs: readonly Run[]): void {
    const [first] = runs as [Run, ...Run[]];
    for (const run of runs) run.outbox = undefined;
    this.#collectorOf(first.opcode).framesInFlight++;
    const count = Buffer.allocUnsafe(4);
    count.writeUInt32BE(runs.reduce((sum, run) => sum + run.places.length, 0));
    const parts = [count, ...runs.map((run) => run.bytes)];
    this.#send(first.opcode, parts, { opcode: first.opcode, runs });
  }

  #collectorOf(opcode: number): Collector {
    return this.#collectors.get(opcode) as Collector;
  }
}

/**
 * A frame that was refused as a whole, as smaller ones: per queue, else halves. Undefined when it
 * cannot be told apart any further, or when trying again apart would not help.
 */
function separated(runs: readonly Run[], error: RefusedError): Run[][] | undefined {
  const { wireCode } = error;
  const ofOneItem = wireCode === Code.Forbidden || wireCode === Code.InvalidFrame;
  if (!ofOneItem && wireCode !== Code.NotLeader) return undefined;
  const byQueue = new Map<string, Run[]>();
  for (const run of runs.flatMap(perQueue)) {
    const queue = run.queues[0] as string;
    byQueue.set(queue, [...(byQueue.get(queue) ?? []), run]);
  }
  if (byQueue.size > 1) return [...byQueue.values()];
  return ofOneItem ? halves(runs) : undefined;
}

function halves(runs: readonly Run[]): Run[][] | undefined {
  if (runs.length > 1) {
    const middle = runs.length >> 1;
    return [runs.slice(0, middle), runs.slice(middle)];
  }
  const [only] = runs as [Run];
  if (only.places.length === 1) return undefined;
  const items = only.places.map((_, item) => item);
  const middle = items.length >> 1;
  return [[partOf(only, items.slice(0, middle))], [partOf(only, items.slice(middle))]];
}

/** The queue of all items of a frame, or undefined when there are several. */
export function onlyQueueOf(flight: Flight): string | undefined {
  const first = flight.runs[0]?.queues[0];
  const same = flight.runs.every((run) => run.queues.every((queue) => queue === first));
  return same ? first : undefined;
}

function settleEnqueues(flight: Flight, body: Buffer): void {
  const withOptions = flight.opcode === Opcode.EnqueueWith;
  let at = checkCount(flight, body);
  for (const run of flight.runs) {
    const ticket = run.ticket as Ticket<Stored>;
    for (let item = 0; item < run.places.length; item++) {
      if (at + 3 > body.length) throw endsEarly();
      const code = body.readUInt8(at);
      const idEnd = at + 3 + body.readUInt16BE(at + 1);
      const end = withOptions ? idEnd + 1 : idEnd;
      if (end > body.length) throw endsEarly();
      const place = run.places[item] as number;
      if (code === Code.Ok) {
        const id = body.toString('latin1', at + 3, idEnd);
        const duplicate = withOptions && body[idEnd] === 1;
        ticket.settle(place, { id, duplicate, error: undefined });
      } else {
        ticket.settle(place, failed(refusedEnqueue(code, run.queues[item] as string)));
      }
      at = end;
    }
  }
}

function settleSettlements(
  flight: Flight,
  body: Buffer,
  settled: (queue: string, id: string) => void,
): void {
  let at = checkCount(flight, body);
  for (const run of flight.runs) {
    const ticket = run.ticket as Ticket<Settled>;
    for (let item = 0; item < run.places.length; item++) {
      if (at >= body.length) throw endsEarly();
      const code = body.readUInt8(at++);
      const queue = run.queues[item] as string;
      const id = run.ids?.[item] as string;
      if (code === Code.Ok) settled(queue, id);
      const outcome = code === Code.Ok ? DONE : failed(refusedSettlement(code, queue, id));
      ticket.settle(run.places[item] as number, outcome);
    }
  }
}

function checkCount(flight: Flight, body: Buffer): number {
  if (body.length < 4) throw endsEarly();
  const answers = body.readUInt32BE(0);
  const items = flight.runs.reduce((sum, run) => sum + run.places.length, 0);
  if (answers !== items) {
    throw protocolError(`the broker sent ${answers} results for ${items} items`);
  }
  return 4;
}

function endsEarly(): InvalidBodyError {
  return new InvalidBodyError('results', 'the body ends early');
}
