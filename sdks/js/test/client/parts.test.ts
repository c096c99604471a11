import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { parseAddress } from '../../src/address.js';
import { Backoff } from '../../src/backoff.js';
import { Collector } from '../../src/batch.js';
import { Deque } from '../../src/deque.js';
import {
  ConnectionLostError,
  FilaError,
  NotLeaderError,
  OverloadedError,
  QueueNotFoundError,
  refusal,
  RefusedError,
} from '../../src/errors.js';
import { Client } from '../../src/index.js';
import { settingsOf } from '../../src/options.js';
import { enqueueRuns } from '../../src/outgoing.js';
import { Room } from '../../src/room.js';
import { Stream } from '../../src/stream.js';
import { Ticket, type Run, type Stored } from '../../src/ticket.js';
import { Writer } from '../../src/wire/index.js';

describe('an address', () => {
  it('is read as people write it', () => {
    const read = (text: string): unknown[] => {
      const { host, port, tls, text: shown } = parseAddress(text);
      return [host, port, tls, shown];
    };
    assert.deepEqual(read('localhost:7000'), ['localhost', 7000, false, 'localhost:7000']);
    assert.deepEqual(read('broker'), ['broker', 5555, false, 'broker:5555']);
    assert.deepEqual(read('[::1]:1'), ['::1', 1, false, '[::1]:1']);
    assert.deepEqual(read('https://b.example/'), ['b.example', 5555, true, 'b.example:5555']);
    assert.deepEqual(read('http://b:1'), ['b', 1, false, 'b:1']);
  });

  it('that cannot be one is refused with what to write instead', () => {
    assert.throws(() => parseAddress('::1'), /write an IPv6 address as \[host\]/);
    assert.throws(() => parseAddress(':5555'), /has no host/);
    assert.throws(() => parseAddress('host:0'), /not a port/);
    assert.throws(() => parseAddress('host:99999'), /not a port/);
    assert.throws(() => parseAddress('host:x'), /not a port/);
  });
});

describe('options', () => {
  it('that do not exist or cannot be are refused by the constructor', () => {
    assert.throws(() => new Client('h', { timeout: 5 } as never), /unknown option "timeout"/);
    assert.throws(() => new Client('h', { timeoutMs: 0 }), RangeError);
    assert.throws(() => new Client('h', { batchMode: 'off' as never }), /batchMode must be/);
    assert.throws(() => new Client('h', { clientCert: '-----BEGIN' }), /belong together/);
    assert.throws(() => new Client('h', { caCert: '/etc/ca.pem' }), /PEM text, not a path/);
    assert.throws(() => new Client('https://h', { tls: false }), /asks for TLS/);
    assert.throws(
      () => new Client('h', { caCert: '-----BEGIN CERTIFICATE-----\nnonsense' }),
      /cannot be used/,
    );
  });

  it('turn TLS on by a certificate or the address', () => {
    assert.equal(settingsOf({ caCert: '-----BEGIN' }, false).tls, true);
    assert.equal(settingsOf({}, true).tls, true);
    assert.equal(settingsOf({ apiKey: undefined }, false).tls, false);
  });
});

describe('pauses between attempts', () => {
  it('double up to a bound and are shortened by at most half', () => {
    const longest = new Backoff(50, 1000, () => 0);
    const shortest = new Backoff(50, 1000, () => 1);
    const pauses = (backoff: Backoff): number[] =>
      Array.from({ length: 7 }, () => backoff.nextMs());
    assert.deepEqual(pauses(longest), [50, 100, 200, 400, 800, 1000, 1000]);
    assert.deepEqual(pauses(shortest), [25, 50, 100, 200, 400, 500, 500]);
    longest.reset();
    assert.equal(longest.nextMs(), 50);
  });
});

describe('errors', () => {
  it('have a class, a code, the text and metadata of the broker', () => {
    const error = refusal(9, 'full', '', new Map([['retry_after_ms', '250']]));
    assert.ok(error instanceof OverloadedError && error instanceof FilaError);
    assert.ok(error instanceof Error);
    assert.equal(error.name, 'OverloadedError');
    assert.equal(error.code, 'ChannelFull');
    assert.equal(error.message, 'full');
    assert.equal(error.retryAfterMs, 250);
    assert.equal(error.retryable, true);
    assert.equal(refusal(1, '', 'queue "x"').message, 'queue "x" does not exist');
    assert.equal(refusal(0x7b, undefined).code, 'InternalError');
    const notLeader = refusal(12, 'no', '', new Map([['leader_addr', 'n2:5555']]));
    assert.ok(notLeader instanceof NotLeaderError);
    assert.equal(notLeader.leaderAddr, 'n2:5555');
  });

  it('keep their cause', () => {
    const cause = new Error('ECONNRESET');
    assert.equal(new ConnectionLostError('lost', { cause }).cause, cause);
    assert.ok(!('cause' in new ConnectionLostError('lost')));
  });

  it('are told apart by instanceof, also by classes of a user', () => {
    class Mine extends FilaError {}
    const found = refusal(1, 'x');
    assert.ok(found instanceof QueueNotFoundError);
    assert.ok(!(found instanceof OverloadedError));
    assert.ok(!(found instanceof Mine));
    assert.ok(!(new Error('x') instanceof RefusedError));
  });
});

describe('a deque', () => {
  it('keeps order through thousands of items and lets items go back', () => {
    const deque = new Deque<number>();
    for (let n = 0; n < 5000; n++) deque.push(n);
    for (let n = 0; n < 3000; n++) assert.equal(deque.shift(), n);
    deque.unshift([1, 2]);
    assert.equal(deque.length, 2002);
    assert.deepEqual([deque.shift(), deque.shift(), deque.shift()], [1, 2, 3000]);
    assert.equal(deque.takeAll().length, 1999);
    assert.equal(deque.shift(), undefined);
  });
});

describe('what a producer passes in', () => {
  const settings = settingsOf({ maxBatchMessages: 3, maxBatchBytes: 4096 }, false);
  const runsOf = (messages: Parameters<typeof enqueueRuns>[0]): Run[] =>
    enqueueRuns(messages, new Ticket<Stored>(messages.length, () => undefined), settings);

  it('is refused with the name of what is wrong', () => {
    const refuse = (message: object, what: RegExp): void => {
      assert.throws(() => runsOf([{ queue: 'q', payload: '', ...message }]), what);
    };
    refuse({ queue: 7 }, /queue must be a string/);
    refuse({ queue: 'x'.repeat(70_000) }, /queue has 70000 bytes; at most 65535/);
    refuse({ queue: '\ud800' }, /surrogate/);
    refuse({ payload: 7 }, /payload must be a Uint8Array or a string/);
    refuse({ headers: { a: 7 } }, /headers\[a\] must be a string/);
    refuse({ delayMs: -1 }, /delayMs must be 0 or more/);
    refuse({ delayMs: 1, weight: 1.5 }, /weight must be an integer/);
  });

  it('is cut into runs by count, by bytes and by form, in order', () => {
    const plain = (payload: string): { queue: string; payload: string } => ({
      queue: 'q',
      payload,
    });
    const counts = (messages: Parameters<typeof enqueueRuns>[0]): number[] =>
      runsOf(messages).map((run) => run.places.length);
    assert.deepEqual(counts(['a', 'b', 'c', 'd'].map(plain)), [3, 1]);
    assert.deepEqual(counts([plain('a'), plain('x'.repeat(5000)), plain('b')]), [1, 1, 1]);
    const keyed = { ...plain('k'), idempotencyKey: 'k' };
    assert.deepEqual(counts([plain('a'), keyed, keyed, plain('b')]), [1, 2, 1]);
    assert.deepEqual(
      runsOf([plain('a'), keyed]).map((run) => run.repeatable),
      [false, true],
    );
  });
});

describe('a collector', () => {
  const run = (opcode: number, count = 1): Run => ({
    opcode,
    bytes: Buffer.alloc(10 * count),
    ends: [],
    queues: [],
    ids: undefined,
    ticket: new Ticket<Stored>(count, () => undefined),
    places: Array.from({ length: count }, (_, place) => place),
    repeatable: false,
    hops: 0,
    dropped: false,
    outbox: undefined,
    weight: 0,
    memory: undefined,
  });
  const limits = { maxMessages: 300, maxBytes: 10_000, lingerMs: 5 };

  it('in auto mode sends at once, then waits for the answer or for a hundred', () => {
    const collector = new Collector({ ...limits, mode: 'auto' });
    collector.add(run(1), 0);
    assert.equal(collector.takeDue(0)?.length, 1);
    collector.framesInFlight = 1;
    collector.add(run(1), 0);
    assert.equal(collector.takeDue(1000), undefined);
    collector.add(run(1, 99), 0);
    assert.equal(collector.takeDue(0)?.length, 2);
    collector.add(run(1), 0);
    collector.framesInFlight = 0;
    assert.equal(collector.takeDue(0)?.length, 1);
  });

  it('in linger mode waits for the time or a full frame', () => {
    const collector = new Collector({ ...limits, mode: 'linger' });
    collector.add(run(1), 100);
    assert.equal(collector.takeDue(104), undefined);
    assert.equal(collector.dueAt, 105);
    assert.equal(collector.takeDue(105)?.length, 1);
    collector.add(run(1, 300), 200);
    assert.equal(collector.takeDue(200)?.length, 1);
  });

  it('keeps the order of two forms of one kind', () => {
    const collector = new Collector({ ...limits, mode: 'auto' });
    for (const opcode of [1, 1, 2, 1]) collector.add(run(opcode), 0);
    const frames = [];
    for (let taken = collector.takeDue(0); taken; taken = collector.takeDue(0)) {
      frames.push(taken.map((one) => one.opcode));
    }
    assert.deepEqual(frames, [[1, 1], [2], [1]]);
  });

  it('leaves out what was given up', () => {
    const collector = new Collector({ ...limits, mode: 'linger' });
    const [first, second] = [run(1), run(1)];
    collector.add(first, 0);
    collector.add(second, 0);
    first.dropped = true;
    collector.forget(first);
    assert.deepEqual(collector.takeDue(5), [second]);
    assert.equal(collector.takeDue(50), undefined);
  });
});

describe('a writer', () => {
  it('refuses numbers that do not fit', () => {
    const out = new Writer(1);
    assert.throws(() => {
      out.u8(256, 'x');
    }, /x must be an integer from 0 to 255/);
    assert.throws(() => {
      out.u64(-1n, 'x');
    }, RangeError);
    assert.throws(() => {
      out.u64(2n ** 64n, 'x');
    }, RangeError);
    assert.throws(() => {
      out.i64(2n ** 63n, 'x');
    }, RangeError);
  });
});

describe('the bound on bytes under way', () => {
  const run = (weight: number): Run =>
    ({ weight, dropped: false, outbox: undefined }) as unknown as Run;

  it('keeps nothing of those who gave up waiting', () => {
    const room = new Room(10, () => undefined);
    room.enter(run(10));
    const waiting = Array.from({ length: 100 }, () => run(1));
    for (const one of waiting) room.enter(one);
    for (const one of waiting) one.outbox?.forget(one);
    assert.deepEqual(room.takeWaiting(), []);
  });

  it('lets in whom a large one kept waiting, when that gives up', () => {
    const admitted: Run[] = [];
    const room = new Room(10, (one) => admitted.push(one));
    const [under, large, small] = [run(5), run(8), run(5)];
    for (const one of [under, large, small]) room.enter(one);
    large.outbox?.forget(large);
    assert.deepEqual(admitted, [under, small]);
    assert.equal(small.outbox, undefined);
  });
});

describe('a stream with a heart-beat', () => {
  it('forgets what is not leased any more, and not what was handed out since', () => {
    const never = (): Promise<void> => Promise.reject(new Error('not here'));
    const stream = new Stream('q', 10, never, never);
    const hand = (id: string): void => {
      stream.push(delivery(id));
      assert.equal(stream.take()?.id, id);
    };
    hand('gone');
    hand('again');
    assert.deepEqual(stream.heldIds(), ['gone', 'again']);
    stream.settled('again');
    hand('again'); // its lease ran out, and this consumer got it once more
    stream.forget(['gone', 'again']);
    assert.deepEqual(stream.heldIds(), ['again']);
  });
});

function delivery(id: string): Buffer {
  const out = new Writer(Buffer.alloc(128));
  out.u32(1, 'messages');
  out.string(id, 'id');
  out.string('q', 'queue');
  out.record(undefined, 'headers');
  out.bytes(new Uint8Array(), 'payload');
  out.string('', 'fairnessKey');
  out.u32(1, 'weight');
  out.strings([], 'throttleKeys');
  out.u32(0, 'attemptCount');
  out.u64(0n, 'enqueuedAtMs');
  out.u64(0n, 'leasedAtMs');
  return out.take();
}
