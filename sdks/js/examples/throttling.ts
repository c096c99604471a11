/**
 * Rate limits by key: calls to one provider are held to five per second, others are not.
 *
 *   node build/examples/throttling.js [ADDRESS]
 */
import { Client } from '../src/index.js';

const queue = 'js-throttled';
const client = await Client.connect(process.argv[2] ?? 'localhost:5555');
await client.createQueue(queue);

// rate per second, burst
await client.setConfig('throttle.provider:slow', '5,1');

await client.enqueueMany(
  Array.from({ length: 12 }, (_, n) => {
    const provider = n < 6 ? 'slow' : 'fast';
    return {
      queue,
      payload: provider,
      fairnessKey: provider,
      throttleKeys: [`provider:${provider}`],
    };
  }),
);

const order: string[] = [];
const began = performance.now();
for await (const message of client.consume(queue)) {
  order.push(message.text());
  await message.ack();
  if (order.length === 12) break;
}
const seconds = (performance.now() - began) / 1000;

console.log(`the last fast one was number ${order.lastIndexOf('fast') + 1}`);
console.log(`six slow ones took ${seconds >= 0.9 ? 'about a second' : 'no time at all'}`);

await client.setConfig('throttle.provider:slow', null);
await client.deleteQueue(queue);
await client.close();
