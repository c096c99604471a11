/**
 * Bodies to bytes and back: the primitive types of FIBP.
 *
 * Owns bounds checks, UTF-8 and the limits of each type; which fields stand where is in the generated
 * `operations.ts`. Never touches frames or sockets.
 *
 * @module
 */

import { Buffer, isUtf8 } from 'node:buffer';

/** How one body is written and read. */
export interface Operation<Body> {
  readonly name: string;
  readonly opcode: number;
  readonly sender: 'client' | 'server' | 'both';
  /** The opcode of the result, for operations that have one. */
  readonly reply: number | null;
  encode(out: Writer, body: Body): void;
  decode(from: Reader): Body;
}

/** How one record of a list is written and read. */
export interface RecordCodec<Item> {
  readonly fewestBytes: number;
  encode(out: Writer, item: Item): void;
  decode(from: Reader): Item;
}

/** The type of a list's count. */
export type Counter = 'u16' | 'u32';

/** The most bytes of a `string`, and the most entries of a `map` or `string[]`. */
export const SHORT_MAX = 0xffff;
const LONG_MAX = 0xffff_ffff;
const ASCII_UNITS = 64; // up to here a loop costs less than the call of a native encoder

/** A body that does not parse. */
export class InvalidBodyError extends Error {
  override readonly name = 'InvalidBodyError';

  constructor(
    /** The field at fault, for example `messages[0].queue`. */
    readonly field: string,
    readonly problem: string,
  ) {
    super(`${field}: ${problem}`);
  }
}

/** Encodes a body without its frame. */
export function encodeBody<Body>(operation: Operation<Body>, body: Body): Buffer {
  const out = new Writer(64);
  operation.encode(out, body);
  return out.take();
}

/** Decodes a body; bytes after the last known field are ignored. */
export function decodeBody<Body>(operation: Operation<Body>, bytes: Uint8Array): Body {
  return operation.decode(new Reader(asBuffer(bytes)));
}

/** The same memory as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A growing buffer that is written from the front. */
export class Writer {
  #buffer: Buffer;
  #at = 0;

  /** Begins with room for so many bytes, or with memory that may be overwritten. */
  constructor(room: number | Buffer) {
    this.#buffer = typeof room === 'number' ? Buffer.allocUnsafe(Math.max(room, 16)) : room;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#at;
  }

  /** The memory that is written to; another one when more room was needed. */
  get memory(): Buffer {
    return this.#buffer;
  }

  /** What was written. The writer must not be used afterwards. */
  take(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  u8(value: number, field: string): void {
    this.#integer(value, 0xff, field);
    this.#at = this.#room(1).writeUInt8(value, this.#at);
  }

  u16(value: number, field: string): void {
    this.#integer(value, SHORT_MAX, field);
    this.#at = this.#room(2).writeUInt16BE(value, this.#at);
  }

  u32(value: number, field: string): void {
    this.#integer(value, LONG_MAX, field);
    this.#at = this.#room(4).writeUInt32BE(value, this.#at);
  }

  u64(value: bigint, field: string): void {
    if (BigInt.asUintN(64, value) !== value) {
      throw new RangeError(`${field} must be from 0 to 2^64 - 1, not ${String(value)}`);
    }
    this.#at = this.#room(8).writeBigUInt64BE(value, this.#at);
  }

  i64(value: bigint, field: string): void {
    if (BigInt.asIntN(64, value) !== value) {
      throw new RangeError(`${field} does not fit 64 bits: ${String(value)}`);
    }
    this.#at = this.#room(8).writeBigInt64BE(value, this.#at);
  }

  f64(value: number, _field: string): void {
    this.#at = this.#room(8).writeDoubleBE(value, this.#at);
  }

  bool(value: boolean, _field: string): void {
    this.#at = this.#room(1).writeUInt8(value ? 1 : 0, this.#at);
  }

  string(value: string, field: string): void {
    if (typeof value !== 'string') {
      throw new TypeError(`${field} must be a string, not ${typeof value}`);
    }
    if (value.length <= ASCII_UNITS && this.#ascii(value)) return;
    if (!value.isWellFormed()) {
      throw new RangeError(`${field} holds half of a surrogate pair, which has no UTF-8 form`);
    }
    // Three bytes per UTF-16 unit is the most there can be, and cheaper than counting.
    const atMost = value.length * 3;
    const size = atMost <= SHORT_MAX ? atMost : Buffer.byteLength(value);
    if (size > SHORT_MAX) {
      throw new RangeError(`${field} has ${size} bytes; at most ${SHORT_MAX} are possible`);
    }
    const buffer = this.#room(2 + size);
    const written = buffer.write(value, this.#at + 2);
    buffer.writeUInt16BE(written, this.#at);
    this.#at += 2 + written;
  }

  /** Writes a short text of ASCII; false, with nothing written, when it is none. */
  #ascii(value: string): boolean {
    const size = value.length;
    const buffer = this.#room(2 + size);
    const start = this.#at + 2;
    for (let index = 0; index < size; index++) {
      const unit = value.charCodeAt(index);
      if (unit > 0x7f) return false;
      buffer[start + index] = unit;
    }
    buffer[start - 2] = 0;
    buffer[start - 1] = size;
    this.#at = start + size;
    return true;
  }

  optionalString(value: string | null, field: string): void {
    if (value === null) {
      this.bool(false, field);
    } else {
      this.bool(true, field);
      this.string(value, field);
    }
  }

  bytes(value: Uint8Array | string, field: string): void {
    if (typeof value === 'string') {
      const size = Buffer.byteLength(value);
      this.u32(size, field);
      this.#at += this.#room(size).write(value, this.#at);
    } else if (value instanceof Uint8Array) {
      this.u32(value.length, field);
      this.#room(value.length).set(value, this.#at);
      this.#at += value.length;
    } else {
      throw new TypeError(`${field} must be a Uint8Array or a string, not ${typeof value}`);
    }
  }

  strings(values: readonly string[], field: string): void {
    this.#count(values.length, field);
    for (const value of values) this.string(value, field);
  }

  map(values: ReadonlyMap<string, string>, field: string): void {
    this.#count(values.size, field);
    for (const [key, value] of values) {
      this.string(key, `${field} key`);
      this.string(value, `${field}[${key}]`);
    }
  }

  /** A `map` from an object's own properties; `extra` is one more pair. */
  record(
    values: Readonly<Record<string, string>> | undefined,
    field: string,
    extra?: readonly [string, string],
  ): void {
    const keys = values === undefined ? [] : Object.keys(values);
    this.#count(keys.length + (extra === undefined ? 0 : 1), field);
    for (const key of keys) {
      this.string(key, `${field} key`);
      // Only the present keys are looked up.
      this.string((values as Readonly<Record<string, string>>)[key] as string, `${field}[${key}]`);
    }
    if (extra !== undefined) {
      this.string(extra[0], `${field} key`);
      this.string(extra[1], `${field}[${extra[0]}]`);
    }
  }

  list<Item>(
    items: readonly Item[],
    counter: Counter,
    encode: (out: Writer, item: Item) => void,
  ): void {
    if (counter === 'u16') this.u16(items.length, 'count');
    else this.u32(items.length, 'count');
    for (const item of items) encode(this, item);
  }

  #count(count: number, field: string): void {
    if (count > SHORT_MAX) {
      throw new RangeError(`${field} has ${count} entries; at most ${SHORT_MAX} are possible`);
    }
    this.u16(count, field);
  }

  #integer(value: number, max: number, field: string): void {
    if (!Number.isInteger(value) || value < 0 || value > max) {
      throw new RangeError(`${field} must be an integer from 0 to ${max}, not ${String(value)}`);
    }
  }

  #room(size: number): Buffer {
    if (this.#at + size > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + size));
      this.#buffer.copy(larger, 0, 0, this.#at);
      this.#buffer = larger;
    }
    return this.#buffer;
  }
}

/** Reads fields from the front of a body and says which one is wrong. */
export class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get atEnd(): boolean {
    return this.#at >= this.#buffer.length;
  }

  u8(field: string): number {
    return this.#buffer.readUInt8(this.#take(1, field));
  }

  u16(field: string): number {
    return this.#buffer.readUInt16BE(this.#take(2, field));
  }

  u32(field: string): number {
    return this.#buffer.readUInt32BE(this.#take(4, field));
  }

  u64(field: string): bigint {
    return this.#buffer.readBigUInt64BE(this.#take(8, field));
  }

  i64(field: string): bigint {
    return this.#buffer.readBigInt64BE(this.#take(8, field));
  }

  f64(field: string): number {
    return this.#buffer.readDoubleBE(this.#take(8, field));
  }

  bool(field: string): boolean {
    const value = this.u8(field);
    if (value > 1) throw new InvalidBodyError(field, `${value} is neither 0 nor 1`);
    return value === 1;
  }

  string(field: string): string {
    const size = this.u16(field);
    const start = this.#take(size, field);
    const bytes = this.#buffer.subarray(start, start + size);
    if (!isUtf8(bytes)) throw new InvalidBodyError(field, 'not valid UTF-8');
    return bytes.toString();
  }

  optionalString(field: string): string | null {
    return this.bool(field) ? this.string(field) : null;
  }

  bytes(field: string): Uint8Array {
    const size = this.u32(field);
    const start = this.#take(size, field);
    return new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + start, size);
  }

  strings(field: string): string[] {
    const count = this.#claimed(this.u16(field), 2, field);
    return Array.from({ length: count }, (_, index) => this.string(`${field}[${index}]`));
  }

  map(field: string): Map<string, string> {
    const count = this.#claimed(this.u16(field), 4, field);
    const found = new Map<string, string>();
    for (let index = 0; index < count; index++) {
      const key = this.string(`${field}[${index}] key`);
      found.set(key, this.string(`${field}[${index}] value`));
    }
    return found;
  }

  list<Item>(field: string, counter: Counter, codec: RecordCodec<Item>): Item[] {
    const claimed = counter === 'u16' ? this.u16(field) : this.u32(field);
    const count = this.#claimed(claimed, codec.fewestBytes, field);
    const items: Item[] = [];
    try {
      for (let index = 0; index < count; index++) items.push(codec.decode(this));
    } catch (error) {
      if (!(error instanceof InvalidBodyError)) throw error;
      throw new InvalidBodyError(`${field}[${items.length}].${error.field}`, error.problem);
    }
    return items;
  }

  /** Checks a count against what is there before anything is made for it. */
  #claimed(count: number, fewestBytes: number, field: string): number {
    const left = this.#buffer.length - this.#at;
    if (count * fewestBytes > left) {
      throw new InvalidBodyError(field, `${count} entries are claimed, ${left} bytes are left`);
    }
    return count;
  }

  #take(size: number, field: string): number {
    const start = this.#at;
    if (start + size > this.#buffer.length) {
      const left = this.#buffer.length - start;
      throw new InvalidBodyError(field, `${size} bytes are needed, ${left} are left`);
    }
    this.#at = start + size;
    return start;
  }
}
