import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Client, QueueNotFoundError, type Message } from '../../src/index.js';
import { Broker } from '../support/broker.js';
import { until } from '../support/until.js';

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

async function filled(queue: string, count: number): Promise<void> {
  await client.createQueue(queue);
  const messages = Array.from({ length: count }, (_, n) => ({ queue, payload: String(n) }));
  const results = await client.enqueueMany(messages);
  assert.ok(results.every((one) => one.error === undefined));
}

describe('a consumer', () => {
  it('is given no more than its prefetch until it settles', async () => {
    await filled('credit', 20);
    const consumer = client.consume('credit', { prefetch: 5 });
    const first: Message[] = [];
    while (first.length < 5) first.push(...(await consumer.receiveMany(10)));
    assert.equal(await consumer.receive({ timeoutMs: 200 }), undefined);
    assert.equal((await client.getStats('credit')).inFlight, 5);
    await first[0]?.ack();
    assert.equal((await consumer.receive())?.text(), '5');
    consumer.close();
  });

  it('takes no number of messages that is none', async () => {
    await filled('limits', 1);
    const consumer = client.consume('limits');
    for (const limit of [0, -1, 1.5, NaN]) {
      await assert.rejects(consumer.receiveMany(limit), RangeError);
    }
    assert.equal((await consumer.receiveMany(1)).length, 1);
    consumer.close();
  });

  it('hands back at once what nobody read when it is closed', async () => {
    await filled('unread', 10);
    const consumer = client.consume('unread');
    const message = await consumer.receive();
    consumer.close();
    await until(async () => (await client.getStats('unread')).inFlight === 1, 'unread came back');
    await message?.ack();
    assert.equal((await client.getStats('unread')).depth, 9);
    assert.equal(await consumer.receive(), undefined);
    assert.equal(consumer.closed, true);
  });

  it('is closed by leaving its loop', async () => {
    await filled('left', 3);
    const consumer = client.consume('left');
    for await (const message of consumer) {
      await message.ack();
      break;
    }
    assert.equal(consumer.closed, true);
    await until(async () => (await client.getStats('left')).activeConsumers === 0, 'cancelled');
  });

  it('of a queue that does not exist throws in the first step', async () => {
    const consumer = client.consume('no-such-queue');
    await assert.rejects(consumer.ready(), QueueNotFoundError);
    await assert.rejects(async () => {
      for await (const message of client.consume('no-such-queue')) assert.ok(message);
    }, QueueNotFoundError);
  });

  it('whose queue is deleted throws that, and does not just end', async () => {
    await client.createQueue('doomed');
    const consumer = client.consume('doomed');
    await consumer.ready();
    const next = consumer.next();
    await client.deleteQueue('doomed');
    await assert.rejects(next, QueueNotFoundError);
    await assert.rejects(consumer.receive(), QueueNotFoundError);
  });

  it('may be one of several on one connection, also of one queue', async () => {
    await filled('shared', 40);
    await filled('other', 5);
    const seen = new Set<string>();
    const consumers = [1, 2].map(() => client.consume('shared', { prefetch: 10 }));
    await Promise.all(
      consumers.map(async (consumer) => {
        for await (const message of consumer) {
          seen.add(message.id);
          await message.ack();
          if (seen.size === 40) for (const one of consumers) one.close();
        }
      }),
    );
    assert.equal(seen.size, 40);
    const other = client.consume('other');
    assert.equal((await other.receive())?.queue, 'other');
    other.close();
  });

  it('serves several workers that wait at the same time', async () => {
    await client.createQueue('workers');
    const consumer = client.consume('workers');
    const waiting = [1, 2, 3].map(() => consumer.receive());
    await client.enqueueMany(['a', 'b', 'c'].map((payload) => ({ queue: 'workers', payload })));
    const texts = (await Promise.all(waiting)).map((message) => message?.text());
    assert.deepEqual(texts.sort(), ['a', 'b', 'c']);
    consumer.close();
  });

  it('gives batches of what is there', async () => {
    await filled('batches', 250);
    let count = 0;
    for await (const messages of client.consume('batches').batches(100)) {
      assert.ok(messages.length >= 1 && messages.length <= 100);
      count += messages.length;
      await client.ackMany(
        'batches',
        messages.map((message) => message.id),
      );
      if (count === 250) break;
    }
    assert.equal((await client.getStats('batches')).inFlight, 0);
  });

  it('stops waiting when its signal says so', async () => {
    await client.createQueue('signal');
    const whole = new AbortController();
    const consumer = client.consume('signal', { signal: whole.signal });
    await consumer.ready();
    const once = new AbortController();
    const waiting = consumer.receive({ signal: once.signal });
    once.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    assert.equal(consumer.closed, false);
    const next = consumer.next();
    whole.abort(new Error('enough'));
    await assert.rejects(next, /enough/);
    await until(async () => (await client.getStats('signal')).activeConsumers === 0, 'cancelled');
    assert.throws(() => client.consume('signal', { signal: AbortSignal.abort() }));
  });

  it('refuses a prefetch that cannot be', () => {
    assert.throws(() => client.consume('q', { prefetch: 0 }), RangeError);
    assert.throws(() => client.consume('q', { prefetch: 70_000 }), RangeError);
    assert.throws(() => client.consume(7 as never), TypeError);
  });

  it('is closed by await using', async () => {
    await filled('using', 1);
    const consumer = client.consume('using');
    await consumer[Symbol.asyncDispose]();
    assert.equal(consumer.closed, true);
  });
});
