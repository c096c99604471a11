/**
 * Fair scheduling by a hook: a tenant with a thousand messages does not keep one with ten waiting.
 *
 *   node build/examples/fairness.js [ADDRESS]
 */
import { Client, type NewMessage } from '../src/index.js';

const ON_ENQUEUE = `
function on_enqueue(msg)
  return {
    fairness_key = msg.headers["tenant"],
    weight = msg.headers["plan"] == "gold" and 3 or 1,
  }
end`;

const queue = 'js-fair';
const client = await Client.connect(process.argv[2] ?? 'localhost:5555');
await client.createQueue(queue, { onEnqueue: ON_ENQUEUE });

const messagesOf = (tenant: string, plan: string, count: number): NewMessage[] =>
  Array.from({ length: count }, (_, n) => ({
    queue,
    headers: { tenant, plan },
    payload: `${tenant} ${n}`,
  }));

await client.enqueueMany([
  ...messagesOf('big', 'basic', 1000),
  ...messagesOf('small', 'basic', 10),
  ...messagesOf('paying', 'gold', 30),
]);

// The first fifty deliveries: "big" was first in line and has by far the most.
const served = new Map<string, number>();
let seen = 0;
for await (const message of client.consume(queue, { prefetch: 1 })) {
  served.set(message.fairnessKey, (served.get(message.fairnessKey) ?? 0) + 1);
  await message.ack();
  if (++seen === 50) break;
}
for (const [tenant, count] of [...served].sort()) console.log(`${tenant}: ${count}`);

await client.deleteQueue(queue);
await client.close();
