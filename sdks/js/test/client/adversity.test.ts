/**
 * How calls and consumers end when nobody means well: brokers that stay away, answers that cannot be
 * read, connections that die with work on them, programs that are too busy to listen.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import {
  Client,
  ConnectionLostError,
  ProtocolError,
  RequestTimeoutError,
  UnauthorizedError,
  type ClientOptions,
} from '../../src/index.js';
import {
  ConsumeOk,
  decodeBody,
  EnqueueWith,
  EnqueueWithResult,
  Opcode,
} from '../../src/wire/index.js';
import { Broker } from '../support/broker.js';
import { obliging, Peer, polite, type Script } from '../support/peer.js';
import { until } from '../support/until.js';

const open: { stop(): Promise<void> }[] = [];
let broker: Broker;

before(async () => {
  broker = await Broker.start();
});

after(async () => {
  await broker.stop();
});

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

async function peerOf(script: Script): Promise<Peer> {
  const peer = await Peer.start(script);
  open.push(peer);
  return peer;
}

async function connected(address: string, options: ClientOptions = {}): Promise<Client> {
  const client = await Client.connect(address, {
    reconnectMinMs: 5,
    reconnectMaxMs: 50,
    ...options,
  });
  open.push({ stop: () => client.close() });
  return client;
}

/** A frame whose flags nobody knows. */
function unreadable(opcode: number, requestId: number): Buffer {
  const frame = Buffer.from([0, 0, 0, 6, opcode, 0x80, 0, 0, 0, 0]);
  frame.writeUInt32BE(requestId, 6);
  return frame;
}

async function memoryOfBuffers(): Promise<number> {
  setFlagsFromString('--expose-gc');
  for (let round = 0; round < 3; round++) {
    (runInNewContext('gc') as () => void)();
    await sleep(50); // buffers are swept behind our back
  }
  return process.memoryUsage().arrayBuffers;
}

describe('a broker that stays away', () => {
  it('does not cost the memory of calls that were given up', async () => {
    const peer = await peerOf(obliging());
    const client = await connected(peer.address, {
      reconnectMinMs: 3_600_000,
      reconnectMaxMs: 3_600_000,
    });
    peer.disconnect();
    await until(() => !client.connected, 'the loss is noticed');
    const before = await memoryOfBuffers();
    for (let round = 0; round < 20; round++) {
      const calls = Array.from({ length: 10 }, () =>
        client.enqueue('q', null, new Uint8Array(1_000_000), { timeoutMs: 5 }),
      );
      for (const { status } of await Promise.allSettled(calls)) assert.equal(status, 'rejected');
    }
    const growth = (await memoryOfBuffers()) - before;
    assert.ok(growth < 100_000_000, `${growth} bytes are held for nobody`);
  });

  it('lets go of its snapshot without hiding why a loop ended', async () => {
    const client = await connected(broker.address);
    await client.createQueue('looked-at');
    await client.enqueue('looked-at', null, 'x');
    for await (const message of client.browse('looked-at')) {
      assert.equal(Buffer.from(message.payload).toString(), 'x');
      await client.close();
      break;
    }
  });
});

describe('an answer that cannot be read', () => {
  // Sending the messages again would store them twice.
  it('is not taken for a refusal', async () => {
    const peer = await peerOf(
      polite(({ operation, requestId, connection }) => {
        if (operation === 'Enqueue') connection.write(unreadable(Opcode.EnqueueResult, requestId));
      }),
    );
    const client = await connected(peer.address);
    const messages = ['q', 'q', 'r', 'q'].map((queue) => ({ queue, payload: 'x' }));
    for (const { error } of await client.enqueueMany(messages)) {
      assert.ok(error instanceof ConnectionLostError && error.cause instanceof ProtocolError);
    }
    assert.equal(peer.frames('Enqueue').length, 1);
  });

  it('ends a consumer on both sides', async () => {
    const peer = await peerOf(
      polite(({ operation, requestId, connection }) => {
        if (operation !== 'Consume') return;
        connection.send(ConsumeOk, requestId, { consumerId: 'c-1' });
        connection.write(unreadable(Opcode.Delivery, requestId));
      }),
    );
    const client = await connected(peer.address);
    await assert.rejects(client.consume('q').receive(), ProtocolError);
    await until(() => peer.frames('CancelConsume').length === 1, 'the broker is told');
  });
});

describe('a lost connection', () => {
  it('keeps the order of what is sent again, and sends again what has a key beside what has none', async () => {
    let broken = false;
    const stored: string[] = [];
    const peer = await peerOf(
      polite(({ operation, requestId, body, connection }) => {
        if (operation !== 'EnqueueWith') return;
        const keys = decodeBody(EnqueueWith, body).messages.map((one) => one.idempotencyKey);
        if (!broken) {
          broken = keys.includes('last');
          if (broken) connection.destroy();
          return;
        }
        stored.push(...keys);
        const results = keys.map(() => ({ code: 0, messageId: 'id', duplicate: false }));
        connection.send(EnqueueWithResult, requestId, { results });
      }),
    );
    const client = await connected(peer.address, {
      maxBatchMessages: 10,
      batchMode: 'disabled',
    });
    const keys = [...Array.from({ length: 50 }, (_, n) => String(n)), '', 'last'];
    const results = await client.enqueueMany(
      keys.map((idempotencyKey) => ({ queue: 'q', payload: '', idempotencyKey, weight: 1 })),
    );
    assert.deepEqual(
      stored,
      keys.filter((key) => key !== ''),
    );
    results.forEach(({ error }, index) => {
      assert.equal(error instanceof ConnectionLostError, keys[index] === '');
    });
  });

  it('to the node that was asked first is told to calls and consumers at a leader', async () => {
    const leader = await peerOf(
      polite(({ operation, requestId, connection }) => {
        if (operation === 'Consume') connection.send(ConsumeOk, requestId, { consumerId: 'c-1' });
      }),
    );
    let revoked = false;
    const follower = polite(({ requestId, connection }) => {
      connection.error(requestId, 12, 'elsewhere', { leader_addr: leader.address });
    });
    const seed = await peerOf((sent, peer) => {
      if (revoked) sent.connection.error(0, 10, 'the key was revoked');
      else follower(sent, peer);
    });
    const client = await connected(seed.address);
    const consumer = client.consume('q');
    await consumer.ready();
    const call = client.enqueue('q', null, 'x');
    await until(() => leader.frames('Enqueue').length === 1, 'the call is under way');
    const received = consumer.receive();
    revoked = true;
    seed.disconnect();
    await assert.rejects(call, ConnectionLostError);
    await assert.rejects(received, UnauthorizedError);
  });
});

describe('a program that is too busy to listen', () => {
  it('does not take its broker for dead', async () => {
    const lost: unknown[] = [];
    const client = await connected(broker.address, {
      keepAliveIntervalMs: 50,
      keepAliveTimeoutMs: 500,
    });
    client.on('disconnected', (event) => lost.push(event.reason));
    for (let round = 0; round < 4; round++) {
      await new Promise(setImmediate); // one look at its sockets, between two timers
      const end = performance.now() + 1000;
      while (performance.now() < end);
    }
    assert.deepEqual(lost, []);
  });
});

describe('a time without end', () => {
  it('is no millisecond', async () => {
    const client = await connected(broker.address, {
      connectTimeoutMs: Infinity,
      keepAliveIntervalMs: Infinity,
      keepAliveTimeoutMs: Infinity,
      timeoutMs: Infinity,
    });
    await client.createQueue('patient');
    const received = client.consume('patient').receive({ timeoutMs: Infinity });
    await sleep(100);
    await client.enqueue('patient', null, 'at last', { timeoutMs: 2 ** 40 });
    assert.equal((await received)?.text(), 'at last');
    const silent = await connected((await peerOf(polite())).address);
    await assert.rejects(silent.enqueue('q', null, 'x', { timeoutMs: 20 }), RequestTimeoutError);
  });
});
