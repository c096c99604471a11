/**
 * The socket under a connection: TCP or TLS, bytes out in few writes.
 *
 * Owns opening, writing and ending one socket, and saying in plain words why it could not be opened.
 * Knows nothing of frames.
 *
 * @module
 */

import { Buffer } from 'node:buffer';
import { X509Certificate } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';

import type { Address } from './address.js';
import type { Settings } from './options.js';

const ALPN = 'fila/1';
// Smaller pieces are copied together: one write of 64 KiB costs less than a hundred of 1 KiB.
const COPY_BELOW_BYTES = 16 * 1024;

/** What a socket tells its owner. */
export interface SocketEvents {
  connected(): void;
  data(chunk: Buffer): void;
  /** Told once, also when it could not be opened. */
  closed(error: Error | undefined): void;
}

/** Certificates of the options, loaded once; throws `TypeError` when they cannot be used. */
export function secureContextOf(settings: Settings): SecureContext | undefined {
  if (!settings.tls) return undefined;
  try {
    // OpenSSL takes a CA it cannot read for none at all; this one says so.
    if (settings.caCert !== undefined) new X509Certificate(pem(settings.caCert));
    return createSecureContext({
      ...(settings.caCert !== undefined && { ca: pem(settings.caCert) }),
      ...(settings.clientCert !== undefined && { cert: pem(settings.clientCert) }),
      ...(settings.clientKey !== undefined && { key: pem(settings.clientKey) }),
      minVersion: 'TLSv1.2',
    });
  } catch (cause) {
    const text = `the TLS certificates cannot be used: ${(cause as Error).message}`;
    throw new TypeError(text, { cause });
  }
}

export class WireSocket {
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #failure: Error | undefined;

  constructor(address: Address, secure: SecureContext | undefined, events: SocketEvents) {
    const { host, port } = address;
    if (secure === undefined) {
      this.#socket = connectTcp({ host, port, noDelay: true });
      this.#socket.once('connect', events.connected);
    } else {
      const socket = connectTls({
        host,
        port,
        secureContext: secure,
        ALPNProtocols: [ALPN],
        rejectUnauthorized: true, // whatever the environment says
        ...(isIP(host) === 0 && { servername: host }),
      });
      socket.setNoDelay(true);
      socket.once('secureConnect', events.connected);
      this.#socket = socket;
    }
    this.#socket.on('data', events.data);
    this.#socket.on('error', (error: Error) => {
      this.#failure ??= error;
    });
    this.closed = new Promise((resolve) => {
      this.#socket.once('close', () => {
        events.closed(this.#failure);
        resolve();
      });
    });
  }

  /** Bytes handed over and not yet taken by the operating system. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Sends buffers one after the other in as few writes as is sensible. */
  write(buffers: readonly Buffer[]): void {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) return;
    socket.cork();
    let small: Buffer[] = [];
    for (const buffer of buffers) {
      if (buffer.length < COPY_BELOW_BYTES) {
        small.push(buffer);
        continue;
      }
      if (small.length > 0) socket.write(joined(small));
      small = [];
      socket.write(buffer);
    }
    if (small.length > 0) socket.write(joined(small));
    socket.uncork();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** What an operating system's or OpenSSL's error means for somebody who wants to reach a broker. */
export function whyNotConnected(error: Error | undefined, settings: Settings): string {
  const { tls, clientCert } = settings;
  if (error === undefined) {
    const text = 'the connection was closed during the handshake';
    if (!tls) return `${text}; does the broker expect TLS (tls: true)?`;
    return clientCert === undefined
      ? `TLS: ${text}; does the broker ask for a client certificate (clientCert, clientKey)?`
      : `TLS: ${text}`;
  }
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'connection refused; is the broker running there?';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name cannot be resolved';
  if (!tls) {
    return code === 'ECONNRESET' ? `${message}; does the broker expect TLS (tls: true)?` : message;
  }
  if (/wrong version number|packet length too long|ECONNRESET/i.test(message + code)) {
    return `TLS: ${message}; does the broker speak TLS on this port?`;
  }
  return `TLS: ${message}`;
}

function joined(buffers: readonly Buffer[]): Buffer {
  return buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers);
}

function pem(value: string | Uint8Array): string | Buffer {
  return typeof value === 'string' ? value : Buffer.from(value);
}
