/**
 * Which node a call goes to: the home node, or the leader of its queue.
 *
 * Owns the links of a client, the routes by queue, the bound on bytes under way, and the client's end.
 * A NotLeader that names the leader is followed: the call, the queue's later calls and its consumers
 * go there, with the same TLS settings. A leader that is lost is forgotten, and what it left begins
 * again at home.
 *
 * @module
 */

import type { SecureContext } from 'node:tls';

import { parseAddress, type Address } from './address.js';
import { Deadline, type Limits } from './deadline.js';
import {
  ClientClosedError,
  ConnectionLostError,
  RefusedError,
  type FilaError,
  type NotLeaderError,
} from './errors.js';
import type { Events } from './events.js';
import { Link, type LinkHost, type Orphans, type Refused } from './link.js';
import type { Settings } from './options.js';
import type { Request } from './request.js';
import { Room } from './room.js';
import type { Stream, StreamLink } from './stream.js';
import { failRun, perQueue, type Run } from './ticket.js';
import { after } from './timer.js';

const HOPS_MAX = 5;
const HOP_PAUSE_MS = 50;

export class Router implements LinkHost {
  readonly #address: Address;
  readonly #room: Room;
  #home: Link | undefined;
  readonly #leaders = new Map<string, Link>();
  readonly #routes = new Map<string, Link>();
  readonly #streams = new Set<Stream>();
  readonly #opening = new Set<{ resolve(): void; reject(error: unknown): void }>();
  #ended: FilaError | undefined; // why no call can succeed any more
  #draining: FilaError | undefined; // why no consumer begins
  #closing: FilaError | undefined; // why no new work is taken
  #callsUnderWay = 0;
  readonly #moving = new Map<NodeJS.Timeout, () => void>(); // what waits to be sent to a leader
  readonly #idleWatchers = new Set<() => void>();

  constructor(
    address: Address,
    readonly settings: Settings,
    readonly events: Events,
    readonly secure: SecureContext | undefined,
  ) {
    this.#address = address;
    this.#room = new Room(settings.maxInFlightBytes, (run) => {
      this.#dispatch(run);
    });
  }

  get isConnected(): boolean {
    return this.#home?.isOpen ?? false;
  }

  /** Begins a call; `newWork` is refused when the client has drained. */
  begin<T>(limits: Limits, newWork: boolean): Deadline<T> {
    const refused = this.#ended ?? (newWork ? this.#closing : undefined);
    if (refused !== undefined) throw refused;
    const deadline = new Deadline<T>(limits, () => this.#home?.condition ?? 'not connected');
    this.#callsUnderWay++;
    deadline.onSettled = () => {
      this.#callsUnderWay--;
      if (this.#idleWatchers.size > 0) this.#tellIdle();
    };
    return deadline;
  }

  /** Opens the first connection; later ones are opened as they are needed. */
  connect(deadline: Deadline<undefined>): void {
    if (this.isConnected) {
      deadline.resolve(undefined);
      return;
    }
    const waiter = {
      resolve: () => {
        deadline.resolve(undefined);
      },
      reject: (error: unknown) => {
        deadline.reject(error);
      },
    };
    this.#opening.add(waiter);
    this.#homeLink();
  }

  enqueueOrSettle(runs: readonly Run[], via?: StreamLink): void {
    for (const run of runs) {
      // A message is settled over the connection it came by, unless that is gone.
      if (via instanceof Link && !via.isEnded) via.enqueueOrSettle(run);
      else this.#room.enter(run);
    }
  }

  /** What an abandoned call has not sent yet never will be. */
  giveUp(ticket: { readonly runs: readonly Run[] }): void {
    for (const run of ticket.runs) {
      run.outbox?.forget(run);
      run.dropped = true;
    }
  }

  ask(request: Request): void {
    this.#linkOf(request.queue).ask(request);
  }

  subscribe(stream: Stream): void {
    const refused = this.#ended ?? this.#draining;
    if (refused !== undefined) throw refused;
    this.#streams.add(stream);
    this.#linkOf(stream.queue).subscribe(stream);
  }

  /** A consumer was closed by its user. */
  forget(stream: Stream): void {
    if (this.#draining === undefined) this.#streams.delete(stream);
  }

  /** A message was settled by its id. */
  settled(id: string): void {
    for (const stream of this.#streams) stream.settled(id);
  }

  /**
   * Ends consumers, lets what is in hand be settled within `graceMs` and calls be answered within
   * `timeoutMs`, then closes. False when calls were still under way.
   */
  async drain(timeoutMs: number, graceMs: number): Promise<boolean> {
    this.#draining ??= new ClientClosedError(`the client for ${this.#address.text} is draining`);
    for (const stream of this.#streams) {
      stream.lingers = true;
      stream.close();
      stream.watchers.add(this.#tellIdle);
    }
    const began = performance.now();
    // Whoever handles a message may have to enqueue another before it is settled.
    await this.#within(graceMs, () => this.#nothingInHand());
    this.#closing = this.#draining;
    for (const stream of this.#streams) stream.lingers = false;
    const leftMs = timeoutMs - (performance.now() - began);
    const answered = await this.#within(leftMs, () => this.#callsUnderWay === 0);
    await this.close();
    return answered;
  }

  async close(): Promise<void> {
    const text = `the client for ${this.#address.text} is closed`;
    const first = this.#ended === undefined;
    this.#ended ??= new ClientClosedError(text);
    this.#failWaiting(this.#ended);
    const links = [...this.#leaders.values()];
    if (this.#home !== undefined) links.push(this.#home);
    await Promise.all(links.map((link) => link.close()));
    this.#failStreams(this.#ended);
    if (first) {
      this.events.log('info', 'closed', { address: this.#address.text });
      this.events.emit('closed', { reason: undefined });
    }
  }

  // What links tell.

  comesBack(link: Link): boolean {
    return link === this.#home && this.settings.reconnect && this.#ended === undefined;
  }

  readonly landed = (run: Run): void => {
    this.#room.leave(run);
  };

  opened(link: Link): void {
    if (link !== this.#home) return;
    for (const waiter of this.#opening) waiter.resolve();
    this.#opening.clear();
  }

  followLeader(link: Link, refused: Refused, error: NotLeaderError): boolean {
    const target = this.#leaderLink(error);
    if (target === undefined) return false;
    const hops = countHop(refused);
    if (hops > HOPS_MAX) {
      // A consumer that worked before goes on trying, with a pause.
      if (refused.kind === 'stream') refused.stream.hops = 0;
      return false;
    }
    if (refused.queue !== undefined) this.#routes.set(refused.queue, target);
    if (target !== link) {
      const about = {
        queue: refused.queue ?? '',
        from: link.address.text,
        to: target.address.text,
      };
      this.events.log('info', 'following the leader', about);
      this.events.emit('redirected', about);
    }
    const runs = refused.kind === 'flight' ? link.withdraw(refused.flight) : [];
    const move = (timer?: NodeJS.Timeout): void => {
      if (timer !== undefined) this.#moving.delete(timer);
      for (const run of runs) this.#dispatch(run);
      if (refused.kind === 'request') this.#askAgain(refused.request);
      if (refused.kind === 'stream') this.#subscribeAgain(refused.stream);
    };
    // The first step is taken at once; nodes that point at each other are given time to agree.
    if (hops <= 1) {
      move();
    } else {
      const timer = setTimeout(
        () => {
          move(timer);
        },
        HOP_PAUSE_MS * 2 ** hops,
      );
      this.#moving.set(timer, () => {
        move(timer);
      });
    }
    // What waits to be sent to the old node for this queue goes along.
    if (target !== link) for (const run of link.takeWaiting()) this.#dispatch(run);
    return true;
  }

  ended(link: Link, error: FilaError, orphans: Orphans): void {
    if (link === this.#home) this.#homeEnded(link, error);
    this.#leaders.delete(link.address.text);
    for (const [queue, route] of this.#routes) if (route === link) this.#routes.delete(queue);
    const lostForGood = link === this.#home || error instanceof RefusedError;
    if (link === this.#home) this.#home = undefined;
    if (lostForGood || this.#ended !== undefined) {
      this.#fail(orphans, this.#ended ?? error);
      return;
    }
    for (const run of orphans.runs) this.#dispatch(run);
    for (const request of orphans.requests) this.#askAgain(request);
    for (const stream of orphans.streams) this.#subscribeAgain(stream);
  }

  #homeEnded(link: Link, error: FilaError): void {
    for (const waiter of this.#opening) waiter.reject(this.#ended ?? error);
    this.#opening.clear();
    // A first attempt that failed may be repeated; a client that worked and was refused is over.
    if (this.#ended !== undefined || !link.wasOpen) return;
    this.#ended = error;
    this.events.log('error', 'the client is over', { address: this.#address.text, error });
    this.#failWaiting(error);
    for (const leader of [...this.#leaders.values()]) {
      const text = `connection to ${leader.address.text} given up: ${error.message}`;
      void leader.close(new ConnectionLostError(text, { cause: error }));
    }
    this.#failStreams(error);
    this.events.emit('closed', { reason: error });
  }

  /** Fails what no link has. First of all: every run that lands would let another one in. */
  #failWaiting(error: FilaError): void {
    for (const run of this.#room.takeWaiting()) failRun(run, error);
    for (const [timer, move] of this.#moving) {
      clearTimeout(timer);
      move();
    }
  }

  #failStreams(error: FilaError): void {
    for (const stream of this.#streams) stream.fail(error);
    this.#streams.clear();
  }

  #fail({ runs, requests, streams }: Orphans, error: FilaError): void {
    for (const run of runs) {
      failRun(run, error);
      this.landed(run);
    }
    for (const request of requests) request.fail(error);
    for (const stream of streams) {
      stream.fail(error);
      this.#streams.delete(stream);
    }
  }

  // Routes.

  #dispatch(run: Run): void {
    if (run.dropped || this.#ended !== undefined) {
      if (this.#ended !== undefined) failRun(run, this.#ended);
      this.landed(run);
    } else if (this.#routes.size === 0) {
      this.#homeLink().enqueueOrSettle(run);
    } else {
      for (const part of perQueue(run)) this.#linkOf(part.queues[0]).enqueueOrSettle(part);
    }
  }

  #askAgain(request: Request): void {
    if (this.#ended !== undefined) request.fail(this.#ended);
    else if (!request.dropped) this.ask(request);
  }

  #subscribeAgain(stream: Stream): void {
    if (stream.closed || stream.error !== undefined) return;
    if (this.#ended !== undefined) {
      stream.fail(this.#ended);
    } else if (stream.opened && stream.hops >= HOPS_MAX) {
      stream.hops = 0;
      this.#linkOf(stream.queue).subscribeLater(stream);
    } else {
      this.#linkOf(stream.queue).subscribe(stream);
    }
  }

  #linkOf(queue: string | undefined): Link {
    const route = queue === undefined ? undefined : this.#routes.get(queue);
    return route ?? this.#homeLink();
  }

  #homeLink(): Link {
    this.#home ??= new Link(this.#address, this);
    this.#home.start();
    return this.#home;
  }

  #leaderLink(error: NotLeaderError): Link | undefined {
    if (error.leaderAddr === undefined) return undefined;
    let address: Address;
    try {
      address = parseAddress(error.leaderAddr);
    } catch (cause) {
      this.events.log('warn', 'the leader address is no address', { error: cause });
      return undefined;
    }
    if (address.tls && this.secure === undefined) {
      this.events.log('warn', 'the leader wants TLS, which was not asked for', { error });
      return undefined;
    }
    if (address.text === this.#address.text) return this.#homeLink();
    let link = this.#leaders.get(address.text);
    if (link === undefined) {
      link = new Link(address, this);
      this.#leaders.set(address.text, link);
      link.start();
    }
    return link;
  }

  // Idleness.

  #nothingInHand(): boolean {
    for (const stream of this.#streams) if (stream.inHand > 0) return false;
    return true;
  }

  readonly #tellIdle = (): void => {
    for (const watcher of [...this.#idleWatchers]) watcher();
  };

  /** Waits until `isSo`; false when time ran out. */
  #within(timeoutMs: number, isSo: () => boolean): Promise<boolean> {
    if (isSo()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const done = (so: boolean): void => {
        clearTimeout(timer);
        this.#idleWatchers.delete(watcher);
        resolve(so);
      };
      const watcher = (): void => {
        if (isSo()) done(true);
      };
      const timer = after(timeoutMs, () => {
        done(false);
      });
      this.#idleWatchers.add(watcher);
    });
  }
}

function countHop(refused: Refused): number {
  if (refused.kind === 'stream') return ++refused.stream.hops;
  if (refused.kind === 'request') return ++refused.request.hops;
  let most = 0;
  for (const run of refused.flight.runs) most = Math.max(most, ++run.hops);
  return most;
}
