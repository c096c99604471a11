import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client, ForbiddenError, type ClientOptions } from '../../src/index.js';
import { decodeBody, Enqueue, EnqueueResult } from '../../src/wire/index.js';
import { Broker } from '../support/broker.js';
import { enqueued, obliging, Peer, polite, type Sent } from '../support/peer.js';
import { until } from '../support/until.js';

const open: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

async function connected(peer: Peer, options: ClientOptions = {}): Promise<Client> {
  const client = await Client.connect(peer.address, options);
  open.push(peer, { stop: () => client.close() });
  return client;
}

/** A peer that answers enqueues when it is told to. */
async function holding(): Promise<{ peer: Peer; answer: () => void }> {
  const held: Sent[] = [];
  const peer = await Peer.start(
    polite((sent) => {
      if (sent.operation === 'Enqueue') held.push(sent);
    }),
  );
  const answer = (): void => {
    for (const { requestId, body, connection } of held.splice(0)) {
      const results = decodeBody(Enqueue, body).messages.map(({ payload }) => ({
        code: 0,
        messageId: `id-${Buffer.from(payload).toString()}`,
      }));
      connection.send(EnqueueResult, requestId, { results });
    }
  };
  return { peer, answer };
}

describe('automatic batching', () => {
  it('sends calls of one turn together, and later ones when the answer is there', async () => {
    const { peer, answer } = await holding();
    const client = await connected(peer);
    const first = ['a', 'b'].map((text) => client.enqueue('q', null, text));
    await until(() => peer.frames('Enqueue').length === 1, 'the first frame');
    const second = ['c', 'd', 'e'].map((text) => client.enqueue('q', null, text));
    await sleep(50);
    assert.deepEqual(enqueued(peer), [['a', 'b']]);
    answer();
    await until(() => peer.frames('Enqueue').length === 2, 'the second frame');
    assert.deepEqual(enqueued(peer), [
      ['a', 'b'],
      ['c', 'd', 'e'],
    ]);
    answer();
    assert.deepEqual(await Promise.all([...first, ...second]), [
      'id-a',
      'id-b',
      'id-c',
      'id-d',
      'id-e',
    ]);
  });

  it('does not wait for an answer when there are a hundred', async () => {
    const { peer } = await holding();
    const client = await connected(peer);
    void client.enqueue('q', null, 'first').catch(() => undefined);
    await until(() => peer.frames('Enqueue').length === 1, 'the first frame');
    for (let n = 0; n < 100; n++) {
      void client.enqueue('q', null, String(n)).catch(() => undefined);
    }
    await until(() => peer.frames('Enqueue').length === 2, 'a hundred');
    assert.equal(enqueued(peer)[1]?.length, 100);
  });

  it('lingers when asked to', async () => {
    const peer = await Peer.start(obliging());
    const client = await connected(peer, { batchMode: 'linger', lingerMs: 200 });
    const calls = [client.enqueue('q', null, 'a')];
    await sleep(20);
    calls.push(client.enqueue('q', null, 'b'));
    await Promise.all(calls);
    assert.deepEqual(enqueued(peer), [['a', 'b']]);
  });

  it('sends a frame per call when it is disabled', async () => {
    const peer = await Peer.start(obliging());
    const client = await connected(peer, { batchMode: 'disabled' });
    await Promise.all(['a', 'b', 'c'].map((text) => client.enqueue('q', null, text)));
    assert.deepEqual(enqueued(peer), [['a'], ['b'], ['c']]);
  });

  it('is no business of the first caller: his giving up harms nobody', async () => {
    const { peer, answer } = await holding();
    const client = await connected(peer, { batchMode: 'linger', lingerMs: 100 });
    const gone = new AbortController();
    const first = client.enqueue('q', null, 'first', { signal: gone.signal });
    const others = ['b', 'c'].map((text) => client.enqueue('q', null, text));
    gone.abort();
    await assert.rejects(first, { name: 'AbortError' });
    await until(() => peer.frames('Enqueue').length === 1, 'the frame');
    assert.deepEqual(enqueued(peer), [['b', 'c']]);
    // The same after the frame was sent.
    const late = new AbortController();
    const sent = client.enqueue('q', null, 'sent', { signal: late.signal });
    const beside = client.enqueue('q', null, 'beside');
    await until(() => peer.frames('Enqueue').length === 2, 'the second frame');
    late.abort();
    await assert.rejects(sent, { name: 'AbortError' });
    answer();
    assert.deepEqual(await Promise.all([...others, beside]), ['id-b', 'id-c', 'id-beside']);
  });

  it('lets one signal end many calls, without a warning of leaks', async () => {
    const { peer } = await holding();
    const client = await connected(peer);
    const warnings: string[] = [];
    const warn = (warning: Error) => warnings.push(warning.message);
    process.on('warning', warn);
    const all = new AbortController();
    const calls = Array.from({ length: 50 }, () =>
      client.enqueue('q', null, 'x', { signal: all.signal }),
    );
    const ended = Promise.allSettled(calls);
    await until(() => peer.frames('Enqueue').length > 0, 'sent');
    all.abort();
    for (const one of await ended) assert.equal(one.status, 'rejected');
    process.off('warning', warn);
    assert.deepEqual(warnings, []);
  });

  it('counts a deadline per call', async () => {
    const { peer } = await holding();
    const client = await connected(peer);
    const soon = client.enqueue('q', null, 'soon', { timeoutMs: 50 });
    const later = assert.rejects(client.enqueue('q', null, 'later', { timeoutMs: 60_000 }), {
      code: 'ClientClosed',
    });
    await assert.rejects(soon, /enqueue to queue "q": no answer within 50 ms; connected to/);
    await client.close();
    await later;
  });
});

describe('bytes under way', () => {
  it('are bounded: further enqueues wait until there is room', async () => {
    const { peer, answer } = await holding();
    const client = await connected(peer, { maxInFlightBytes: 10_000, batchMode: 'disabled' });
    const payload = 'x'.repeat(4_000);
    const calls = Array.from({ length: 6 }, () => client.enqueue('q', null, payload));
    await until(() => peer.frames('Enqueue').length === 2, 'two are sent');
    await sleep(100);
    assert.equal(peer.frames('Enqueue').length, 2);
    const gone = new AbortController();
    const waiting = client.enqueue('q', null, payload, { signal: gone.signal });
    gone.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    let done = 0;
    for (const call of calls) void call.then(() => done++);
    await until(() => {
      answer();
      return done === 6;
    }, 'all are stored');
    assert.equal(peer.frames('Enqueue').length, 6);
  });

  it('may have thousands waiting when the client is closed', async () => {
    const { peer } = await holding();
    const client = await connected(peer, { maxInFlightBytes: 1_000 });
    const calls = Array.from({ length: 20_000 }, () => client.enqueue('q', null, 'x'));
    const codes = Promise.allSettled(calls);
    await until(() => peer.frames('Enqueue').length > 0, 'the first are sent');
    await client.close();
    const failed = (await codes).filter(
      (one) =>
        one.status === 'rejected' && (one.reason as { code: string }).code === 'ClientClosed',
    );
    assert.equal(failed.length, 20_000);
  });

  it('let a message through that is larger than the bound', async () => {
    const peer = await Peer.start(obliging());
    const client = await connected(peer, { maxInFlightBytes: 1_000 });
    assert.ok(await client.enqueue('q', null, 'x'.repeat(50_000)));
  });
});

describe('a frame that is refused as a whole', () => {
  it('is tried apart, so that one caller’s missing permission costs only him', async () => {
    const superkey = '0123456789abcdef0123456789abcdef';
    const broker = await Broker.start({ env: { FILA_AUTH__BOOTSTRAP_APIKEY: superkey } });
    open.push(broker);
    const admin = await Client.connect(broker.address, { apiKey: superkey });
    open.push({ stop: () => admin.close() });
    await admin.createQueue('mine');
    await admin.createQueue('theirs');
    const made = await admin.createApiKey('producer');
    await admin.setAcl(made.keyId, [{ kind: 'produce', pattern: 'mine' }]);
    const acl = await admin.getAcl(made.keyId);
    assert.deepEqual(acl.permissions, [{ kind: 'produce', pattern: 'mine' }]);
    assert.ok((await admin.listApiKeys()).some((one) => one.name === 'producer'));

    const client = await Client.connect(broker.address, { apiKey: made.key });
    open.push({ stop: () => client.close() });
    const results = await client.enqueueMany(
      ['mine', 'theirs', 'mine', 'theirs'].map((queue) => ({ queue, payload: 'x' })),
    );
    assert.deepEqual(
      results.map(({ id, error }) => [typeof id, error?.code]),
      [
        ['string', undefined],
        ['undefined', 'Forbidden'],
        ['string', undefined],
        ['undefined', 'Forbidden'],
      ],
    );
    const [own, foreign] = await Promise.allSettled([
      client.enqueue('mine', null, 'x'),
      client.enqueue('theirs', null, 'x'),
    ]);
    assert.equal(own.status, 'fulfilled');
    assert.ok(foreign.status === 'rejected' && foreign.reason instanceof ForbiddenError);
    assert.equal((await admin.getStats('mine')).depth, 3);

    // A key that is revoked ends the client that uses it, with the cause.
    const closed = new Promise<Error | undefined>((resolve) => {
      client.on('closed', ({ reason }) => {
        resolve(reason);
      });
    });
    await admin.revokeApiKey(made.keyId);
    assert.equal(((await closed) as { code?: string }).code, 'Unauthorized');
    await assert.rejects(client.enqueue('mine', null, 'x'), { code: 'Unauthorized' });
    await assert.rejects(Client.connect(broker.address, { apiKey: made.key }), {
      code: 'Unauthorized',
    });
    await assert.rejects(Client.connect(broker.address), { code: 'Unauthorized' });
  });
});
