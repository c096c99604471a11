import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';

import { Client, NotLeaderError, type ClientOptions } from '../../src/index.js';
import { Enqueue, decodeBody } from '../../src/wire/index.js';
import { deliver, enqueued, obliging, Peer, polite, type Script } from '../support/peer.js';
import { until } from '../support/until.js';

const CERTIFICATES = join(import.meta.dirname, '../../../../../tests/client/certs');
const pem = (name: string): string => readFileSync(join(CERTIFICATES, name), 'utf8');
const TLS = { cert: pem('server.pem'), key: pem('server.key'), ALPNProtocols: ['fila/1'] };
const QUICK: ClientOptions = { reconnectMinMs: 5, reconnectMaxMs: 50, timeoutMs: 20_000 };
const open: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

async function peerOf(script: Script, tls?: typeof TLS): Promise<Peer> {
  const peer = await Peer.start(script, tls);
  open.push(peer);
  return peer;
}

async function connected(peer: Peer, options: ClientOptions = {}): Promise<Client> {
  const client = await Client.connect(peer.address, { ...QUICK, ...options });
  open.push({ stop: () => client.close() });
  return client;
}

/** Leads nothing: sends everyone to `leader`. */
function elsewhere(leader: () => string): Script {
  return polite(({ operation, requestId, connection }) => {
    if (operation === 'Disconnect' || operation === 'CancelConsume') return;
    connection.error(requestId, 12, 'another node leads this queue', { leader_addr: leader() });
  });
}

describe('a call at a node that does not lead its queue', () => {
  it('is sent on to the leader, with the key, and later calls go there directly', async () => {
    const leader = await peerOf(obliging());
    const home = await peerOf(elsewhere(() => leader.address));
    const client = await connected(home, { apiKey: 'secret' });
    const moves: string[] = [];
    client.on('redirected', ({ queue, to }) => moves.push(`${queue} to ${to}`));
    assert.ok(await client.enqueue('q', null, 'first'));
    const later = await Promise.all(['b', 'c'].map((text) => client.enqueue('q', null, text)));
    assert.equal(later.length, 2);
    assert.deepEqual(enqueued(home), [['first']]);
    assert.deepEqual(enqueued(leader).flat(), ['first', 'b', 'c']);
    assert.deepEqual(leader.apiKeys, ['secret']);
    assert.deepEqual(moves, [`q to ${leader.address}`]);
    assert.equal(leader.connections, 1);
  });

  it('takes along what the batcher still holds for the old connection', async () => {
    const leader = await peerOf(obliging());
    const home = await peerOf(elsewhere(() => leader.address));
    const client = await connected(home);
    const calls = [client.enqueue('q', null, '0')];
    await until(() => home.frames('Enqueue').length === 1, 'sent');
    for (let n = 1; n < 50; n++) calls.push(client.enqueue('q', null, String(n)));
    assert.equal((await Promise.all(calls)).length, 50);
    assert.deepEqual(
      enqueued(leader).flat(),
      Array.from({ length: 50 }, (_, n) => String(n)),
    );
  });

  it('moves only the queue that is led elsewhere', async () => {
    const leader = await peerOf(obliging());
    const here = obliging();
    const home = await peerOf((sent, self) => {
      const foreign =
        sent.operation === 'Enqueue' &&
        decodeBody(Enqueue, sent.body).messages.some(({ queue }) => queue === 'there');
      if (foreign) elsewhere(() => leader.address)(sent, self);
      else here(sent, self);
    });
    const client = await connected(home);
    const messages = ['here', 'there', 'here'].map((queue) => ({ queue, payload: queue }));
    for (let round = 0; round < 2; round++) {
      const results = await client.enqueueMany(messages);
      assert.ok(results.every((one) => one.error === undefined));
    }
    assert.deepEqual(enqueued(leader).flat(), ['there', 'there']);
    assert.equal(
      enqueued(home)
        .filter((texts) => !texts.includes('there'))
        .flat().length,
      4,
    );
  });

  it('ends with NotLeaderError when nodes only point at each other', async () => {
    let other = '';
    const first = await peerOf(elsewhere(() => other));
    const second = await peerOf(elsewhere(() => first.address));
    other = second.address;
    const client = await connected(first);
    await assert.rejects(client.enqueue('q', null, 'x'), NotLeaderError);
    const asked = first.frames('Enqueue').length + second.frames('Enqueue').length;
    assert.ok(asked <= 7, `asked ${asked} times`);
  });

  it('ends with NotLeaderError when no leader is named', async () => {
    const home = await peerOf(
      polite(({ requestId, connection }) => {
        connection.error(requestId, 12, 'an election is under way');
      }),
    );
    const client = await connected(home);
    await assert.rejects(client.getStats('q'), (error: unknown) => {
      assert.ok(error instanceof NotLeaderError);
      assert.equal(error.leaderAddr, undefined);
      return error.retryable;
    });
  });

  it('begins at home again when the leader is gone', async () => {
    const second = await peerOf(obliging());
    const first = await Peer.start(obliging());
    let leader = first.address;
    const home = await peerOf(elsewhere(() => leader));
    const client = await connected(home);
    assert.ok(await client.enqueue('q', null, 'x'));
    leader = second.address;
    await first.stop();
    await until(async () => {
      const [result] = await client.enqueueMany([{ queue: 'q', payload: 'y' }]);
      return result?.error === undefined;
    }, 'stored by the new leader');
    assert.deepEqual(enqueued(second).flat(), ['y']);
  });
});

describe('a consumer of a queue that is led elsewhere', () => {
  it('moves to the leader, and settles over the connection its messages came by', async () => {
    const serving = obliging();
    const leader = await peerOf((sent, self) => {
      serving(sent, self);
      if (sent.operation === 'Consume') deliver(sent.connection, sent.requestId, 'q', ['hello']);
    });
    const home = await peerOf(elsewhere(() => leader.address));
    const client = await connected(home);
    for await (const message of client.consume('q')) {
      assert.equal(message.text(), 'hello');
      await message.ack();
      break;
    }
    assert.equal(leader.frames('Ack').length, 1);
    assert.equal(home.frames('Ack').length, 0);
  });

  it('follows when the leader changes while it consumes', async () => {
    const serving = obliging();
    const script: Script = (sent, self) => {
      serving(sent, self);
      if (sent.operation === 'Consume')
        deliver(sent.connection, sent.requestId, 'q', [self.address]);
    };
    const second = await peerOf(script);
    const first = await peerOf(script);
    let leader = first.address;
    const home = await peerOf(elsewhere(() => leader));
    const client = await connected(home);
    const consumer = client.consume('q');
    assert.equal((await consumer.receive())?.text(), first.address);
    leader = second.address;
    const [consume] = first.frames('Consume');
    consume?.connection.error(consume.requestId, 12, 'lost the lead', { leader_addr: leader });
    assert.equal((await consumer.receive())?.text(), second.address);
  });

  it('goes on when the leader dies', async () => {
    const serving = obliging();
    const script: Script = (sent, self) => {
      serving(sent, self);
      if (sent.operation === 'Consume')
        deliver(sent.connection, sent.requestId, 'q', [self.address]);
    };
    const second = await peerOf(script);
    const first = await Peer.start(script);
    let leader = first.address;
    const home = await peerOf(elsewhere(() => leader));
    const client = await connected(home);
    const consumer = client.consume('q');
    assert.equal((await consumer.receive())?.text(), first.address);
    await first.stop();
    leader = second.address;
    assert.equal((await consumer.receive())?.text(), second.address);
  });
});

describe('a client that asked for TLS', () => {
  it('follows a leader by TLS', async () => {
    const leader = await peerOf(obliging(), TLS);
    const home = await peerOf(
      elsewhere(() => leader.address),
      TLS,
    );
    const client = await connected(home, { caCert: pem('ca.pem'), apiKey: 'secret' });
    assert.ok(await client.enqueue('q', null, 'x'));
    assert.deepEqual(leader.apiKeys, ['secret']);
  });

  it('never speaks plaintext to a leader, least of all its key', async () => {
    const leader = await peerOf(obliging());
    for (const prefix of ['', 'http://']) {
      const home = await peerOf(
        elsewhere(() => prefix + leader.address),
        TLS,
      );
      const client = await connected(home, {
        caCert: pem('ca.pem'),
        apiKey: 'secret',
        connectTimeoutMs: 300,
      });
      await assert.rejects(client.enqueue('q', null, 'x'), NotLeaderError);
    }
    assert.ok(leader.connections > 0, 'the leader was asked');
    assert.deepEqual(leader.apiKeys, []);
    assert.deepEqual(leader.seen, []);
  });
});
