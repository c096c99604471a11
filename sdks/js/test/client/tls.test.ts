import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { rootCertificates } from 'node:tls';

import { Client, type ClientOptions } from '../../src/index.js';
import { Broker } from '../support/broker.js';

const CERTIFICATES = join(import.meta.dirname, '../../../../../tests/client/certs');
const pem = (name: string): string => readFileSync(join(CERTIFICATES, name), 'utf8');

describe('TLS with a client certificate', () => {
  let broker: Broker;

  before(async () => {
    broker = await Broker.start({
      env: {
        FILA_TLS__CERT_FILE: join(CERTIFICATES, 'server.pem'),
        FILA_TLS__KEY_FILE: join(CERTIFICATES, 'server.key'),
        FILA_TLS__CA_FILE: join(CERTIFICATES, 'ca.pem'),
      },
    });
  });

  after(async () => {
    await broker.stop();
  });

  const own: ClientOptions = {
    caCert: pem('ca.pem'),
    clientCert: pem('client.pem'),
    clientKey: new TextEncoder().encode(pem('client.key')),
  };

  async function fails(address: string, options: ClientOptions, why: RegExp): Promise<void> {
    const began = performance.now();
    const patient = { ...options, connectTimeoutMs: 60_000 };
    await assert.rejects(Client.connect(address, patient), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'ConnectFailed', String(error));
      assert.match(error.message, why);
      return true;
    });
    assert.ok(performance.now() - began < 30_000, 'before the time for connecting is up');
  }

  it('works, and https:// asks for it too', async () => {
    for (const address of [broker.address, `https://${broker.address}`]) {
      const client = await Client.connect(address, own);
      assert.deepEqual(await client.listQueues(), []);
      await client.close();
    }
  });

  it('fails at once with a CA that did not sign the broker', async () => {
    await fails(broker.address, { ...own, caCert: rootCertificates[0] }, /TLS: .*certificate/);
    await fails(broker.address, { tls: true }, /TLS: .*certificate/);
  });

  it('fails without the client’s own certificate', async () => {
    await fails(broker.address, { caCert: pem('ca.pem') }, /TLS/);
  });

  it('checks the name in the certificate', async () => {
    const other = broker.address.replace('127.0.0.1', '127.0.0.2');
    await fails(other, own, /TLS: .*(altnames|Alt|IP)|refused/);
  });

  it('fails at once when the client speaks plaintext', async () => {
    await fails(broker.address, {}, /tls: true/);
  });
});

describe('TLS to a plaintext port', () => {
  it('fails at once and says what is wrong', async () => {
    const broker = await Broker.start();
    try {
      await assert.rejects(Client.connect(broker.address, { tls: true }), {
        code: 'ConnectFailed',
        message: /does the broker speak TLS on this port\?/,
      });
    } finally {
      await broker.stop();
    }
  });
});
