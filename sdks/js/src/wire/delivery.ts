/**
 * A Delivery read by its outline: where each message stands, not what is in it.
 *
 * Owns the bounds check of the one body that is decoded for every message a consumer receives. Fields
 * are read from the same memory when somebody asks for them; the generated codec, which makes all of
 * them at once, costs about four times as much.
 *
 * @module
 */

import type { Buffer } from 'node:buffer';

import { InvalidBodyError } from './codec.js';
import { DeliveryItem } from './operations.js';

/** attempt_count, enqueued_at_ms and leased_at_ms, which end every item. */
export const TAIL_BYTES = 4 + 8 + 8;

/** Where one delivered message stands within its body: its begin, its payload's size, its end. */
export type EachMessage = (at: number, payload: number, end: number) => void;

/** Calls `each` for every message, in order. */
export function scanDelivery(body: Buffer, each: EachMessage): void {
  const scan = new Scan(body);
  const count = scan.u32('messages');
  if (count * DeliveryItem.fewestBytes > scan.left) {
    throw new InvalidBodyError('messages', `${count} entries are claimed, ${scan.left} bytes left`);
  }
  for (let index = 0; index < count; index++) {
    const at = scan.at;
    scan.skipShort('id');
    scan.skipShort('queue');
    for (let pairs = scan.u16('headers'); pairs > 0; pairs--) {
      scan.skipShort('headers');
      scan.skipShort('headers');
    }
    const payload = scan.at;
    scan.skip(scan.u32('payload'), 'payload');
    scan.skipShort('fairness_key');
    scan.skip(4, 'weight');
    for (let keys = scan.u16('throttle_keys'); keys > 0; keys--) scan.skipShort('throttle_keys');
    scan.skip(TAIL_BYTES, 'leased_at_ms');
    each(at, payload, scan.at);
  }
}

/** The bytes of a text that stands there. */
export function textAt(body: Buffer, at: number, encoding: 'utf8' | 'latin1' = 'utf8'): string {
  return body.toString(encoding, at + 2, endOfText(body, at));
}

/** Where the field behind a text begins. */
export function endOfText(body: Buffer, at: number): number {
  return at + 2 + body.readUInt16BE(at);
}

class Scan {
  at = 0;

  constructor(readonly body: Buffer) {}

  get left(): number {
    return this.body.length - this.at;
  }

  u16(field: string): number {
    this.skip(2, field);
    return this.body.readUInt16BE(this.at - 2);
  }

  u32(field: string): number {
    this.skip(4, field);
    return this.body.readUInt32BE(this.at - 4);
  }

  skipShort(field: string): void {
    this.skip(this.u16(field), field);
  }

  skip(size: number, field: string): void {
    this.at += size;
    if (this.at > this.body.length) {
      throw new InvalidBodyError(field, `the body ends ${this.at - this.body.length} bytes early`);
    }
  }
}
