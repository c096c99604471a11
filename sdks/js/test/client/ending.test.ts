import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client, ClientClosedError, type LogEntry } from '../../src/index.js';
import { Broker } from '../support/broker.js';
import { Peer, polite } from '../support/peer.js';
import { until } from '../support/until.js';

let broker: Broker;
let witness: Client;

before(async () => {
  broker = await Broker.start();
  witness = await Client.connect(broker.address);
});

after(async () => {
  await witness.close();
  await broker.stop();
});

async function filled(queue: string, count: number): Promise<void> {
  await witness.createQueue(queue, { visibilityTimeoutMs: 600_000 });
  await witness.enqueueMany(
    Array.from({ length: count }, (_, n) => ({ queue, payload: String(n) })),
  );
}

describe('drain', () => {
  it('lets the message in hand be finished, answers what is under way, hands back the rest', async () => {
    await filled('drained', 10);
    await witness.createQueue('results');
    const client = await Client.connect(broker.address, { batchMode: 'linger', lingerMs: 300 });
    const consumer = client.consume('drained');
    let started!: () => void;
    const inHand = new Promise<void>((resolve) => (started = resolve));
    const handled: string[] = [];
    const loop = (async () => {
      for await (const message of consumer) {
        started();
        await sleep(100); // work
        await client.enqueue('results', null, message.text());
        await message.ack();
        handled.push(message.text());
      }
    })();
    await inHand;
    const lingering = client.enqueue('results', null, 'lingering');
    await client.drain();
    await loop;
    assert.ok(await lingering);
    assert.deepEqual(handled, ['0']);
    assert.equal((await witness.getStats('results')).depth, 2);
    const { depth, inFlight, activeConsumers } = await witness.getStats('drained');
    assert.deepEqual([depth, inFlight, activeConsumers], [9, 0, 0]);
    await assert.rejects(client.enqueue('results', null, 'late'), ClientClosedError);
    assert.throws(() => client.consume('drained'), ClientClosedError);
  });

  it('does not wait for ever for a message nobody settles', async () => {
    await filled('kept', 2);
    const client = await Client.connect(broker.address);
    const message = await client.consume('kept').receive();
    assert.ok(message);
    await client.drain({ graceMs: 50 });
    await until(async () => (await witness.getStats('kept')).inFlight === 0, 'handed back');
  });

  it('says so when calls were not answered in time', async () => {
    const peer = await Peer.start(polite());
    const client = await Client.connect(peer.address);
    const call = assert.rejects(client.enqueue('q', null, 'x'), ClientClosedError);
    await assert.rejects(client.drain({ timeoutMs: 50 }), { code: 'Timeout' });
    await call;
    await peer.stop();
  });
});

describe('close', () => {
  it('gives back what is held, ends consumers without an error and refuses calls', async () => {
    await filled('closed', 5);
    const client = await Client.connect(broker.address);
    const consumer = client.consume('closed');
    await consumer.receive();
    const next = consumer.next();
    await next;
    const waiting = (async () => {
      let count = 0;
      for await (const message of consumer) count += message.id.length > 0 ? 1 : 0;
      return count;
    })();
    const events: unknown[] = [];
    client.on('disconnected', () => events.push('disconnected'));
    client.on('closed', ({ reason }) => events.push(['closed', reason]));
    await client.close();
    await client.close();
    assert.ok((await waiting) <= 3);
    assert.deepEqual(events, ['disconnected', ['closed', undefined]]);
    await assert.rejects(client.listQueues(), ClientClosedError);
    await until(async () => (await witness.getStats('closed')).depth === 5, 'handed back');
  });

  it('fails what is under way', async () => {
    const peer = await Peer.start(polite());
    const client = await Client.connect(peer.address);
    const calls = [
      client.enqueue('q', null, 'x'),
      client.listQueues(),
      client.ack('q', 'id'),
      client.connect().then(() => client.getStats('q')),
    ].map((call) => assert.rejects(call, ClientClosedError));
    await until(() => peer.frames('GetStats').length === 1, 'all were sent');
    await client.close();
    await Promise.all(calls);
    await peer.stop();
  });

  it('works on a client that never connected, and is what await using does', async () => {
    const client = new Client('localhost:1');
    await client[Symbol.asyncDispose]();
    await assert.rejects(client.connect(), ClientClosedError);
  });

  it('while the client tries to come back ends the trying', async () => {
    const peer = await Peer.start(polite());
    const client = await Client.connect(peer.address, {
      reconnectMinMs: 60_000,
      reconnectMaxMs: 60_000,
    });
    const call = client.enqueue('q', null, 'x');
    const failed = assert.rejects(call);
    await until(() => peer.frames('Enqueue').length === 1, 'sent');
    await peer.stop();
    await failed;
    const waiting = assert.rejects(client.enqueue('q', null, 'y'), ClientClosedError);
    await client.close();
    await waiting;
  });

  it('lets the process end', async () => {
    const index = new URL('../../src/index.js', import.meta.url).href;
    const code = `
      const { Client } = await import('${index}');
      const client = await Client.connect('${broker.address}');
      await client.listQueues();
      await client.close();`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: 'inherit',
    });
    const [status] = (await once(child, 'exit')) as [number];
    assert.equal(status, 0);
  });
});

describe('the log hook', () => {
  it('hears of connections, never of keys, payloads or header values', async () => {
    const entries: LogEntry[] = [];
    const client = await Client.connect(broker.address, { log: (entry) => entries.push(entry) });
    await witness.createQueue('logged');
    await client.enqueue('logged', { token: 'secret-header' }, 'secret-payload');
    await client.close();
    assert.deepEqual(
      entries.map(({ level, message }) => `${level} ${message}`),
      ['debug connecting', 'info connected', 'info closed'],
    );
    assert.ok(entries.every(({ fields }) => fields.address === broker.address));
    assert.ok(!JSON.stringify(entries).includes('secret'));
  });

  it('may be left again', async () => {
    const client = new Client(broker.address);
    let heard = 0;
    const listener = (): void => {
      heard++;
    };
    const leave = client.on('connected', listener);
    leave();
    client.on('connected', listener);
    client.off('connected', listener);
    await client.connect();
    await client.close();
    assert.equal(heard, 0);
  });
});
