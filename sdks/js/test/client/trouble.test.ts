import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client, OverloadedError, type ClientOptions } from '../../src/index.js';
import { ConsumeOk, encodeFrames, ListQueuesResult } from '../../src/wire/index.js';
import { Broker } from '../support/broker.js';
import { deliver, enqueued, obliging, Peer, polite, type Script } from '../support/peer.js';
import { until } from '../support/until.js';

const QUICK: ClientOptions = { reconnectMinMs: 5, reconnectMaxMs: 50 };
const open: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

async function peerOf(script: Script): Promise<Peer> {
  const peer = await Peer.start(script);
  open.push(peer);
  return peer;
}

async function connected(address: string, options: ClientOptions = {}): Promise<Client> {
  const client = await Client.connect(address, { ...QUICK, ...options });
  open.push({ stop: () => client.close() });
  return client;
}

describe('a first connection', () => {
  it('that is refused fails at once, says why, and may be tried again', async () => {
    const peer = await Peer.start(obliging());
    const { address } = peer;
    await peer.stop();
    const client = new Client(address);
    await assert.rejects(client.connect(), (error: Error) => {
      assert.match(
        error.message,
        /cannot connect to .*: connection refused; is the broker running/,
      );
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'ECONNREFUSED');
      return true;
    });
    await assert.rejects(client.listQueues(), { code: 'ConnectFailed' });
    await client.close();
  });

  it('to a host that is none says so', async () => {
    await assert.rejects(Client.connect('no-such-host.invalid:1'), /host name cannot be resolved/);
  });

  it('that is not answered ends in time', async () => {
    const peer = await peerOf(() => undefined);
    await assert.rejects(Client.connect(peer.address, { connectTimeoutMs: 50 }), {
      code: 'ConnectFailed',
      message: `${peer.address} did not answer the handshake within 50 ms; is it a Fila broker?`,
    });
  });

  it('can be given up', async () => {
    const peer = await peerOf(() => undefined);
    const client = new Client(peer.address);
    open.push({ stop: () => client.close() });
    const signal = AbortSignal.timeout(50);
    await assert.rejects(client.connect({ signal }), { name: 'TimeoutError' });
  });

  it('of another version says which the broker speaks', async () => {
    const peer = await peerOf(({ connection }) => {
      connection.error(0, 13, 'version 1 is not spoken here', { max_version: '9' });
    });
    await assert.rejects(Client.connect(peer.address), {
      code: 'UnsupportedVersion',
      metadata: { max_version: '9' },
    });
  });

  it('to something else fails with a protocol error', async () => {
    const peer = await peerOf(({ connection }) => {
      connection.write(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    await assert.rejects(Client.connect(peer.address), { code: 'InvalidFrame' });
  });

  it('is opened by the first call when nobody asked for it before', async () => {
    const peer = await peerOf(obliging());
    const client = new Client(peer.address, { apiKey: 'secret' });
    open.push({ stop: () => client.close() });
    assert.equal(client.connected, false);
    assert.ok(await client.enqueue('q', null, 'x'));
    assert.equal(client.connected, true);
    assert.deepEqual(peer.apiKeys, ['secret']);
  });
});

describe('a lost connection', () => {
  it('fails what was sent, asks reads again, and sends what waited', async () => {
    let answering = false;
    const peer = await peerOf(
      polite((sent, self) => {
        if (answering) obliging()(sent, self);
      }),
    );
    const client = await connected(peer.address);
    const events: string[] = [];
    client.on('disconnected', () => events.push('disconnected'));
    client.on('reconnecting', ({ attempt }) => events.push(`reconnecting ${attempt}`));
    client.on('connected', ({ nodeId }) => events.push(`connected to node ${nodeId}`));
    const plain = client.enqueue('q', null, 'plain');
    const keyed = client.enqueue('q', null, 'keyed', { idempotencyKey: 'k' });
    const read = client.listQueues();
    await until(
      () => peer.frames('EnqueueWith').length + peer.frames('Enqueue').length >= 1,
      'sent',
    );
    await until(() => peer.frames('ListQueues').length === 1, 'asked');
    answering = true;
    peer.disconnect();
    await assert.rejects(plain, (error: Error) => {
      assert.match(error.message, /connection to .* lost before the broker answered/);
      return (error as { code?: string }).code === 'ConnectionLost';
    });
    const waited = client.enqueue('q', null, 'waited');
    assert.ok(await keyed);
    assert.ok(await waited);
    assert.deepEqual(await read, []);
    assert.deepEqual(enqueued(peer).flat(), ['plain', 'waited']);
    assert.deepEqual(events, ['disconnected', 'reconnecting 1', 'connected to node 7']);
  });

  it('is not mended when the client was told not to', async () => {
    const peer = await peerOf(polite());
    const client = await connected(peer.address, { reconnect: false });
    const call = client.enqueue('q', null, 'x');
    await until(() => peer.frames('Enqueue').length === 1, 'sent');
    peer.disconnect();
    await assert.rejects(call, { code: 'ConnectionLost' });
    await assert.rejects(client.enqueue('q', null, 'x'), { code: 'ConnectionLost' });
    assert.equal(peer.connections, 1);
  });

  it('gives a consumer its messages again, and forgets those it had not read', async () => {
    let round = 0;
    const peer = await peerOf(
      polite(({ operation, requestId, connection }) => {
        if (operation !== 'Consume') return;
        connection.send(ConsumeOk, requestId, { consumerId: 'c' });
        round++;
        deliver(connection, requestId, 'q', [`${round}-a`, `${round}-b`]);
      }),
    );
    const client = await connected(peer.address);
    const consumer = client.consume('q');
    assert.equal((await consumer.receive())?.text(), '1-a');
    peer.disconnect();
    await until(() => round === 2, 'subscribed again');
    await sleep(50);
    assert.equal((await consumer.receive())?.text(), '2-a');
    assert.equal((await consumer.receive())?.text(), '2-b');
  });

  it('is noticed when the other side is only silent', async () => {
    let silent = true;
    const peer = await peerOf((sent, self) => {
      if (sent.operation === 'Handshake' || !silent) obliging()(sent, self);
    });
    const client = await connected(peer.address, {
      keepAliveIntervalMs: 30,
      keepAliveTimeoutMs: 60,
    });
    const reason = await new Promise<Error>((resolve) => {
      client.on('disconnected', (event) => {
        resolve(event.reason);
      });
    });
    assert.match(reason.message, /was silent for \d+ ms/);
    silent = false;
    assert.ok(await client.enqueue('q', null, 'x'));
    const { connections } = peer;
    await sleep(400);
    assert.equal(peer.connections, connections, 'pongs keep the connection');
  });
});

describe('a strange broker', () => {
  it('gets its ping answered, and what it says of later versions is ignored', async () => {
    const peer = await peerOf((sent, self) => {
      obliging()(sent, self);
      if (sent.operation !== 'Handshake') return;
      sent.connection.write(Buffer.from('000000077700000000096e', 'hex'));
      sent.connection.write(Buffer.from('000000060300ee6b2800', 'hex'));
    });
    const client = await connected(peer.address);
    assert.ok(await client.enqueue('q', null, 'x'));
    await until(() => peer.frames('Pong').length === 1, 'a pong');
    assert.equal(peer.frames('Pong')[0]?.requestId, 4_000_000_000);
  });

  it('whose answer does not parse or fit costs the connection, not the client', async () => {
    let broken = true;
    const peer = await peerOf(
      polite(({ operation, requestId, connection }, self) => {
        if (operation !== 'ListQueues' && operation !== 'Enqueue') return;
        if (!broken) obliging()({ operation, requestId, body: Buffer.alloc(4), connection }, self);
        else if (operation === 'Enqueue') connection.send(ConsumeOk, requestId, { consumerId: '' });
        else connection.write(Buffer.concat(encodeFrames(0xf6, requestId, [Buffer.alloc(1)])));
      }),
    );
    const client = await connected(peer.address);
    await assert.rejects(client.enqueue('q', null, 'x'), /answered Enqueue with ConsumeOk/);
    const read = client.listQueues();
    await until(() => peer.frames('ListQueues').length > 0, 'asked');
    broken = false;
    assert.deepEqual(await read, []);
  });

  it('that is overloaded says when to come again', async () => {
    const peer = await peerOf(
      polite(({ requestId, connection }) => {
        connection.error(requestId, 9, 'full', { retry_after_ms: '250' });
      }),
    );
    const client = await connected(peer.address);
    await assert.rejects(client.enqueue('q', null, 'x'), (error: unknown) => {
      assert.ok(error instanceof OverloadedError);
      assert.equal(error.retryAfterMs, 250);
      return error.retryable;
    });
  });

  it('is sent frames no larger than it allows', async () => {
    const peer = await peerOf(obliging());
    peer.frameBytesMax = 2048;
    const client = await connected(peer.address);
    assert.ok(await client.enqueue('q', null, 'x'.repeat(10_000)));
    assert.equal(enqueued(peer)[0]?.[0]?.length, 10_000);
  });

  it('never hears of a request that was given up before there was a connection', async () => {
    const peer = await peerOf(
      polite(({ operation, requestId, connection }) => {
        if (operation === 'ListQueues') {
          connection.send(ListQueuesResult, requestId, {
            code: 0,
            clusterNodeCount: 1,
            queues: [],
          });
        }
      }),
    );
    const client = await connected(peer.address, { reconnectMinMs: 4000, reconnectMaxMs: 4000 });
    peer.disconnect();
    await until(() => !client.connected, 'lost');
    await assert.rejects(
      client.setConfig('a', 'b', { timeoutMs: 20 }),
      /set config "a": no answer within 20 ms; not connected to .* \(/,
    );
    await assert.rejects(client.enqueue('q', null, 'x', { timeoutMs: 20 }), { code: 'Timeout' });
    assert.deepEqual(await client.listQueues(), []);
    assert.deepEqual([peer.frames('SetConfig').length, peer.frames('Enqueue').length], [0, 0]);
  });
});

describe('a broker that is killed and started again under load', () => {
  it('loses nothing it acknowledged, and consumers come back by themselves', async () => {
    const broker = await Broker.start();
    open.push(broker);
    const client = await connected(broker.address, { timeoutMs: 60_000 });
    await client.createQueue('load', { visibilityTimeoutMs: 1_000 });
    const acknowledged = new Set<string>();
    const received = new Set<string>();
    let producing = true;
    let killed = 0;
    const producers = Array.from({ length: 8 }, async (_, worker) => {
      for (let n = 0; producing; n++) {
        const text = `${worker}/${n}`;
        try {
          await client.enqueue('load', null, text);
          acknowledged.add(text);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'ConnectionLost');
          killed++;
        }
        await sleep(1);
      }
    });
    const consumer = client.consume('load', { prefetch: 50 });
    const consuming = (async () => {
      for await (const message of consumer) {
        received.add(message.text());
        await message.ack().catch((error: unknown) => {
          const { code = '' } = error as { code?: string };
          assert.ok(['ConnectionLost', 'MessageNotFound'].includes(code), code);
        });
      }
    })();
    await until(() => acknowledged.size > 200, 'load');
    await broker.kill();
    await broker.restart();
    const before = acknowledged.size;
    await until(() => acknowledged.size > before + 200, 'load again');
    producing = false;
    await Promise.all(producers);
    await until(() => [...acknowledged].every((text) => received.has(text)), 'all were received');
    consumer.close();
    await consuming;
    assert.ok(killed <= 8, `${killed} calls were under way`);
  });
});
