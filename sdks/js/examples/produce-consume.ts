/**
 * The shortest path: create a queue, enqueue, consume, ack.
 *
 *   node build/examples/produce-consume.js [ADDRESS]
 */
import { Client, QueueAlreadyExistsError } from '../src/index.js';

const client = await Client.connect(process.argv[2] ?? 'localhost:5555');

try {
  await client.createQueue('js-hello');
} catch (error) {
  if (!(error instanceof QueueAlreadyExistsError)) throw error;
}

const id = await client.enqueue('js-hello', { tenant: 'acme' }, 'hello from JavaScript');
console.log(`stored ${id}`);

const results = await client.enqueueMany(
  ['one', 'two', 'three'].map((payload) => ({ queue: 'js-hello', payload })),
);
console.log(`stored ${results.filter((one) => one.error === undefined).length} more`);

let left = 4;
for await (const message of client.consume('js-hello')) {
  console.log(`received ${message.text()}`);
  await message.ack();
  if (--left === 0) break;
}

await client.close();
