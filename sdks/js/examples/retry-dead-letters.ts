/**
 * Failures: a hook retries with a pause and gives up after three attempts; dead letters are looked at
 * and moved back when the cause is mended.
 *
 *   node build/examples/retry-dead-letters.js [ADDRESS]
 */
import { Client } from '../src/index.js';

const ON_FAILURE = `
function on_failure(msg)
  if msg.attempts >= 3 then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 50 * msg.attempts }
end`;

const queue = 'js-retried';
const client = await Client.connect(process.argv[2] ?? 'localhost:5555');
await client.createQueue(queue, { onFailure: ON_FAILURE });
await client.enqueue(queue, null, 'order 7', { idempotencyKey: 'order-7' });

let mended = false;
const work = (): void => {
  if (!mended) throw new Error('the printer is out of paper');
};

let failures = 0;
const consumer = client.consume(queue);
while (failures < 3) {
  const message = await consumer.receive();
  if (message === undefined) break;
  try {
    work();
    await message.ack();
  } catch (error) {
    console.log(`attempt ${message.attemptCount + 1} failed`);
    failures++;
    await message.nack((error as Error).message);
  }
}

for await (const letter of client.browse(`${queue}.dlq`)) {
  console.log(`dead letter: ${new TextDecoder().decode(letter.payload)}`);
}

mended = true;
console.log(`moved back: ${await client.redrive(`${queue}.dlq`)}`);
const message = await consumer.receive();
work();
await message?.ack();
console.log(`done: ${message?.text()}`);

consumer.close();
await client.deleteQueue(queue);
await client.close();
