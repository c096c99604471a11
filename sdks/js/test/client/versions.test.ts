import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Client, InvalidConfigValueError, VersionConflictError } from '../../src/index.js';
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

describe('settings of a queue', () => {
  it('change while it works, and come back', async () => {
    await client.createQueue('changing', { maxAttempts: 7 });
    const fewer = { expectedVersion: 1, note: 'fewer' };
    assert.equal(await client.updateQueue('changing', { max_attempts: 3 }, fewer), 2);
    const found = await client.getQueue('changing');
    assert.equal(found.settings.max_attempts, '3');
    assert.deepEqual([found.version, found.note], [2, 'fewer']);
    await assert.rejects(
      client.updateQueue('changing', { max_attempts: 4 }, { expectedVersion: 1 }),
      VersionConflictError,
    );
    await assert.rejects(
      client.updateQueue('changing', { colour: 'red' }),
      InvalidConfigValueError,
    );
    assert.equal(await client.updateQueue('changing', {}, { fromVersion: 1 }), 3);
    assert.equal((await client.getQueue('changing', 1)).settings.max_attempts, '7');
    const versions = await client.listVersions('changing');
    assert.deepEqual(
      versions.map((one) => one.version),
      [3, 2, 1],
    );
    assert.deepEqual(versions[1]?.changed, ['max_attempts']);
  });
});
