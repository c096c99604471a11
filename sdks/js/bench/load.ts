/**
 * A producer or a consumer under load, for side-by-side measurements with the other clients.
 *
 *   node build/bench/load.js produce ADDRESS QUEUE MESSAGES [--batch 100] [--size 1024] [--ahead 8]
 *   node build/bench/load.js consume ADDRESS QUEUE MESSAGES [--batch 100] [--prefetch 2000]
 *
 * Prints one line of JSON: {"lang","role","messages","seconds","cpu_seconds","rss_mb"}.
 */
import { parseArgs } from 'node:util';

import { Client, type NewMessage, type SettleResult } from '../src/index.js';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    batch: { type: 'string', default: '100' },
    size: { type: 'string', default: '1024' },
    ahead: { type: 'string', default: '8' },
    prefetch: { type: 'string', default: '2000' },
  },
});
const [role = '', address = '', queue = '', count = '0'] = positionals;
const total = Number(count);
const batch = Number(values.batch);

/** Batches of messages, several of them under way at once. */
async function produce(client: Client): Promise<void> {
  const payload = new Uint8Array(Number(values.size)).fill(120);
  const message: NewMessage = { queue, payload };
  let left = total;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      const size = Math.min(batch, left);
      left -= size;
      const results = await client.enqueueMany(new Array<NewMessage>(size).fill(message));
      const failed = results.find((one) => one.error !== undefined);
      if (failed?.error !== undefined) throw failed.error;
    }
  };
  await Promise.all(Array.from({ length: Number(values.ahead) }, worker));
}

/** Acks a batch while the next one is read. */
async function consume(client: Client): Promise<void> {
  const consumer = client.consume(queue, { prefetch: Number(values.prefetch) });
  const acks = new Set<Promise<SettleResult[]>>();
  let bytes = 0;
  let seen = 0;
  for await (const messages of consumer.batches(batch)) {
    for (const message of messages) bytes += message.payload.length;
    const ids = messages.map((message) => message.id);
    const ack = client.ackMany(queue, ids).finally(() => acks.delete(ack));
    acks.add(ack);
    seen += messages.length;
    if (seen >= total) break;
  }
  await Promise.all(acks);
  if (bytes === 0 && total > 0) throw new Error('nothing was read');
}

const client = await Client.connect(address);
const began = performance.now();
const cpuBefore = process.cpuUsage();
if (role === 'produce') await produce(client);
else if (role === 'consume') await consume(client);
else throw new TypeError('the role is produce or consume');
const cpu = process.cpuUsage(cpuBefore);
const seconds = (performance.now() - began) / 1000;
console.log(
  JSON.stringify({
    lang: 'js',
    role,
    messages: total,
    seconds: Number(seconds.toFixed(3)),
    cpu_seconds: Number(((cpu.user + cpu.system) / 1e6).toFixed(3)),
    rss_mb: Number((process.resourceUsage().maxRSS / 1024).toFixed(1)),
  }),
);
await client.close();
