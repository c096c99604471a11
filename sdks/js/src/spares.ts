/**
 * Memory of frames that were answered, for the next ones.
 *
 * Owns a few buffers of one process. A new buffer for every batch costs the garbage collector more than
 * all the rest of a producer's work.
 *
 * @module
 */

import { Buffer } from 'node:buffer';

const LEAST_BYTES = 16 * 1024; // Node.js has a pool of its own for small ones
const MOST_BYTES = 1024 * 1024;
const KEPT_BYTES_MAX = 4 * 1024 * 1024;

export class Spares {
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;

  /** How much is kept for later. */
  get bytes(): number {
    return this.#keptBytes;
  }

  /** A buffer of at least this size, with anything in it. */
  take(size: number): Buffer {
    if (size < LEAST_BYTES || size > MOST_BYTES) return Buffer.allocUnsafe(size);
    const last = this.#kept.pop();
    this.#keptBytes -= last?.length ?? 0;
    // One that is too small is dropped: the next ones will be as large as this.
    if (last !== undefined && last.length >= size) return last;
    return Buffer.allocUnsafe(Math.min(MOST_BYTES, Math.ceil(size / LEAST_BYTES) * LEAST_BYTES));
  }

  /** Only for memory that nobody reads or writes any more. */
  give(buffer: Buffer): void {
    if (buffer.length < LEAST_BYTES || buffer.length > MOST_BYTES) return;
    if (this.#keptBytes + buffer.length > KEPT_BYTES_MAX) return;
    this.#kept.push(buffer);
    this.#keptBytes += buffer.length;
  }
}

/** Those of all clients. */
export const spares = new Spares();
