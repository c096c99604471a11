/**
 * One node and what is under way with it: request ids, replies, consumers.
 *
 * Owns the table of what waits for an answer. The connection below owns bytes and time, the outbox
 * beside it batching; which link a call goes over is the router's part.
 *
 * @module
 */

import type { Buffer } from 'node:buffer';

import type { Address } from './address.js';
import { Connection, type ConnectionEvents, type Surroundings } from './connection.js';
import {
  ConnectionLostError,
  NotLeaderError,
  protocolError,
  type FilaError,
  type RefusedError,
} from './errors.js';
import { onlyQueueOf, Outbox, type Flight } from './outbox.js';
import { Request } from './request.js';
import { Stream, type StreamLink } from './stream.js';
import type { Run } from './ticket.js';
import { Code } from './wire/catalogue.js';
import { encodeBody } from './wire/codec.js';
import { scanDelivery, textAt } from './wire/delivery.js';
import { Consume, Opcode, OPERATIONS, Release } from './wire/operations.js';

const RESUBSCRIBE_MS = 500;
const SWEEP_AT = 64; // requests
// The broker may well accept a moment later: no verdict on a consumer.
const TRANSIENT: readonly number[] = [Code.ChannelFull, Code.NodeNotReady, Code.NotLeader];

/** What a link that is over leaves to be done elsewhere. */
export interface Orphans {
  readonly runs: readonly Run[];
  readonly requests: readonly Request[];
  readonly streams: readonly Stream[];
}

/** What came back with NotLeader and may be tried at another node. */
export type Refused =
  | { readonly kind: 'flight'; readonly flight: Flight; readonly queue: string }
  | { readonly kind: 'request'; readonly request: Request; readonly queue: string | undefined }
  | { readonly kind: 'stream'; readonly stream: Stream; readonly queue: string };

/** Who decides about links: the router. */
export interface LinkHost extends Surroundings {
  /** Whether a link comes back to the same address after a loss. */
  comesBack(link: Link): boolean;
  opened(link: Link): void;
  /** A run will not be sent again, however it ended. */
  landed(run: Run): void;
  /** True when the host sends it elsewhere. */
  followLeader(link: Link, refused: Refused, error: NotLeaderError): boolean;
  ended(link: Link, error: FilaError, orphans: Orphans): void;
}

/** A consumer that was closed while deliveries may be on their way to it. */
class Leaving {
  constructor(
    readonly queue: string,
    readonly consumeId: number,
  ) {}
}

export class Link implements StreamLink, ConnectionEvents {
  readonly #host: LinkHost;
  readonly #connection: Connection;
  readonly #outbox: Outbox;
  #lastId = 0;
  #pending = new Map<number, Flight | Request | Stream | Leaving>();
  #requests: Request[] = []; // waiting for a connection
  #sweepAt = SWEEP_AT;
  readonly #streams = new Set<Stream>();
  readonly #againTimers = new Map<Stream, NodeJS.Timeout>();

  constructor(address: Address, host: LinkHost) {
    this.#host = host;
    this.#connection = new Connection(address, host, this);
    this.#outbox = new Outbox(host.settings, this.#sendFlight, host.landed, (queue, id) => {
      for (const stream of this.#streams) if (stream.queue === queue) stream.dropCopies(id);
    });
  }

  get address(): Address {
    return this.#connection.address;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** It was open at least once. */
  get wasOpen(): boolean {
    return this.#connection.wasOpen;
  }

  get isEnded(): boolean {
    return this.#connection.isEnded;
  }

  /** For the text of a timeout. */
  get condition(): string {
    return this.#connection.condition;
  }

  start(): void {
    this.#connection.start();
  }

  /** Ends it by its user's wish, or for a reason. */
  close(reason?: FilaError): Promise<void> {
    return this.#connection.close(reason);
  }

  // Calls.

  enqueueOrSettle(run: Run): void {
    this.#outbox.add(run, performance.now());
    this.#connection.flushSoon();
  }

  ask(request: Request): void {
    if (this.isOpen) {
      this.#sendRequest(request);
      return;
    }
    // A broker may be away for long, while requests come and are given up.
    if (this.#requests.length >= this.#sweepAt) {
      this.#requests = this.#requests.filter((one) => !one.dropped);
      this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#requests.length);
    }
    this.#requests.push(request);
  }

  subscribe(stream: Stream): void {
    stream.link = this;
    this.#streams.add(stream);
    if (this.isOpen) this.#sendConsume(stream);
  }

  /** Subscribes a stream after a pause. */
  subscribeLater(stream: Stream): void {
    stream.link = this;
    this.#streams.add(stream);
    const timer = setTimeout(() => {
      this.#againTimers.delete(stream);
      if (this.isOpen && this.#streams.has(stream)) this.#sendConsume(stream);
    }, RESUBSCRIBE_MS);
    this.#againTimers.set(stream, timer);
  }

  unsubscribe(stream: Stream): void {
    if (!this.#streams.delete(stream)) return;
    clearTimeout(this.#againTimers.get(stream));
    this.#againTimers.delete(stream);
    const { requestId } = stream;
    if (requestId === undefined || !this.isOpen) return;
    stream.requestId = undefined;
    this.#connection.send(Opcode.CancelConsume, requestId, []);
    const leaving = new Leaving(stream.queue, requestId);
    this.#pending.set(requestId, leaving); // for deliveries on their way
    const unread = stream.takeUnread().map((message) => message.id);
    this.#releaseUnread(leaving, unread);
  }

  /** What was collected and not sent, for another link. */
  takeWaiting(): Run[] {
    return this.#outbox.takeWaiting();
  }

  /** Takes a refused frame out of the books; another link sends its runs. */
  withdraw(flight: Flight): readonly Run[] {
    return this.#outbox.withdrawn(flight);
  }

  // What the connection tells.

  opened(): void {
    for (const stream of this.#streams) {
      if (!this.#againTimers.has(stream)) this.#sendConsume(stream);
    }
    for (const request of this.#requests.splice(0)) {
      if (!request.dropped) this.#sendRequest(request);
    }
    this.#host.opened(this);
  }

  pump(now: number): number | undefined {
    this.#outbox.pump(now);
    return this.#outbox.dueAt;
  }

  lost(error: FilaError): boolean {
    this.#abandonPending(error);
    for (const stream of this.#streams) stream.connectionLost();
    return this.#host.comesBack(this);
  }

  ended(error: FilaError): void {
    this.#abandonPending(error);
    for (const timer of this.#againTimers.values()) clearTimeout(timer);
    this.#againTimers.clear();
    const streams = [...this.#streams];
    this.#streams.clear();
    for (const stream of streams) {
      stream.link = undefined;
      stream.connectionLost();
    }
    const requests = this.#requests.splice(0);
    this.#host.ended(this, error, { runs: this.#outbox.takeWaiting(), requests, streams });
  }

  frame(opcode: number, requestId: number, body: Buffer): void {
    const waiting = this.#pending.get(requestId);
    if (waiting === undefined) return; // of a stream just cancelled
    if (opcode === Opcode.Delivery) {
      if (waiting instanceof Stream) waiting.push(body);
      else if (waiting instanceof Leaving) this.#releaseDelivered(waiting, body);
    } else if (waiting instanceof Leaving) {
      // Whatever was delivered before the broker heard of the cancel has come by now.
      this.#pending.delete(requestId);
      this.#pending.delete(waiting.consumeId);
    } else if (waiting instanceof Stream) {
      this.#expect(Opcode.Consume, opcode);
      waiting.accepted();
    } else {
      this.#expect(waiting.opcode, opcode);
      if (waiting instanceof Request) waiting.answered(body);
      else this.#outbox.answered(waiting, body);
      this.#pending.delete(requestId);
    }
  }

  refused(requestId: number, error: RefusedError): void {
    const waiting = this.#pending.get(requestId);
    this.#pending.delete(requestId);
    if (waiting === undefined) {
      this.#connection.complain(error);
    } else if (waiting instanceof Leaving) {
      this.#pending.delete(waiting.consumeId);
    } else if (waiting instanceof Stream) {
      this.#refuseStream(waiting, error);
    } else if (waiting instanceof Request) {
      const moved = this.#moved({ kind: 'request', request: waiting, queue: waiting.queue }, error);
      if (!moved) waiting.fail(error);
    } else {
      const queue = onlyQueueOf(waiting);
      const moved =
        queue !== undefined && this.#moved({ kind: 'flight', flight: waiting, queue }, error);
      if (!moved) this.#outbox.refused(waiting, error);
    }
  }

  /**
   * The broker answered, but what it said is lost. That is no refusal: what was asked may have been
   * carried out, and a stream is still open over there.
   */
  unreadable(requestId: number, error: RefusedError): void {
    const waiting = this.#pending.get(requestId);
    if (waiting === undefined || waiting instanceof Leaving) return;
    this.#pending.delete(requestId);
    if (waiting instanceof Stream) {
      this.#connection.send(Opcode.CancelConsume, requestId, []);
      this.#refuseStream(waiting, error);
      return;
    }
    const text = `the answer cannot be read: ${error.message}`;
    const lost = new ConnectionLostError(text, { cause: error });
    if (waiting instanceof Request) waiting.fail(lost);
    else this.#outbox.failed(waiting, lost);
  }

  #refuseStream(stream: Stream, error: RefusedError): void {
    stream.requestId = undefined;
    this.#streams.delete(stream);
    stream.link = undefined;
    if (this.#moved({ kind: 'stream', stream, queue: stream.queue }, error)) return;
    if (stream.opened && TRANSIENT.includes(error.wireCode)) this.subscribeLater(stream);
    else stream.fail(error);
  }

  #moved(refused: Refused, error: RefusedError): boolean {
    return error instanceof NotLeaderError && this.#host.followLeader(this, refused, error);
  }

  /** Of what was sent and not answered, the repeatable waits for its turn, the rest fails. */
  #abandonPending(error: FilaError): void {
    const pending = this.#pending;
    this.#pending = new Map();
    const flights: Flight[] = [];
    for (const waiting of pending.values()) {
      if (waiting instanceof Request) {
        if (waiting.repeatable && !waiting.dropped) this.#requests.push(waiting);
        else waiting.fail(error);
      } else if (!(waiting instanceof Stream) && !(waiting instanceof Leaving)) {
        flights.push(waiting);
      }
    }
    this.#outbox.lost(flights, error);
  }

  #expect(asked: number, answered: number): void {
    if (OPERATIONS.get(asked)?.reply === answered) return;
    const nameOf = (opcode: number): string => OPERATIONS.get(opcode)?.name ?? String(opcode);
    const text = `${this.address.text} answered ${nameOf(asked)} with ${nameOf(answered)}`;
    throw protocolError(text);
  }

  readonly #sendFlight = (opcode: number, parts: Buffer[], flight: Flight): void => {
    const requestId = this.#nextId();
    this.#pending.set(requestId, flight);
    this.#connection.send(opcode, requestId, parts);
  };

  #sendRequest(request: Request): void {
    const requestId = this.#nextId();
    this.#pending.set(requestId, request);
    this.#connection.send(request.opcode, requestId, [request.body]);
  }

  #sendConsume(stream: Stream): void {
    const requestId = this.#nextId();
    stream.requestId = requestId;
    this.#pending.set(requestId, stream);
    const { queue, prefetch } = stream;
    this.#connection.send(Opcode.Consume, requestId, [encodeBody(Consume, { queue, prefetch })]);
  }

  #releaseDelivered(leaving: Leaving, body: Buffer): void {
    const ids: string[] = [];
    scanDelivery(body, (at) => ids.push(textAt(body, at, 'latin1')));
    this.#releaseUnread(leaving, ids);
  }

  /**
   * Hands back what a closed consumer was sent and nobody read. Sent also with nothing in it: its
   * answer tells that no delivery is on its way any more.
   */
  #releaseUnread(leaving: Leaving, ids: readonly string[]): void {
    const messages = ids.map((id) => ({ queue: leaving.queue, id }));
    const requestId = this.#nextId();
    this.#pending.set(requestId, leaving);
    this.#connection.send(Opcode.Release, requestId, [encodeBody(Release, { messages })]);
  }

  /** Never an id that is in use: a stream may live for more than 2^32 requests. */
  #nextId(): number {
    do {
      this.#lastId = (this.#lastId + 1) >>> 0;
    } while (this.#lastId === 0 || this.#pending.has(this.#lastId));
    return this.#lastId;
  }
}
