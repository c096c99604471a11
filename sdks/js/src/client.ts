/**
 * The client: what applications call.
 *
 * Owns the shape of the API: arguments, promises, deadlines. Connections and routes are the router's.
 *
 * @module
 */

import { parseAddress, type Address } from './address.js';
import { BulkCalls } from './bulk.js';
import { checkResult, type Ask } from './calls.js';
import { Consumer, type ConsumeOptions } from './consumer.js';
import type { Deadline } from './deadline.js';
import { RequestTimeoutError } from './errors.js';
import { Events, type ClientEventName, type ClientEvents } from './events.js';
import { beat } from './heartbeat.js';
import { Message } from './message.js';
import {
  checkPrefetch,
  PREFETCH_DEFAULT,
  settingsOf,
  timeoutOf,
  type CallOptions,
  type ClientOptions,
  type Settings,
} from './options.js';
import {
  enqueueRuns,
  settlementRuns,
  type Headers,
  type NewMessage,
  type Payload,
} from './outgoing.js';
import { Request } from './request.js';
import {
  type DrainOptions,
  type EnqueueOptions,
  type EnqueueResult,
  type SettleResult,
} from './results.js';
import { Router } from './router.js';
import { secureContextOf } from './socket.js';
import { Stream, type StreamLink } from './stream.js';
import { Ticket, type Settled, type Stored } from './ticket.js';
import { asBuffer, type Operation } from './wire/codec.js';
import { endOfText, scanDelivery, textAt } from './wire/delivery.js';
import { Opcode } from './wire/operations.js';

const VERBS = { ack: Opcode.Ack, nack: Opcode.Nack, release: Opcode.Release } as const;
const GRACE_MS = 5_000;
const WAIT_MARGIN_MS = 10_000; // a long poll's answer may take this much longer than the poll

/**
 * A client of one broker, or of the cluster it belongs to. Share one in a program: calls made at the same
 * time travel together.
 *
 * @example
 * ```ts
 * import { Client } from '@fila/client';
 *
 * const client = new Client('localhost:5555');
 * await client.connect();
 * await client.createQueue('orders');
 * await client.enqueue('orders', { tenant: 'acme' }, 'hello');
 *
 * for await (const message of client.consume('orders')) {
 *   console.log(message.text());
 *   await message.ack();
 *   break;
 * }
 * await client.close();
 * ```
 */
export class Client extends BulkCalls implements AsyncDisposable {
  readonly #address: Address;
  readonly #settings: Settings;
  readonly #events: Events;
  readonly #router: Router;

  /**
   * Checks the options; nothing is opened before {@link Client.connect} or the first call.
   *
   * @param address `host:port`, `host` (port 5555) or `[ipv6]:port`; `https://` switches TLS on.
   */
  constructor(address = 'localhost:5555', options: ClientOptions = {}) {
    super();
    this.#address = parseAddress(address);
    this.#settings = settingsOf(options, this.#address.tls);
    this.#events = new Events(this.#settings.log);
    const secure = secureContextOf(this.#settings);
    this.#router = new Router(this.#address, this.#settings, this.#events, secure);
  }

  /** A client that is connected. */
  static async connect(address?: string, options?: ClientOptions): Promise<Client> {
    const client = new Client(address, options);
    await client.connect();
    return client;
  }

  /** Where it connects to, as `host:port`. */
  get address(): string {
    return this.#address.text;
  }

  /** There is a connection to the broker now. */
  get connected(): boolean {
    return this.#router.isConnected;
  }

  /**
   * Opens the connection. The first attempt is not repeated: it rejects with `ConnectFailedError`,
   * `UnauthorizedError` or `UnsupportedVersionError`. Later losses are mended by the client itself.
   */
  async connect(options?: Pick<CallOptions, 'signal'>): Promise<void> {
    const limits = { what: 'connect', timeoutMs: Infinity, signal: options?.signal };
    const deadline = this.#router.begin<undefined>(limits, true);
    this.#router.connect(deadline);
    await deadline.promise;
  }

  /** Listens to what happens to the connections; returns a function that stops listening. */
  on<Name extends ClientEventName>(
    event: Name,
    listener: (event: ClientEvents[Name]) => void,
  ): () => void {
    this.#events.on(event, listener);
    return () => {
      this.#events.off(event, listener);
    };
  }

  /** Stops listening. */
  off<Name extends ClientEventName>(
    event: Name,
    listener: (event: ClientEvents[Name]) => void,
  ): void {
    this.#events.off(event, listener);
  }

  // Producing.

  /**
   * Stores a message; resolves with its id when the broker has it.
   *
   * @param headers text pairs, or null for none
   * @param payload bytes, or text that is sent as UTF-8
   */
  async enqueue(
    queue: string,
    headers: Headers | null | undefined,
    payload: Payload,
    options: EnqueueOptions = {},
  ): Promise<string> {
    const deadline = this.#begin<string>(`enqueue to queue "${queue}"`, options, true);
    const ticket = new Ticket<Stored>(1, ([outcome]) => {
      if (outcome?.error === undefined) deadline.resolve(outcome?.id as string);
      else deadline.reject(outcome.error);
    });
    this.#hand(deadline, ticket, () =>
      enqueueRuns([{ ...options, queue, headers, payload }], ticket, this.#settings),
    );
    return deadline.promise;
  }

  /**
   * Stores many messages; resolves with one result per message, in order. A refused one costs only
   * itself. Rejects when it is aborted, when an argument cannot be sent, or when time is up and nothing
   * is known of any message; what is known by then is told, the rest has a `RequestTimeoutError`.
   */
  async enqueueMany(
    messages: Iterable<NewMessage>,
    options: CallOptions = {},
  ): Promise<EnqueueResult[]> {
    const all = [...messages];
    if (all.length === 0) return [];
    const deadline = this.#begin<EnqueueResult[]>('enqueue messages', options, true);
    const ticket = new Ticket<Stored>(all.length, (outcomes) => {
      deadline.resolve(outcomes);
    });
    this.#hand(deadline, ticket, () => enqueueRuns(all, ticket, this.#settings));
    deadline.onTimeout = (error) => {
      this.#timeOut(deadline, ticket, error);
    };
    return deadline.promise;
  }

  // Consuming.

  /**
   * Subscribes to a queue; read the result with `for await`. At most `prefetch` messages are here
   * unsettled at a time. A refusal is thrown by the first step.
   */
  consume(queue: string, options: ConsumeOptions = {}): Consumer {
    const prefetch = checkPrefetch(options.prefetch ?? PREFETCH_DEFAULT);
    if (typeof queue !== 'string') {
      throw new TypeError(`queue must be a string, not ${typeof queue}`);
    }
    options.signal?.throwIfAborted();
    const stream = new Stream(
      queue,
      prefetch,
      (from, verb, message, error, call) =>
        this.#settleOne(verb, message.queue, message.id, error, call, from.link),
      (message, visibilityMs, call) => this.extend(message.queue, message.id, visibilityMs, call),
    );
    this.#router.subscribe(stream);
    if (options.heartbeat === true) beat(stream, (ids) => this.extendSome(queue, ids, 0));
    return new Consumer(stream, options.signal, (one) => {
      this.#router.forget(one);
    });
  }

  /** Settles a message: it is done and gone. */
  ack(queue: string, id: string, options?: CallOptions): Promise<void> {
    return this.#settleOne('ack', queue, id, undefined, options);
  }

  /** Gives a message back as failed; the queue's `on_failure` hook sees `error` and decides. */
  nack(queue: string, id: string, error = '', options?: CallOptions): Promise<void> {
    return this.#settleOne('nack', queue, id, error, options);
  }

  /** Hands a message back at once, to its old place and without a counted attempt. */
  release(queue: string, id: string, options?: CallOptions): Promise<void> {
    return this.#settleOne('release', queue, id, undefined, options);
  }

  /** Settles many messages of a queue in one round trip; one result per id, in order. */
  ackMany(queue: string, ids: Iterable<string>, options?: CallOptions): Promise<SettleResult[]> {
    return this.#settleMany('ack', queue, [...ids], undefined, options);
  }

  /** Gives many messages of a queue back as failed; one result per id, in order. */
  nackMany(
    queue: string,
    ids: Iterable<string>,
    error = '',
    options?: CallOptions,
  ): Promise<SettleResult[]> {
    return this.#settleMany('nack', queue, [...ids], error, options);
  }

  /** Hands many messages of a queue back at once; one result per id, in order. */
  releaseMany(
    queue: string,
    ids: Iterable<string>,
    options?: CallOptions,
  ): Promise<SettleResult[]> {
    return this.#settleMany('release', queue, [...ids], undefined, options);
  }

  // The end.

  /**
   * Ends in good order: consumers end and hand back what nobody took; messages in the program's hands
   * may still be settled, for a while; then new work is refused, calls under way get their answers, and
   * the client closes. Rejects with `RequestTimeoutError` when calls took too long; the client is closed
   * all the same.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    const timeoutMs = timeoutOf(options, this.#settings);
    const graceMs = Math.min(timeoutMs, options.graceMs ?? GRACE_MS);
    if (await this.#router.drain(timeoutMs, graceMs)) return;
    const text = `drain: calls were still under way after ${timeoutMs} ms; the client is closed`;
    throw new RequestTimeoutError(text);
  }

  /**
   * Closes at once: calls under way reject with `ClientClosedError`, consumers end, and the broker takes
   * back what they hold. May be called again.
   */
  async close(): Promise<void> {
    await this.#router.close();
  }

  /** Closes, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // Inside.

  /** @internal */
  protected override async request<Body, Answer>(
    operation: Operation<Body>,
    body: Body,
    ask: Ask<Answer>,
    options: CallOptions | undefined,
  ): Promise<Answer> {
    const deadline = this.#begin<Answer>(ask.what, options, true, ask.waitMs);
    try {
      const request = Request.of(operation, body, ask.reply, {
        queue: ask.queue,
        repeatable: ask.repeatable ?? false,
        done: (answer) => {
          deadline.resolve(answer);
        },
        fail: (error) => {
          deadline.reject(error);
        },
      });
      deadline.onGiveUp = () => {
        request.dropped = true;
      };
      this.#router.ask(request);
    } catch (error) {
      deadline.reject(error); // an argument that cannot be sent
    }
    const answer = await deadline.promise;
    checkResult(answer as object, ask.subject);
    return answer;
  }

  /** @internal */
  protected override leasedMessages(bytes: Uint8Array): Message[] {
    const body = asBuffer(bytes);
    const messages: Message[] = [];
    const settler = {
      settle: (
        verb: keyof typeof VERBS,
        { queue, id }: Message,
        error: string | undefined,
        options: CallOptions | undefined,
      ) => this.#settleOne(verb, queue, id, error, options),
      extend: ({ queue, id }: Message, visibilityMs: number, options: CallOptions | undefined) =>
        this.extend(queue, id, visibilityMs, options),
    };
    scanDelivery(body, (at, payload, end) => {
      const queue = textAt(body, endOfText(body, at));
      messages.push(new Message(settler, body, at, payload, end, queue));
    });
    return messages;
  }

  async #settleOne(
    verb: keyof typeof VERBS,
    queue: string,
    id: string,
    error: string | undefined,
    options: CallOptions | undefined,
    via?: StreamLink,
  ): Promise<void> {
    const deadline = this.#begin<undefined>(`${verb} of queue "${queue}"`, options, false);
    const ticket = new Ticket<Settled>(1, ([outcome]) => {
      this.#router.settled(id);
      if (outcome?.error === undefined) deadline.resolve(undefined);
      else deadline.reject(outcome.error);
    });
    const opcode = VERBS[verb];
    this.#hand(
      deadline,
      ticket,
      () => settlementRuns(opcode, queue, [id], error, ticket, [0], this.#settings),
      via,
    );
    return deadline.promise;
  }

  async #settleMany(
    verb: keyof typeof VERBS,
    queue: string,
    ids: readonly string[],
    error: string | undefined,
    options: CallOptions | undefined,
  ): Promise<SettleResult[]> {
    if (ids.length === 0) return [];
    const deadline = this.#begin<SettleResult[]>(`${verb} of queue "${queue}"`, options, false);
    const ticket = new Ticket<Settled>(ids.length, (outcomes) => {
      for (const id of ids) this.#router.settled(id);
      deadline.resolve(
        outcomes.map((outcome, index) => ({ id: ids[index] as string, error: outcome.error })),
      );
    });
    const opcode = VERBS[verb];
    const places = ids.map((_, index) => index);
    this.#hand(deadline, ticket, () =>
      settlementRuns(opcode, queue, ids, error, ticket, places, this.#settings),
    );
    deadline.onTimeout = (timeout) => {
      this.#timeOut(deadline, ticket, timeout);
    };
    return deadline.promise;
  }

  #begin<T>(
    what: string,
    options: CallOptions | undefined,
    newWork: boolean,
    waitMs = 0,
  ): Deadline<T> {
    let timeoutMs = timeoutOf(options, this.#settings);
    if (waitMs > 0 && options?.timeoutMs === undefined) {
      timeoutMs = Math.max(timeoutMs, waitMs + WAIT_MARGIN_MS);
    }
    return this.#router.begin<T>({ what, timeoutMs, signal: options?.signal }, newWork);
  }

  /** Encodes a call and hands it over; an argument that cannot be sent rejects the call. */
  #hand<T>(
    deadline: Deadline<T>,
    ticket: Ticket<Stored> | Ticket<Settled>,
    encode: () => Parameters<Router['enqueueOrSettle']>[0],
    via?: StreamLink,
  ): void {
    deadline.onGiveUp = () => {
      this.#router.giveUp(ticket);
    };
    try {
      this.#router.enqueueOrSettle(encode(), via);
    } catch (error) {
      deadline.reject(error);
    }
  }

  /** What is known is told and the rest has failed; a call of which nothing is known rejects. */
  #timeOut<T>(
    deadline: Deadline<T>,
    ticket: Ticket<Stored> | Ticket<Settled>,
    error: RequestTimeoutError,
  ): void {
    this.#router.giveUp(ticket);
    if (ticket.hasOutcome) ticket.failRest(error);
    else deadline.reject(error);
  }
}
