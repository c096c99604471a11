import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';

import { refusal } from '../../src/errors.js';
import { settingsOf } from '../../src/options.js';
import { Outbox, type Flight } from '../../src/outbox.js';
import { enqueueRuns } from '../../src/outgoing.js';
import { Spares, spares } from '../../src/spares.js';
import { Ticket, type Run, type Stored } from '../../src/ticket.js';
import { Code } from '../../src/wire/catalogue.js';
import { Reader, Writer } from '../../src/wire/codec.js';

const KIB = 1024;

describe('spare memory', () => {
  it('is used again, and dropped when more is needed', () => {
    const kept = new Spares();
    const first = kept.take(100 * KIB);
    assert.ok(first.length >= 100 * KIB);
    kept.give(first);
    assert.equal(kept.take(90 * KIB), first);
    kept.give(first);
    assert.notEqual(kept.take(200 * KIB), first);
    assert.equal(kept.bytes, 0);
  });

  it('is bounded, and is neither for small nor for large frames', () => {
    const kept = new Spares();
    for (let n = 0; n < 100; n++) kept.give(Buffer.allocUnsafe(128 * KIB));
    assert.equal(kept.bytes, 4 * KIB * KIB);
    const others = new Spares();
    others.give(Buffer.allocUnsafe(KIB));
    others.give(Buffer.allocUnsafe(2 * KIB * KIB));
    assert.equal(others.bytes, 0);
    assert.equal(others.take(2 * KIB * KIB).length, 2 * KIB * KIB);
  });
});

describe('the memory of an enqueue', () => {
  const settings = settingsOf({}, false);
  const flights: Flight[] = [];
  const outbox = new Outbox(
    settings,
    (_opcode, _parts, flight) => flights.push(flight),
    () => undefined,
    () => undefined,
  );
  const send = (count: number): Flight => {
    const messages = Array.from({ length: count }, (_, n) => ({
      queue: 'q',
      payload: Buffer.alloc(20 * KIB, n),
    }));
    const ticket = new Ticket<Stored>(count, () => undefined);
    for (const run of enqueueRuns(messages, ticket, settings)) outbox.add(run, 0);
    outbox.pump(0);
    return flights.pop() as Flight;
  };
  const stored = (count: number): Buffer => {
    const out = new Writer(64);
    out.u32(count, 'count');
    for (let n = 0; n < count; n++) {
      out.u8(Code.Ok, 'code');
      out.string(`id-${n}`, 'id');
    }
    return out.take();
  };

  it('is spare when the broker has answered, and not before', () => {
    const flight = send(2);
    const { memory } = flight.runs[0] as Run;
    assert.ok(memory !== undefined);
    const before = spares.bytes;
    outbox.answered(flight, stored(2));
    assert.equal(spares.bytes, before + memory.length);
    assert.equal(spares.take(memory.length), memory);
  });

  it('is nobody else’s while a part of a frame that was refused is under way', () => {
    outbox.refused(send(2), refusal(Code.InvalidFrame, 'no', undefined));
    const [first, second] = flights.splice(0) as [Flight, Flight];
    const before = spares.bytes;
    outbox.answered(first, stored(1));
    assert.equal(spares.bytes, before);
    const from = new Reader((second.runs[0] as Run).bytes);
    assert.equal(from.string('queue'), 'q');
    assert.equal(from.u16('headers'), 0);
    assert.deepEqual(Buffer.from(from.bytes('payload')), Buffer.alloc(20 * KIB, 1));
  });
});

describe('text', () => {
  it('is written alike by the short way and by the long one', () => {
    for (const text of [
      '',
      'q',
      'ascii only',
      'é',
      'ascii, then é',
      '日本',
      '🙂',
      'x'.repeat(64),
    ]) {
      for (const all of [text, text + 'y'.repeat(100)]) {
        const out = new Writer(0);
        out.string(all, 'text');
        const bytes = Buffer.from(all);
        const size = Buffer.from([bytes.length >> 8, bytes.length & 0xff]);
        assert.deepEqual(out.take(), Buffer.concat([size, bytes]));
      }
    }
  });
});
