// The whole life of messages with @grpc/grpc-js, from the .proto files alone.
//
//   node lifecycle.js <host:port> <directory of the .proto files> [api key]
//
// Prints one line per step; any surprise ends it with a stack and exit code 1.
'use strict';

const assert = require('node:assert');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [address, protos, key] = process.argv.slice(2);
const definition = loader.loadSync(
  ['fila/v1/service.proto', 'fila/v1/admin.proto', 'grpc/health/v1/health.proto'],
  { includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true },
);
const { fila, grpc: standard } = grpc.loadPackageDefinition(definition);
const credentials = grpc.credentials.createInsecure();
const service = new fila.v1.FilaService(address, credentials);
const admin = new fila.v1.FilaAdmin(address, credentials);
const health = new standard.health.v1.Health(address, credentials);

const metadata = new grpc.Metadata();
if (key) metadata.set('authorization', `Bearer ${key}`);

function call(client, method, request) {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 10_000;
    client[method](request, metadata, { deadline }, (error, response) => (error ? reject(error) : resolve(response)));
  });
}

async function refused(promise, code) {
  await assert.rejects(promise, (error) => {
    assert.strictEqual(error.code, code, error.message);
    return true;
  });
}

// Messages of a stream, whatever the batches they come in.
function reader(stream) {
  const waiting = [];
  const takers = [];
  stream.on('data', (response) => {
    for (const message of response.messages) {
      if (takers.length > 0) takers.shift().resolve(message);
      else waiting.push(message);
    }
  });
  stream.on('error', (error) => takers.splice(0).forEach((taker) => taker.reject(error)));
  return () =>
    waiting.length > 0
      ? Promise.resolve(waiting.shift())
      : new Promise((resolve, reject) => takers.push({ resolve, reject }));
}

async function main() {
  const checked = await call(health, 'Check', { service: 'fila.v1.FilaService' });
  assert.strictEqual(checked.status, 'SERVING');
  console.log('healthy');

  const queue = 'node';
  await call(admin, 'CreateQueue', {
    name: queue,
    config: {
      on_enqueue_script: 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end',
      on_failure_script: 'function on_failure(msg) if msg.attempts >= 2 then return { action = "dlq" } end return { action = "retry" } end',
    },
  });
  await refused(call(admin, 'CreateQueue', { name: queue }), grpc.status.ALREADY_EXISTS);
  console.log('created');

  const stored = await call(service, 'Enqueue', {
    messages: [
      { queue, headers: { tenant: 'acme', 'größe': '☃' }, payload: Buffer.from([0, 255, 1]) },
      { queue: 'no-such-queue', payload: Buffer.from('lost') },
    ],
  });
  const id = stored.results[0].message_id;
  assert.strictEqual(stored.results[1].error.code, 'ENQUEUE_ERROR_CODE_QUEUE_NOT_FOUND');
  console.log('enqueued');

  const stream = service.Consume({ queue }, metadata);
  const next = reader(stream);
  const first = await next();
  assert.strictEqual(first.id, id);
  assert.deepStrictEqual(first.headers, { tenant: 'acme', 'größe': '☃' });
  assert.deepStrictEqual([...first.payload], [0, 255, 1]);
  assert.strictEqual(first.metadata.fairness_key, 'acme');
  assert.strictEqual(first.metadata.attempt_count, 0);
  assert.ok(Math.abs(Number(first.timestamps.enqueued_at.seconds) - Date.now() / 1000) < 60);
  console.log('delivered');

  const nacked = await call(service, 'Nack', { messages: [{ queue, message_id: id, error: 'not yet' }] });
  assert.ok(nacked.results[0].success);
  const second = await next();
  assert.strictEqual(second.metadata.attempt_count, 1);
  await call(service, 'Nack', { messages: [{ queue, message_id: id, error: 'never' }] });
  const dead = await call(admin, 'GetStats', { queue: `${queue}.dlq` });
  assert.strictEqual(dead.depth, '1');
  const moved = await call(admin, 'Redrive', { dlq_queue: `${queue}.dlq` });
  assert.strictEqual(moved.redriven, '1');
  const third = await next();
  assert.strictEqual(third.metadata.attempt_count, 0);
  const acked = await call(service, 'Ack', { messages: [{ queue, message_id: id }, { queue, message_id: id }] });
  assert.ok(acked.results[0].success);
  assert.strictEqual(acked.results[1].error.code, 'ACK_ERROR_CODE_MESSAGE_NOT_FOUND');
  console.log('settled');

  // Batches in flight, each answered with its number; what they store comes over the consumer.
  const batches = 500;
  const numbers = [];
  const sender = service.StreamEnqueue(metadata);
  const answered = new Promise((resolve, reject) => {
    sender.on('data', (response) => numbers.push(Number(response.sequence_number)));
    sender.on('end', resolve);
    sender.on('error', reject);
  });
  for (let number = 0; number < batches; number += 1) {
    const messages = [1, 2, 3, 4].map((part) => ({ queue, headers: { tenant: `t${part}` }, payload: Buffer.alloc(2000, part) }));
    sender.write({ sequence_number: number, messages });
  }
  sender.end();
  await answered;
  assert.deepStrictEqual(numbers, [...Array(batches).keys()]);
  const settling = [];
  for (let taken = 0; taken < batches * 4; taken += 1) {
    const message = await next();
    assert.strictEqual(message.payload.length, 2000);
    settling.push(call(service, 'Ack', { messages: [{ queue, message_id: message.id }] }));
  }
  await Promise.all(settling);
  console.log('streamed');

  await call(admin, 'SetConfig', { key: 'node.flag', value: 'on' });
  assert.strictEqual((await call(admin, 'GetConfig', { key: 'node.flag' })).value, 'on');
  assert.strictEqual((await call(admin, 'ListConfig', { prefix: 'node.' })).total_count, 1);
  const listed = await call(admin, 'ListQueues', {});
  assert.ok(listed.queues.some((one) => one.name === queue && one.active_consumers === 1));
  console.log('administered');

  const ended = new Promise((resolve) => stream.on('error', resolve));
  await call(admin, 'DeleteQueue', { queue });
  assert.strictEqual((await ended).code, grpc.status.NOT_FOUND);
  await refused(call(admin, 'GetStats', { queue }), grpc.status.NOT_FOUND);
  if (key) {
    metadata.set('authorization', 'Bearer wrong');
    await refused(call(admin, 'ListQueues', {}), grpc.status.UNAUTHENTICATED);
  }
  console.log('done');
  for (const client of [service, admin, health]) client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
