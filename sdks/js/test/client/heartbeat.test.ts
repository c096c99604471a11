import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client, MessageNotFoundError } from '../../src/index.js';
import { Broker } from '../support/broker.js';

// Long enough that a busy machine does not miss two of three beats.
const VISIBILITY_MS = 3_000;

let broker: Broker;
let client: Client;

before(async () => {
  broker = await Broker.start();
  client = await Client.connect(broker.address);
});

after(async () => {
  await client.close();
  await broker.stop();
});

describe('leases', () => {
  it('last as long as a consumer with a heart-beat holds its messages', async () => {
    await client.createQueue('slow', { visibilityTimeoutMs: VISIBILITY_MS });
    for (const payload of ['read', 'unread']) await client.enqueue('slow', null, payload);
    const consumer = client.consume('slow', { heartbeat: true });
    const first = await consumer.receive();
    await sleep(2 * VISIBILITY_MS);
    const { depth, inFlight } = await client.getStats('slow');
    assert.deepEqual([depth, inFlight], [0, 2]);
    await first?.ack();
    const second = await consumer.receive();
    assert.equal(second?.attemptCount, 0);
    await second.ack();
    consumer.close();
  });

  it('last while a client drains, as long as messages are in hand', async () => {
    await client.createQueue('drained', { visibilityTimeoutMs: VISIBILITY_MS });
    await client.enqueue('drained', null, 'x');
    const drained = await Client.connect(broker.address);
    const message = await drained.consume('drained', { heartbeat: true }).receive();
    assert.ok(message !== undefined);
    const ending = drained.drain({ timeoutMs: 60_000, graceMs: 60_000 });
    await sleep(2 * VISIBILITY_MS);
    await message.extend();
    await message.ack();
    await ending;
    const { depth, inFlight } = await client.getStats('drained');
    assert.deepEqual([depth, inFlight], [0, 0]);
  });

  it('are extended by hand', async () => {
    await client.createQueue('hand', { visibilityTimeoutMs: VISIBILITY_MS });
    await client.enqueue('hand', null, 'x');
    const consumer = client.consume('hand');
    const message = await consumer.receive();
    assert.ok(message !== undefined);
    await message.extend(60_000);
    const [result] = await client.extendMany('hand', [message.id], 60_000);
    assert.equal(result?.error, undefined);
    await sleep(1.5 * VISIBILITY_MS);
    await message.ack();
    await assert.rejects(message.extend(), MessageNotFoundError);
    consumer.close();
  });

  it('run out only so often where a queue limits attempts', async () => {
    await client.createQueue('limited', { maxAttempts: 1 });
    await client.enqueue('limited', null, 'poison');
    const consumer = client.consume('limited');
    await (await consumer.receive())?.nack('it broke');
    consumer.close();
    const dead = client.consume('limited.dlq');
    const letter = await dead.receive();
    assert.equal(letter?.headers['fila.dead.reason'], 'max_attempts');
    assert.equal(letter.headers['fila.dead.error'], 'it broke');
    await letter.ack();
    dead.close();
  });
});
