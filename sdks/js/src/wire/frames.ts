/**
 * Bytes to frames and back, with continuations joined and split.
 *
 * Owns the frame header and the limits on what may be half-assembled; bodies are opaque here. Never
 * touches sockets.
 *
 * ```text
 * 0        4        5        6            10
 * +--------+--------+--------+------------+------ ... ------+
 * | length | opcode | flags  | request id | body            |
 * | u32    | u8     | u8     | u32        | length - 6      |
 * +--------+--------+--------+------------+------ ... ------+
 * ```
 *
 * @module
 */

import { Buffer } from 'node:buffer';

import { Code } from './catalogue.js';

/** The largest `length` of a frame unless HandshakeOk says otherwise. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024;
const HEADER_BYTES = 10;
const COUNTED_BYTES = 6; // opcode, flags and request id are part of `length`
const CONTINUATION = 0x01;
const EMPTY = Buffer.alloc(0);

/** A whole message: continued frames are joined. */
export interface Frame {
  readonly opcode: number;
  readonly requestId: number;
  readonly body: Buffer;
}

/** What was wrong with a frame; after a fatal fault the stream cannot be trusted any more. */
export interface FrameFault {
  readonly code: number;
  readonly message: string;
  readonly requestId: number;
  readonly fatal: boolean;
}

/** How much a decoder may hold. */
export interface FrameLimits {
  readonly frameBytesMax: number;
  readonly assemblyStreamsMax: number;
  readonly assemblyBytesMax: number;
}

/** Turns a stream of bytes into whole messages, whatever the pieces they arrive in. */
export class FrameDecoder {
  /** May change when the handshake has told the broker's limit. */
  frameBytesMax: number;
  readonly #assemblyStreamsMax: number;
  readonly #assemblyBytesMax: number;
  #chunks: Buffer[] = [];
  #held = 0;
  // How many held bytes make the next attempt worthwhile: a large frame that trickles in is joined
  // once, not once per chunk.
  #needed = HEADER_BYTES;
  readonly #assemblies = new Map<string, Assembly>();
  #assemblyBytes = 0;
  readonly #refused = new Set<string>();
  #faults: FrameFault[] = [];
  #broken = false;

  constructor(limits: FrameLimits) {
    this.frameBytesMax = limits.frameBytesMax;
    this.#assemblyStreamsMax = limits.assemblyStreamsMax;
    this.#assemblyBytesMax = limits.assemblyBytesMax;
  }

  /** The messages completed by these bytes, in order. What was refused waits in `takeFaults`. */
  feed(chunk: Buffer): Frame[] {
    if (this.#broken) return [];
    this.#held += chunk.length;
    if (this.#held < this.#needed) {
      this.#chunks.push(chunk);
      return [];
    }
    let data = chunk;
    if (this.#chunks.length > 0) {
      this.#chunks.push(chunk);
      data = Buffer.concat(this.#chunks, this.#held);
      this.#chunks = [];
    }
    return this.#cut(data);
  }

  /** What was refused since the last call. */
  takeFaults(): FrameFault[] {
    const faults = this.#faults;
    if (faults.length > 0) this.#faults = [];
    return faults;
  }

  #cut(data: Buffer): Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    while (data.length - at >= HEADER_BYTES) {
      const length = data.readUInt32BE(at);
      const requestId = data.readUInt32BE(at + 6);
      if (!this.#permitted(length, requestId)) return frames;
      const end = at + 4 + length;
      if (end > data.length) break;
      const opcode = data.readUInt8(at + 4);
      const flags = data.readUInt8(at + 5);
      const body = data.subarray(at + HEADER_BYTES, end);
      at = end;
      if (flags === 0 && this.#assemblies.size === 0 && this.#refused.size === 0) {
        frames.push({ opcode, requestId, body });
        continue;
      }
      const whole = this.#assemble(opcode, flags, requestId, body);
      if (whole !== undefined) frames.push({ opcode, requestId, body: whole });
      if (this.#broken) return frames;
    }
    this.#keep(data.subarray(at));
    return frames;
  }

  #keep(rest: Buffer): void {
    this.#held = rest.length;
    if (rest.length > 0) this.#chunks.push(rest);
    this.#needed = HEADER_BYTES;
    if (rest.length < 4) return;
    const length = rest.readUInt32BE(0);
    if (length < COUNTED_BYTES) this.#permitted(length, 0);
    // One that is too long is judged when its header is complete, so that the fault names its request.
    else if (length <= this.frameBytesMax) this.#needed = 4 + length;
  }

  #permitted(length: number, requestId: number): boolean {
    if (length < COUNTED_BYTES) {
      this.#report(`frame length ${length} is shorter than its header`, 0, true);
      return false;
    }
    if (length > this.frameBytesMax) {
      const message = `frame of ${length} bytes exceeds the limit of ${this.frameBytesMax}`;
      this.#report(message, requestId, true);
      return false;
    }
    return true;
  }

  #assemble(opcode: number, flags: number, requestId: number, body: Buffer): Buffer | undefined {
    const key = `${opcode}/${requestId}`;
    const more = (flags & CONTINUATION) !== 0;
    if (this.#refused.has(key)) {
      if (!more) this.#refused.delete(key);
      return undefined;
    }
    if ((flags & ~CONTINUATION) !== 0) {
      this.#refuse(key, more, requestId, `flags ${flags} use bits that are reserved`);
      return undefined;
    }
    let assembly = this.#assemblies.get(key);
    if (assembly === undefined) {
      if (!more) return body;
      if (this.#assemblies.size >= this.#assemblyStreamsMax) {
        const message = `more than ${this.#assemblyStreamsMax} messages are being continued at once`;
        this.#refuse(key, more, requestId, message);
        return undefined;
      }
    }
    if (this.#assemblyBytes + body.length > this.#assemblyBytesMax) {
      const message = `continued messages exceed ${this.#assemblyBytesMax} bytes`;
      this.#refuse(key, more, requestId, message);
      return undefined;
    }
    if (assembly === undefined) {
      assembly = new Assembly();
      this.#assemblies.set(key, assembly);
    }
    assembly.add(body);
    this.#assemblyBytes += body.length;
    if (more) return undefined;
    this.#assemblies.delete(key);
    this.#assemblyBytes -= assembly.length;
    return assembly.whole();
  }

  /** Drops this message and the pieces of it still to come. */
  #refuse(key: string, more: boolean, requestId: number, message: string): void {
    const dropped = this.#assemblies.get(key);
    if (dropped !== undefined) {
      this.#assemblies.delete(key);
      this.#assemblyBytes -= dropped.length;
    }
    if (more) this.#refused.add(key);
    this.#report(message, requestId, this.#refused.size > this.#assemblyStreamsMax);
  }

  #report(message: string, requestId: number, fatal: boolean): void {
    this.#faults.push({ code: Code.InvalidFrame, message, requestId, fatal });
    if (!fatal) return;
    this.#broken = true;
    this.#chunks = [];
    this.#assemblies.clear();
    this.#refused.clear();
  }
}

/** One growing buffer, not a list of pieces: a flood of tiny pieces costs only its bytes. */
class Assembly {
  length = 0;
  #buffer: Buffer = EMPTY;

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, this.#buffer.length * 2));
      this.#buffer.copy(larger, 0, 0, this.length);
      this.#buffer = larger;
    }
    piece.copy(this.#buffer, this.length);
    this.length = length;
  }

  whole(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}

/**
 * A body given in parts as one frame, or as a run of continued frames when it is larger than one.
 * Returns buffers to be sent one after the other; the parts are not copied unless they must be cut.
 */
export function encodeFrames(
  opcode: number,
  requestId: number,
  parts: readonly Buffer[],
  frameBytesMax: number = FRAME_BYTES_MAX,
): Buffer[] {
  let size = 0;
  for (const part of parts) size += part.length;
  if (size + COUNTED_BYTES <= frameBytesMax) {
    return [header(opcode, 0, requestId, size), ...parts];
  }
  const pieceBytes = frameBytesMax - COUNTED_BYTES;
  const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size);
  const frames: Buffer[] = [];
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = body.subarray(at, at + pieceBytes);
    const flags = at + pieceBytes < size ? CONTINUATION : 0;
    frames.push(header(opcode, flags, requestId, piece.length), piece);
  }
  return frames;
}

function header(opcode: number, flags: number, requestId: number, bodyBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES);
  bytes.writeUInt32BE(COUNTED_BYTES + bodyBytes, 0);
  bytes.writeUInt8(opcode, 4);
  bytes.writeUInt8(flags, 5);
  bytes.writeUInt32BE(requestId, 6);
  return bytes;
}
