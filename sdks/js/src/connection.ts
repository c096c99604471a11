/**
 * The life of a connection: opening, handshake, keep-alive, loss and coming back.
 *
 * Owns the socket, its timers and the bytes that wait to be written. What frames mean is the link's
 * part.
 *
 * @module
 */

import type { Buffer } from 'node:buffer';
import type { SecureContext } from 'node:tls';

import type { Address } from './address.js';
import { Backoff } from './backoff.js';
import {
  ClientClosedError,
  ConnectFailedError,
  ConnectionLostError,
  protocolError,
  refusal,
  RefusedError,
  type FilaError,
} from './errors.js';
import type { Events } from './events.js';
import type { Settings } from './options.js';
import { WireSocket, whyNotConnected } from './socket.js';
import { after } from './timer.js';
import { Code } from './wire/catalogue.js';
import { decodeBody, encodeBody, InvalidBodyError } from './wire/codec.js';
import { encodeFrames, FRAME_BYTES_MAX, FrameDecoder, type FrameFault } from './wire/frames.js';
import { Error as ErrorBody, Handshake, HandshakeOk, Opcode } from './wire/operations.js';
import { receive } from './wire/states.js';

const PROTOCOL_VERSION = 1;
const FRAME_BYTES_MIN = 1024; // a broker that announces less could not be talked to
// A Delivery is a little longer than the Enqueue it came from, so a client must be able to put
// together more than the broker's own bound of 128 MiB.
const ASSEMBLY_BYTES_MAX = 512 * 1024 * 1024;
const ASSEMBLY_STREAMS_MAX = 16;
const STABLE_AFTER_MS = 1_000; // a connection that lived this long resets the reconnect pause
const GOODBYE_MS = 2_000;
// With these the handshake will be refused the next time too.
const PERMANENT: readonly number[] = [Code.Unauthorized, Code.Forbidden, Code.UnsupportedVersion];

/** What all connections of a client share. */
export interface Surroundings {
  readonly settings: Settings;
  readonly events: Events;
  readonly secure: SecureContext | undefined;
}

/** What a connection tells the link above it. */
export interface ConnectionEvents {
  opened(): void;
  /** May throw InvalidBodyError or RefusedError, which end the connection. */
  frame(opcode: number, requestId: number, body: Buffer): void;
  /** An Error frame. */
  refused(requestId: number, error: RefusedError): void;
  /** A message that could not be put together. */
  unreadable(requestId: number, error: RefusedError): void;
  /** Time to send what was collected; returns when to ask again, if it is known. */
  pump(now: number): number | undefined;
  /** Lost after it was open. True when it should come back. */
  lost(error: ConnectionLostError): boolean;
  /** Nothing more will happen. */
  ended(error: FilaError): void;
}

type State = 'idle' | 'opening' | 'open' | 'pausing' | 'ended';

export class Connection {
  readonly address: Address;
  readonly #around: Surroundings;
  readonly #above: ConnectionEvents;
  readonly #backoff: Backoff;
  #state: State = 'idle';
  #everOpen = false;
  #socket: WireSocket | undefined;
  #decoder = newDecoder();
  #frameBytesMax = FRAME_BYTES_MAX;
  #out: Buffer[] = [];
  #flushing = false;
  #dropReason: FilaError | undefined;
  #complaint: FilaError | undefined; // an Error that belonged to no request
  #lastFailure = '';
  #openedAt = 0;
  #heardAt = 0;
  #pinged: { readonly at: number; readonly unsentBytes: number } | undefined;
  #openTimer: NodeJS.Timeout | undefined;
  #aliveTimer: NodeJS.Timeout | undefined;
  #pumpTimer: NodeJS.Timeout | undefined;

  constructor(address: Address, around: Surroundings, above: ConnectionEvents) {
    this.address = address;
    this.#around = around;
    this.#above = above;
    this.#backoff = new Backoff(around.settings.reconnectMinMs, around.settings.reconnectMaxMs);
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** It was open at least once. */
  get wasOpen(): boolean {
    return this.#everOpen;
  }

  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  /** For the text of a timeout. */
  get condition(): string {
    if (this.isOpen) return `connected to ${this.address.text}`;
    return `not connected to ${this.address.text} (${this.#lastFailure || 'still connecting'})`;
  }

  start(): void {
    if (this.#state === 'idle') this.#open();
  }

  /** An Error that belongs to no request: probably why the connection will end soon. */
  complain(error: FilaError): void {
    this.#complaint = error;
    this.#log('warn', 'the broker complains', { error });
  }

  send(opcode: number, requestId: number, parts: readonly Buffer[]): void {
    this.#out.push(...encodeFrames(opcode, requestId, parts, this.#frameBytesMax));
    this.flushSoon();
  }

  /** Sends when the present turn of the event loop has added all it has to add. */
  flushSoon(): void {
    if (this.#flushing || !this.isOpen) return;
    this.#flushing = true;
    process.nextTick(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  /** Says goodbye and ends, by its user's wish or for a reason; resolves when the socket is closed. */
  async close(reason?: FilaError): Promise<void> {
    const socket = this.#socket;
    const wasOpen = this.isOpen;
    if (wasOpen) {
      this.#flush();
      this.send(Opcode.Disconnect, 0, []);
      this.#flush();
      this.#socket = undefined; // what still comes is read and ignored
    }
    this.#end(reason ?? new ClientClosedError(`the client for ${this.address.text} is closed`));
    if (socket === undefined || !wasOpen) return;
    // The broker closes when it has handed everything back; a dead one must not keep us.
    const timer = setTimeout(() => {
      socket.destroy();
    }, GOODBYE_MS);
    await socket.closed;
    clearTimeout(timer);
  }

  #open(): void {
    const { settings, secure } = this.#around;
    this.#state = 'opening';
    this.#decoder = newDecoder();
    this.#frameBytesMax = FRAME_BYTES_MAX;
    this.#out = [];
    this.#dropReason = undefined;
    this.#complaint = undefined;
    this.#log('debug', 'connecting', { tls: secure !== undefined });
    this.#openTimer = after(settings.connectTimeoutMs, () => {
      const text = `did not answer the handshake within ${settings.connectTimeoutMs} ms`;
      this.#drop(new ConnectFailedError(`${this.address.text} ${text}; is it a Fila broker?`));
    });
    const socket = new WireSocket(this.address, secure, {
      connected: () => {
        const hello = { version: PROTOCOL_VERSION, apiKey: settings.apiKey ?? null };
        this.send(Opcode.Handshake, 0, [encodeBody(Handshake, hello)]);
        this.#flush();
      },
      data: (chunk) => {
        if (this.#socket === socket) this.#receive(chunk);
      },
      closed: (error) => {
        if (this.#socket === socket) this.#lost(error);
      },
    });
    this.#socket = socket;
  }

  #welcome(body: Buffer): void {
    const { maxFrameSize, nodeId } = decodeBody(HandshakeOk, body);
    if (maxFrameSize < FRAME_BYTES_MIN) {
      throw protocolError(`${this.address.text} allows frames of ${maxFrameSize} bytes only`);
    }
    clearTimeout(this.#openTimer);
    this.#state = 'open';
    this.#everOpen = true;
    this.#openedAt = performance.now();
    this.#lastFailure = '';
    this.#frameBytesMax = this.#decoder.frameBytesMax = maxFrameSize;
    this.#pinged = undefined;
    this.#keepAliveIn(this.#around.settings.keepAliveIntervalMs);
    const node = { nodeId: String(nodeId) };
    this.#log('info', 'connected', node);
    this.#around.events.emit('connected', { address: this.address.text, ...node });
    this.#above.opened();
    this.flushSoon();
  }

  #drop(reason: FilaError): void {
    this.#dropReason ??= reason;
    this.#socket?.destroy();
  }

  /** The connection ended, or could not be opened. */
  #lost(cause: Error | undefined): void {
    this.#stopTimers();
    this.#socket = undefined;
    const wasOpen = this.isOpen;
    const why = wasOpen
      ? (cause?.message ?? 'the broker closed the connection')
      : whyNotConnected(cause, this.#around.settings);
    this.#lastFailure = (this.#dropReason ?? this.#complaint)?.message ?? why;
    if (!this.#everOpen) {
      const text = `cannot connect to ${this.address.text}: ${this.#lastFailure}`;
      this.#end(this.#dropReason ?? new ConnectFailedError(text, cause && { cause }));
      return;
    }
    const text = `connection to ${this.address.text} lost before the broker answered`;
    const lost = new ConnectionLostError(`${text}: ${this.#lastFailure}`, cause && { cause });
    if (wasOpen) {
      this.#log('warn', 'connection lost', { error: lost });
      this.#around.events.emit('disconnected', { address: this.address.text, reason: lost });
      if (performance.now() - this.#openedAt >= STABLE_AFTER_MS) this.#backoff.reset();
    }
    const refused = this.#dropReason;
    if (refused instanceof RefusedError && PERMANENT.includes(refused.wireCode)) {
      this.#end(refused);
      return;
    }
    this.#state = 'pausing';
    if (this.#above.lost(lost)) this.#openLater(refused ?? lost);
    else this.#end(lost);
  }

  #openLater(reason: Error): void {
    const attempt = this.#backoff.failures + 1;
    const delayMs = this.#backoff.nextMs();
    this.#log('info', 'reconnecting', { attempt, delayMs, error: reason });
    this.#around.events.emit('reconnecting', {
      address: this.address.text,
      attempt,
      delayMs,
      reason,
    });
    this.#openTimer = after(delayMs, () => {
      this.#open();
    });
  }

  #end(error: FilaError): void {
    if (this.#state === 'ended') return;
    const wasOpen = this.isOpen;
    this.#state = 'ended';
    this.#stopTimers();
    this.#socket?.destroy();
    this.#socket = undefined;
    if (wasOpen) {
      this.#around.events.emit('disconnected', { address: this.address.text, reason: error });
    }
    this.#above.ended(error);
  }

  #stopTimers(): void {
    clearTimeout(this.#openTimer);
    clearTimeout(this.#aliveTimer);
    clearTimeout(this.#pumpTimer);
    this.#pumpTimer = undefined;
  }

  #keepAliveIn(delayMs: number): void {
    this.#aliveTimer = after(delayMs, () => {
      this.#keepAlive(performance.now());
    });
    this.#aliveTimer.unref();
  }

  /** Pings a silent connection, and gives one up that stays silent. */
  #keepAlive(now: number): void {
    const { keepAliveIntervalMs, keepAliveTimeoutMs } = this.#around.settings;
    const unsentBytes = this.#socket?.unsentBytes ?? 0;
    const heardAt = Math.max(this.#heardAt, this.#openedAt);
    if (this.#pinged !== undefined && heardAt >= this.#pinged.at) this.#pinged = undefined;
    if (this.#pinged === undefined) {
      if (now - heardAt < keepAliveIntervalMs) {
        this.#keepAliveIn(heardAt + keepAliveIntervalMs - now);
        return;
      }
      this.#pinged = { at: now, unsentBytes };
      this.send(Opcode.Ping, 0, []);
    } else if (unsentBytes > 0 && unsentBytes < this.#pinged.unsentBytes) {
      // A large message on a slow line: our Ping stands behind it, but bytes are moving.
      this.#pinged = { at: now, unsentBytes };
    } else {
      // A program that was busy hears its timers before its sockets: what has come is read first.
      setImmediate(() => {
        this.#giveUpSilence(heardAt);
      });
      return;
    }
    this.#keepAliveIn(keepAliveTimeoutMs);
  }

  #giveUpSilence(heardAt: number): void {
    if (!this.isOpen) return;
    const now = performance.now();
    if (this.#heardAt > heardAt) {
      this.#keepAlive(now);
      return;
    }
    const silentMs = Math.round(now - heardAt);
    this.#drop(new ConnectionLostError(`${this.address.text} was silent for ${silentMs} ms`));
  }

  #receive(chunk: Buffer): void {
    this.#heardAt = performance.now();
    try {
      for (const { opcode, requestId, body } of this.#decoder.feed(chunk)) {
        this.#takeFrame(opcode, requestId, body);
        if (this.#dropReason !== undefined || this.isEnded) return;
      }
    } catch (error) {
      if (error instanceof InvalidBodyError) {
        const text = `${this.address.text} sent a body that does not parse: ${error.message}`;
        this.#drop(protocolError(text));
      } else if (error instanceof RefusedError) {
        this.#drop(error);
      } else {
        throw error;
      }
      return;
    }
    for (const fault of this.#decoder.takeFaults()) this.#takeFault(fault, chunk);
    this.flushSoon();
  }

  #takeFrame(opcode: number, requestId: number, body: Buffer): void {
    if (opcode === Opcode.Delivery && this.isOpen) {
      this.#above.frame(opcode, requestId, body);
      return;
    }
    const transition = receive('client', this.isOpen ? 'open' : 'opening', opcode);
    if ('refused' in transition) {
      if (!transition.fatal) return; // an operation of a later version is not for us
      throw protocolError(`${this.address.text} does not speak FIBP: ${transition.message}`);
    }
    switch (opcode) {
      case Opcode.HandshakeOk:
        this.#welcome(body);
        break;
      case Opcode.Ping:
        this.send(Opcode.Pong, requestId, []);
        break;
      case Opcode.Pong:
        break;
      case Opcode.Disconnect:
        this.#drop(new ConnectionLostError(`${this.address.text} closed the connection`));
        break;
      case Opcode.Error: {
        const { code, message, metadata } = decodeBody(ErrorBody, body);
        const error = refusal(code, message, '', metadata);
        if (this.isOpen) this.#above.refused(requestId, error);
        else this.#drop(error);
        break;
      }
      default:
        this.#above.frame(opcode, requestId, body);
    }
  }

  #takeFault(fault: FrameFault, chunk: Buffer): void {
    let text = `${this.address.text} sent bytes that are no frame: ${fault.message}`;
    // An alert is how a TLS server answers what is no TLS.
    if (!this.isOpen && chunk[0] === 0x15 && chunk[1] === 0x03) {
      text = `cannot connect to ${this.address.text}: it expects TLS (tls: true)`;
      this.#drop(new ConnectFailedError(text));
    } else if (fault.fatal) {
      this.#drop(protocolError(text));
    } else {
      this.#above.unreadable(fault.requestId, protocolError(text));
    }
  }

  #flush(): void {
    if (this.isOpen) {
      const now = performance.now();
      const dueAt = this.#above.pump(now);
      if (dueAt !== undefined && this.#pumpTimer === undefined) {
        // Timers count whole milliseconds and may be early by a part of one.
        const delayMs = Math.max(1, Math.ceil(dueAt - now));
        this.#pumpTimer = after(delayMs, () => {
          this.#pumpTimer = undefined;
          this.#flush();
        });
      }
    }
    if (this.#out.length === 0) return;
    const out = this.#out;
    this.#out = [];
    this.#socket?.write(out);
  }

  #log(level: 'debug' | 'info' | 'warn', message: string, fields: Record<string, unknown>): void {
    this.#around.events.log(level, message, { address: this.address.text, ...fields });
  }
}

function newDecoder(): FrameDecoder {
  return new FrameDecoder({
    frameBytesMax: FRAME_BYTES_MAX,
    assemblyStreamsMax: ASSEMBLY_STREAMS_MAX,
    assemblyBytesMax: ASSEMBLY_BYTES_MAX,
  });
}
