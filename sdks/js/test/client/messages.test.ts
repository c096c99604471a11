import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { inspect } from 'node:util';

import {
  BatchNotFoundError,
  Client,
  InvalidConfigValueError,
  LuaCompilationError,
  MessageNotFoundError,
  NotADLQError,
  QueueAlreadyExistsError,
  QueueNotFoundError,
  type Message,
} from '../../src/index.js';
import { Broker } from '../support/broker.js';

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

async function take(queue: string, count: number): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of client.consume(queue)) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

describe('a message', () => {
  it('goes from enqueue to ack with all its fields', async () => {
    await client.createQueue('whole', {
      onEnqueue: `function on_enqueue(msg)
        return { fairness_key = msg.headers.tenant, weight = 3, throttle_keys = { "a", "b" } }
      end`,
    });
    const began = Date.now() - 60_000;
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const payload = new Uint8Array([0, 1, 254, 255]);
    const id = await client.enqueue('whole', { tenant: 'größe' }, payload, { traceparent });
    const [message] = await take('whole', 1);
    assert.ok(message);
    assert.equal(message.id, id);
    assert.equal(message.queue, 'whole');
    assert.deepEqual(message.headers, { tenant: 'größe', traceparent });
    assert.equal(message.traceparent, traceparent);
    assert.deepEqual(message.payload, payload);
    assert.equal(message.fairnessKey, 'größe');
    assert.equal(message.weight, 3);
    assert.deepEqual(message.throttleKeys, ['a', 'b']);
    assert.equal(message.attemptCount, 0);
    assert.ok(message.enqueuedAtMs > began && message.leasedAtMs >= message.enqueuedAtMs);
    assert.equal(message.enqueuedAt.getTime(), message.enqueuedAtMs);
    assert.match(inspect(message), /payloadBytes":4/);
    await message.ack();
    await assert.rejects(message.ack(), MessageNotFoundError);
    assert.equal((await client.getStats('whole')).inFlight, 0);
  });

  it('may have any text as header names and nothing in it at all', async () => {
    await client.createQueue('edges');
    const headers: Record<string, string> = { '': 'empty name', 2: 'two', 1: 'one', 日本: '🐟' };
    Object.defineProperty(headers, '__proto__', { value: 'safe', enumerable: true });
    await client.enqueue('edges', headers, '');
    await client.enqueue('edges', null, JSON.stringify({ a: 1 }));
    const [full, bare] = await take('edges', 2);
    assert.ok(full && bare);
    assert.deepEqual(Object.entries(full.headers).sort(), Object.entries(headers).sort());
    assert.equal(Object.getPrototypeOf(full.headers), Object.prototype);
    assert.equal(full.payload.length, 0);
    assert.deepEqual(bare.headers, {});
    assert.deepEqual(bare.json(), { a: 1 });
  });

  it('of 20 MiB goes through in continued frames, both ways', async () => {
    await client.createQueue('large');
    const payload = Buffer.alloc(20 * 1024 * 1024, 'fila-');
    await client.enqueue('large', null, payload);
    const [message] = await take('large', 1);
    assert.ok(message);
    assert.ok(payload.equals(message.payload));
    await message.ack();
  });

  it('that failed comes again with its attempts, then lies among the dead letters', async () => {
    await client.createQueue('failing', {
      onFailure: `function on_failure(msg)
        if msg.attempts >= 2 then return { action = "dlq" } end
        return { action = "retry" }
      end`,
    });
    await client.enqueue('failing', null, 'x');
    const attempts: number[] = [];
    for await (const message of client.consume('failing')) {
      attempts.push(message.attemptCount);
      await message.nack('no luck');
      if (attempts.length === 2) break;
    }
    assert.deepEqual(attempts, [0, 1]);
    assert.equal((await client.getStats('failing.dlq')).depth, 1);
    assert.equal(await client.redrive('failing.dlq'), 1);
    assert.equal((await client.getStats('failing')).depth, 1);
    await assert.rejects(client.redrive('failing'), NotADLQError);
  });

  it('that is released keeps its place and its attempts', async () => {
    await client.createQueue('released');
    await client.enqueueMany(['1', '2'].map((payload) => ({ queue: 'released', payload })));
    const consumer = client.consume('released', { prefetch: 1 });
    const first = await consumer.receive();
    assert.equal(first?.text(), '1');
    await first.release();
    const again = await consumer.receive();
    assert.equal(again?.text(), '1');
    assert.equal(again.attemptCount, 0);
    consumer.close();
  });
});

describe('enqueue', () => {
  it('takes delays, idempotency keys and places', async () => {
    await client.createQueue('options');
    const key = { idempotencyKey: 'order-7' };
    const first = await client.enqueue('options', null, 'once', key);
    assert.equal(await client.enqueue('options', null, 'once', key), first);
    const results = await client.enqueueMany([
      { queue: 'options', payload: 'a', ...key },
      { queue: 'options', payload: 'b', fairnessKey: 'acme', weight: 2, throttleKeys: ['t'] },
      { queue: 'options', payload: 'c', delayMs: 3_600_000 },
    ]);
    assert.deepEqual(
      results.map((one) => one.duplicate),
      [true, false, false],
    );
    const placed = (await take('options', 2)).find((one) => one.text() === 'b');
    assert.equal(placed?.fairnessKey, 'acme');
    assert.deepEqual(placed.throttleKeys, ['t']);
    const { depth, inFlight } = await client.getStats('options');
    assert.deepEqual([depth, inFlight], [1, 2]);
    await assert.rejects(
      client.enqueue('options', null, '', { delayMs: 400 * 86_400_000 }),
      InvalidConfigValueError,
    );
  });

  it('tells a result for each of many, and one refused costs only itself', async () => {
    await client.createQueue('many');
    const messages = Array.from({ length: 2500 }, (_, n) => ({
      queue: n === 1234 ? 'nowhere' : 'many',
      payload: String(n),
    }));
    const results = await client.enqueueMany(messages);
    assert.equal(results.length, 2500);
    assert.ok(results[1234]?.error instanceof QueueNotFoundError);
    assert.equal(results.filter((one) => one.id !== undefined).length, 2499);
    const ids = results.flatMap((one) => one.id ?? []);
    assert.deepEqual(ids, [...ids].sort());
    const texts = (await take('many', 100)).map((message) => message.text());
    assert.deepEqual(
      texts,
      Array.from({ length: 100 }, (_, n) => String(n)),
    );
    assert.deepEqual(await client.enqueueMany([]), []);
  });

  it('keeps the order of calls that nobody awaits in between', async () => {
    await client.createQueue('order');
    await Promise.all(
      Array.from({ length: 300 }, (_, n) =>
        client.enqueue('order', null, String(n), n % 3 ? {} : { fairnessKey: 'default' }),
      ),
    );
    const texts = (await take('order', 300)).map((message) => Number(message.text()));
    assert.deepEqual(
      texts,
      Array.from({ length: 300 }, (_, n) => n),
    );
  });

  it('to no queue rejects with the cause', async () => {
    await assert.rejects(client.enqueue('nowhere', null, ''), (error: unknown) => {
      assert.ok(error instanceof QueueNotFoundError);
      assert.equal(error.message, 'queue "nowhere" does not exist');
      assert.equal(error.code, 'QueueNotFound');
      assert.equal(error.retryable, false);
      return true;
    });
  });

  it('with an argument that cannot be sent rejects before anything is', async () => {
    await assert.rejects(client.enqueue('many', { a: 1 } as never, ''), TypeError);
    await assert.rejects(client.enqueue('x'.repeat(70_000), null, ''), RangeError);
    await assert.rejects(client.enqueue('many', null, '', { timeoutMs: -1 }), RangeError);
  });

  it('asks for the present trace, unless the message brings one', async () => {
    const traced = await Client.connect(broker.address, { traceparent: () => '00-now-01' });
    await client.createQueue('traced');
    await traced.enqueue('traced', { a: 'b' }, '');
    await traced.enqueue('traced', { traceparent: '00-own-01' }, '');
    const headers = (await take('traced', 2)).map((message) => message.headers);
    assert.deepEqual(headers, [{ a: 'b', traceparent: '00-now-01' }, { traceparent: '00-own-01' }]);
    await traced.close();
  });
});

describe('settling by id', () => {
  it('acks, nacks and releases many in one call, with a result for each', async () => {
    await client.createQueue('settled');
    const payloads = Array.from({ length: 6 }, (_, n) => String(n));
    await client.enqueueMany(payloads.map((payload) => ({ queue: 'settled', payload })));
    const consumer = client.consume('settled');
    const ids: string[] = [];
    while (ids.length < 6) {
      ids.push(...(await consumer.receiveMany(6)).map((message) => message.id));
    }
    const [a, b, c, d, e, f] = ids as [string, string, string, string, string, string];
    const unknown = '00000000-0000-7000-8000-000000000000';
    const results = await client.ackMany('settled', [a, unknown, b]);
    assert.deepEqual(
      results.map(({ id, error }) => [id, error?.code]),
      [
        [a, undefined],
        [unknown, 'MessageNotFound'],
        [b, undefined],
      ],
    );
    consumer.close();
    assert.deepEqual(
      (await client.nackMany('settled', [c], 'why')).map((one) => one.error),
      [undefined],
    );
    await client.nack('settled', d, 'why');
    assert.deepEqual(
      (await client.releaseMany('settled', [e])).map((one) => one.error),
      [undefined],
    );
    await client.release('settled', f);
    assert.deepEqual(await client.ackMany('settled', []), []);
    const { depth, inFlight } = await client.getStats('settled');
    assert.deepEqual([depth, inFlight], [4, 0]);
    await assert.rejects(client.ack('settled', a), /is not leased from queue "settled"/);
  });
});

describe('administration', () => {
  it('makes, lists and deletes queues', async () => {
    assert.ok(await client.createQueue('made', { visibilityTimeoutMs: 45_000 }));
    await assert.rejects(client.createQueue('made'), QueueAlreadyExistsError);
    await assert.rejects(client.createQueue('bad', { onEnqueue: 'function' }), LuaCompilationError);
    assert.ok((await client.listQueues()).some((queue) => queue.name === 'made.dlq'));
    await client.deleteQueue('made');
    await assert.rejects(client.getStats('made'), QueueNotFoundError);
    await assert.rejects(client.createQueue('v', { visibilityTimeoutMs: -5 }), RangeError);
  });

  it('sets, gets, lists and removes config', async () => {
    assert.equal(await client.getConfig('throttle.js'), undefined);
    await client.setConfig('throttle.js', '10,20');
    assert.equal(await client.getConfig('throttle.js'), '10,20');
    assert.deepEqual(await client.listConfig('throttle.'), { 'throttle.js': '10,20' });
    await client.setConfig('throttle.js', null);
    assert.deepEqual(await client.listConfig('throttle.'), {});
  });

  it('pauses, explains, resumes and purges', async () => {
    await client.createQueue('held');
    const id = await client.enqueue('held', null, 'x', { fairnessKey: 'acme' });
    await client.pauseQueue('held', 'migration');
    const document = await client.explain<{ paused: { reason: string } }>('held');
    assert.equal(document.paused.reason, 'migration');
    assert.ok(await client.explain('held', { messageId: id }));
    assert.ok(await client.explain());
    await client.resumeQueue('held');
    await client.pauseKey('held', 'acme', 'slow down');
    await client.resumeKey('held', 'acme');
    assert.equal(await client.purge('held', { fairnessKey: 'nobody' }), 0);
    assert.equal(await client.purge('held'), 1);
  });

  it('leases, extends, lists, acks and releases batches', async () => {
    await client.createQueue('leased');
    const messages = Array.from({ length: 10 }, (_, n) => ({
      queue: 'leased',
      payload: String(n),
    }));
    await client.enqueueMany(messages);
    const batch = await client.leaseBatch('leased', 's/0', { maxMessages: 4, waitMs: 1000 });
    assert.deepEqual([batch.again, batch.messageCount, batch.messages.length], [false, 4, 4]);
    assert.equal(batch.messages[0]?.text(), '0');
    await batch.messages[0]?.ack();
    const again = await client.leaseBatch('leased', 's/0');
    assert.deepEqual([again.again, again.messageCount], [true, 3]);
    await client.leaseBatch('leased', 's/1', { maxMessages: 2, form: 'count' });
    assert.deepEqual(
      (await client.listBatches('leased')).map((one) => [one.name, one.messages]),
      [
        ['s/0', 3],
        ['s/1', 2],
      ],
    );
    const counted = await client.extendBatch('leased', 's', 60_000, { below: 2 });
    assert.deepEqual(counted, { batches: 2, messages: 5 });
    assert.deepEqual(await client.ackBatch('leased', 's/0'), { batches: 1, messages: 3 });
    assert.deepEqual(await client.releaseBatch('leased', 's/1'), { batches: 1, messages: 2 });
    await assert.rejects(client.leaseBatch('leased', 's/0'), BatchNotFoundError);
  });

  it('browses without taking', async () => {
    await client.createQueue('seen');
    await client.enqueue('seen', { a: 'b' }, 'now');
    await client.enqueue('seen', null, 'later', { delayMs: 3_600_000 });
    const found = [];
    for await (const { state, payload, headers } of client.browse('seen')) {
      found.push([state, new TextDecoder().decode(payload), headers]);
    }
    assert.deepEqual(found, [
      ['ready', 'now', { a: 'b' }],
      ['delayed', 'later', {}],
    ]);
    const delayed = [];
    for await (const one of client.browse('seen', { states: ['delayed'] })) delayed.push(one);
    assert.equal(delayed.length, 1);
    assert.equal((await client.getStats('seen')).depth, 2);
  });
});
