// One lifecycle with Node's client: node lifecycle.mjs ENDPOINT ACCESS_KEY_ID SECRET QUEUE
import assert from "node:assert/strict";
import {
  ChangeMessageVisibilityCommand, CreateQueueCommand, DeleteMessageBatchCommand,
  DeleteQueueCommand, GetQueueAttributesCommand, GetQueueUrlCommand, MessageNotInflight,
  QueueDoesNotExist, ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand, SQSClient,
} from "@aws-sdk/client-sqs";

const [endpoint, accessKeyId, secretAccessKey, QueueName] = process.argv.slice(2);
const sqs = new SQSClient({
  endpoint, region: "eu-west-1", credentials: { accessKeyId, secretAccessKey }, maxAttempts: 1,
});
const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName }));
const attributes = {
  tenant: { DataType: "String", StringValue: "Zürich" },
  raw: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) },
};
// The client checks the MD5 of what it sent and of what it receives.
await sqs.send(new SendMessageCommand({
  QueueUrl, MessageBody: "grüße 🐘", MessageAttributes: attributes, MessageGroupId: "acme",
}));
const receive = { QueueUrl, MessageAttributeNames: ["All"], WaitTimeSeconds: 20 };
const [first] = (await sqs.send(new ReceiveMessageCommand(receive))).Messages;
assert.equal(first.Body, "grüße 🐘");
assert.deepEqual(first.MessageAttributes.tenant, attributes.tenant);
assert.deepEqual([...first.MessageAttributes.raw.BinaryValue], [0, 255]);
const handle = { QueueUrl, ReceiptHandle: first.ReceiptHandle };
await sqs.send(new ChangeMessageVisibilityCommand({ ...handle, VisibilityTimeout: 0 }));
const [second] = (await sqs.send(new ReceiveMessageCommand(receive))).Messages;
assert.equal(second.MessageId, first.MessageId);
await assert.rejects(
  sqs.send(new ChangeMessageVisibilityCommand({ ...handle, VisibilityTimeout: 5 })),
  MessageNotInflight,
);
const batch = await sqs.send(new SendMessageBatchCommand({
  QueueUrl,
  Entries: [{ Id: "a", MessageBody: "one" }, { Id: "b", MessageBody: "\u0001" }],
}));
assert.deepEqual(batch.Successful.map((one) => one.Id), ["a"]);
assert.deepEqual(batch.Failed.map((one) => one.Code), ["InvalidMessageContents"]);
const [third] = (await sqs.send(new ReceiveMessageCommand(receive))).Messages;
const Entries = [second, third].map((one, at) => ({ Id: `${at}`, ReceiptHandle: one.ReceiptHandle }));
await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
const { Attributes } = await sqs.send(
  new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }),
);
assert.equal(Attributes.ApproximateNumberOfMessagesNotVisible, "0");
await sqs.send(new DeleteQueueCommand({ QueueUrl }));
await assert.rejects(sqs.send(new GetQueueUrlCommand({ QueueName })), QueueDoesNotExist);
console.log("done");
