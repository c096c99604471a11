package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.support.Broker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ProduceTest {
    private FilaClient client;
    private String queue;

    @BeforeEach
    void connect() throws Exception {
        client = FilaClient.connect(Broker.shared().address());
        queue = "produce-" + System.nanoTime();
        client.createQueue(queue);
    }

    @AfterEach
    void close() {
        client.close();
    }

    @Test
    void aMessageComesBackAsItWasEnqueued() {
        byte[] payload = {0, 1, (byte) 0xFF};
        String id = client.enqueue(queue, Map.of("tenant", "größe 🐟", "empty", ""), payload);
        try (FilaConsumer consumer = client.consume(queue)) {
            Message message = consumer.receive().orElseThrow();
            assertEquals(id, message.id());
            assertEquals(queue, message.queue());
            assertEquals(Map.of("tenant", "größe 🐟", "empty", ""), message.headers());
            assertArrayEquals(payload, message.payload());
            assertEquals(3, message.payloadBuffer().remaining());
            assertEquals(0, message.attemptCount());
            assertFalse(message.leasedAt().isBefore(message.enqueuedAt()));
            message.ack();
            MessageNotFoundException late = assertThrows(MessageNotFoundException.class, message::ack);
            assertTrue(late.getMessage().contains(id));
            assertFalse(late.retryable());
        }
    }

    @Test
    void aRefusedMessageCostsOnlyItself() {
        List<EnqueueResult> results = client.enqueueMany(List.of(
                EnqueueMessage.builder(queue).payload("one").build(),
                EnqueueMessage.builder("nowhere").payload("two").build(),
                EnqueueMessage.builder(queue).payload("three").build()));
        assertInstanceOf(EnqueueResult.Stored.class, results.get(0));
        assertInstanceOf(QueueNotFoundException.class, results.get(1).error().orElseThrow());
        assertThrows(QueueNotFoundException.class, results.get(1)::messageIdOrThrow);
        assertInstanceOf(EnqueueResult.Stored.class, results.get(2));
        assertEquals(2, client.getStats(queue).depth());
    }

    @Test
    void aLongListIsStoredInOrder() {
        List<EnqueueMessage> messages = new ArrayList<>();
        for (int i = 0; i < 2500; i++) {
            messages.add(EnqueueMessage.builder(queue).payload("n" + i).build());
        }
        List<EnqueueResult> results = client.enqueueMany(messages);
        List<String> ids = results.stream().map(EnqueueResult::messageIdOrThrow).toList();
        assertEquals(ids.stream().sorted().toList(), ids, "ids increase");
        try (FilaConsumer consumer = client.consume(queue, ConsumeOptions.defaults().withPrefetch(5000))) {
            List<Message> got = new ArrayList<>();
            while (got.size() < 2500) {
                got.addAll(consumer.receiveMany(1000, Duration.ofSeconds(20)));
            }
            for (int i = 0; i < 2500; i++) {
                assertEquals("n" + i, new String(got.get(i).payload()));
            }
            List<SettleResult> settled = client.ackMany(queue, got.stream().map(Message::id).toList());
            assertTrue(settled.stream().allMatch(SettleResult::settled));
        }
    }

    @Test
    void anIdempotencyKeyIsStoredOnce() {
        EnqueueMessage message =
                EnqueueMessage.builder(queue).payload("once").idempotencyKey("order-7").build();
        EnqueueResult.Stored first = (EnqueueResult.Stored) client.enqueueMany(List.of(message)).get(0);
        EnqueueResult.Stored again = (EnqueueResult.Stored) client.enqueueMany(List.of(message)).get(0);
        assertEquals(first.messageId(), again.messageId());
        assertFalse(first.duplicate());
        assertTrue(again.duplicate());
    }

    @Test
    void optionsPlaceAMessage() {
        client.enqueue(EnqueueMessage.builder(queue)
                .fairnessKey("acme").weight(3).throttleKeys("provider:x").delay(Duration.ofMillis(200)).build());
        try (FilaConsumer consumer = client.consume(queue)) {
            Message message = consumer.receive().orElseThrow();
            assertEquals("acme", message.fairnessKey());
            assertEquals(3, message.weight());
            assertEquals(List.of("provider:x"), message.throttleKeys());
            assertTrue(Duration.between(message.enqueuedAt(), message.leasedAt()).toMillis() >= 200);
            message.ack();
        }
    }

    @Test
    void twentyMebibytesGoBothWays() {
        byte[] payload = new byte[20 << 20];
        new java.util.Random(1).nextBytes(payload);
        client.enqueue(queue, Map.of(), payload);
        try (FilaConsumer consumer = client.consume(queue)) {
            Message message = consumer.receive().orElseThrow();
            assertArrayEquals(payload, message.payload());
            message.ack();
        }
    }

    @Test
    void callsMadeTogetherShareFramesAndAllAreAnswered() {
        List<CompletableFuture<String>> sends = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            sends.add(client.async().enqueue(queue, Map.of(), ("m" + i).getBytes()));
        }
        HashSet<String> ids = new HashSet<>();
        sends.forEach(send -> ids.add(send.join()));
        assertEquals(500, ids.size());
    }

    @Test
    void aCancelledCallHarmsNoOtherCallOfItsBatch() throws Exception {
        try (FilaClient lingering = FilaClient.builder(Broker.shared().address())
                .withBatchMode(BatchMode.linger(Duration.ofMillis(300))).build()) {
            CompletableFuture<String> first = lingering.async().enqueue(queue, Map.of(), "cancelled".getBytes());
            CompletableFuture<String> second = lingering.async().enqueue(queue, Map.of(), "companion".getBytes());
            assertTrue(first.cancel(true));
            assertEquals(36, second.join().length());
            assertEquals(1, client.getStats(queue).depth(), "what was cancelled in time was never sent");
        }
    }

    @Test
    void aFutureFailsWithTheBrokersCause() {
        CompletionException failed = assertThrows(
                CompletionException.class, () -> client.async().enqueue("nowhere", Map.of(), new byte[0]).join());
        QueueNotFoundException cause = assertInstanceOf(QueueNotFoundException.class, failed.getCause());
        assertTrue(cause.getMessage().contains("nowhere"));
        assertEquals(1, cause.wireCode());
    }

    @Test
    void futuresAreCompletedOnTheGivenExecutor() throws Exception {
        java.util.concurrent.CountDownLatch held = new java.util.concurrent.CountDownLatch(1);
        java.util.concurrent.Executor late = task -> new Thread(() -> {
            try {
                held.await();
                task.run();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }, "own-executor").start();
        AtomicReference<String> ran = new AtomicReference<>();
        try (FilaClient other =
                FilaClient.builder(Broker.shared().address()).withExecutor(late).build()) {
            CompletableFuture<Void> followed = other.async().enqueue(queue, Map.of(), new byte[0])
                    .thenRun(() -> ran.set(Thread.currentThread().getName()));
            other.enqueue(queue, Map.of(), new byte[0]); // a blocking call needs no executor
            assertFalse(followed.isDone());
            held.countDown();
            followed.join();
        }
        assertEquals("own-executor", ran.get());
    }

    @Test
    void traceContextGoesOutAndComesIn() throws Exception {
        String trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        try (FilaClient traced =
                FilaClient.builder(Broker.shared().address()).withTraceparent(() -> trace).build()) {
            traced.enqueue(queue, Map.of("a", "b"), new byte[0]);
            traced.enqueue(queue, Map.of("traceparent", "the caller's own"), new byte[0]);
        }
        try (FilaConsumer consumer = client.consume(queue)) {
            assertEquals(trace, consumer.receive().orElseThrow().traceparent().orElseThrow());
            assertEquals("the caller's own", consumer.receive().orElseThrow().traceparent().orElseThrow());
        }
    }

    @Test
    void whatCannotBeSentIsRefusedBeforeAnythingIsSent() {
        assertThrows(IllegalArgumentException.class, () -> client.enqueue("", Map.of(), new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> client.enqueue("q".repeat(70_000), Map.of(), new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> client.enqueue(queue, Map.of("k", "\ud800"), new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> client.consume(queue, ConsumeOptions.defaults().withPrefetch(0)));
        assertEquals(0, client.getStats(queue).depth());
    }

    @Test
    void anInterruptedThreadGetsItsFlagBack() {
        int interrupted = 0;
        for (int attempt = 0; attempt < 100 && interrupted == 0; attempt++) {
            Thread.currentThread().interrupt();
            try {
                client.enqueue(queue, Map.of(), new byte[0]); // the answer may be there before it waits
            } catch (CallInterruptedException e) {
                interrupted++;
            }
            assertTrue(Thread.interrupted());
        }
        assertEquals(1, interrupted);
        client.enqueue(queue, Map.of(), new byte[0]);
    }
}
