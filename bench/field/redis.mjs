// The load program of node-redis: a stream and a consumer group, a pipeline for a batch.
//
//   node redis.mjs produce|consume ADDRESS QUEUE MESSAGES
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { createClient } = createRequire(`${process.env.FILA_BENCH_MODULES}/`)('redis');
const BATCH = 100;
const AHEAD = 8; // batches under way
const GROUP = 'workers';
const PAYLOAD = 'x'.repeat(1024);

async function produce(client, queue, messages) {
  const underWay = [];
  for (let sent = 0; sent < messages; sent += BATCH) {
    if (underWay.length === AHEAD) await underWay.shift();
    // Commands of one tick leave together.
    underWay.push(Promise.all(Array.from({ length: BATCH }, () => client.xAdd(queue, '*', { p: PAYLOAD }))));
  }
  await Promise.all(underWay);
}

async function consume(client, queue, messages) {
  let acked = Promise.resolve();
  for (let left = messages; left > 0; ) {
    const reading = client.xReadGroup(GROUP, 'one', { key: queue, id: '>' }, { COUNT: BATCH, BLOCK: 1000 });
    await acked;
    const entries = (await reading)?.[0].messages ?? [];
    if (!entries.every((one) => one.message.p.length === PAYLOAD.length)) throw new Error('a payload is not what was sent');
    left -= entries.length;
    // It leaves with the next read.
    if (entries.length > 0) acked = client.xAck(queue, GROUP, entries.map((one) => one.id));
  }
  await acked;
}

const [role, address, queue, count] = process.argv.slice(2);
const client = createClient({ url: `redis://${address}` });
await client.connect();
const messages = Number(count);
const began = process.hrtime.bigint();
const before = process.cpuUsage();
await (role === 'produce' ? produce : consume)(client, queue, messages);
const { user, system } = process.cpuUsage(before);
const peak = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
console.log(
  JSON.stringify({
    lang: 'node-redis', role, messages,
    seconds: Number(process.hrtime.bigint() - began) / 1e9,
    cpu_seconds: (user + system) / 1e6, rss_mb: Number(peak) / 1024,
  }),
);
await client.quit();
