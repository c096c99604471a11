package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Eventually;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ConsumeTest {
    private FilaClient client;
    private String queue;

    @BeforeEach
    void connect() throws Exception {
        client = FilaClient.connect(Broker.shared().address());
        queue = "consume-" + System.nanoTime();
        client.createQueue(queue, QueueOptions.defaults().withVisibilityTimeout(Duration.ofMinutes(2)));
    }

    @AfterEach
    void close() {
        client.close();
    }

    private void enqueue(int count) {
        for (int i = 0; i < count; i++) {
            client.enqueue(queue, Map.of(), ("m" + i).getBytes());
        }
    }

    @Test
    void consumingAQueueThatIsNotThereFailsWhereItIsAsked() {
        assertThrows(QueueNotFoundException.class, () -> client.consume("nowhere"));
        assertThrows(QueueNotFoundException.class, () -> client.consume("nowhere", message -> {}));
    }

    @Test
    void aStreamErrorReachesWhoeverIterates() throws Exception {
        enqueue(1);
        FilaConsumer consumer = client.consume(queue);
        assertThrows(QueueNotFoundException.class, () -> {
            for (Message message : consumer) {
                message.ack();
                client.deleteQueue(queue);
            }
        });
        assertThrows(QueueNotFoundException.class, consumer::receive, "it goes on saying why");
    }

    @Test
    void aStreamErrorReachesTheHandle() {
        ConsumerHandle handle = client.consume(queue, message -> {});
        client.deleteQueue(queue);
        ExecutionException failed =
                assertThrows(ExecutionException.class, () -> handle.done().get(30, TimeUnit.SECONDS));
        assertInstanceOf(QueueNotFoundException.class, failed.getCause());
        assertFalse(handle.isActive());
    }

    @Test
    void aStreamErrorReachesTheSubscriber() throws Exception {
        Recorder recorder = new Recorder(10);
        client.publisher(queue, ConsumeOptions.defaults()).subscribe(recorder);
        Recorder lost = new Recorder(1);
        client.publisher("nowhere", ConsumeOptions.defaults()).subscribe(lost);
        assertInstanceOf(QueueNotFoundException.class, lost.signals.poll(30, TimeUnit.SECONDS));
        Eventually.holds("the consumer is there", () -> client.getStats(queue).activeConsumers() == 1);
        client.deleteQueue(queue);
        assertInstanceOf(QueueNotFoundException.class, recorder.signals.poll(30, TimeUnit.SECONDS));
    }

    @Test
    void aSubscriberGetsWhatItRequestsAndNoMore() throws Exception {
        enqueue(5);
        Recorder recorder = new Recorder(2);
        client.publisher(queue, ConsumeOptions.defaults()).subscribe(recorder);
        assertEquals("m0", text(recorder.signals.poll(30, TimeUnit.SECONDS)));
        assertEquals("m1", text(recorder.signals.poll(30, TimeUnit.SECONDS)));
        Eventually.holds("all are fetched", () -> client.getStats(queue).inFlight() == 5);
        assertTrue(recorder.signals.isEmpty());
        recorder.subscription.request(1);
        assertEquals("m2", text(recorder.signals.poll(30, TimeUnit.SECONDS)));
        recorder.subscription.cancel();
        Eventually.holds("what was not requested is handed back", () -> client.getStats(queue).depth() == 2);
        assertTrue(recorder.signals.isEmpty());
    }

    @Test
    void aWrongRequestIsAnError() throws Exception {
        Recorder recorder = new Recorder(0);
        client.publisher(queue, ConsumeOptions.defaults()).subscribe(recorder);
        recorder.subscription.request(0);
        assertInstanceOf(IllegalArgumentException.class, recorder.signals.poll(30, TimeUnit.SECONDS));
    }

    @Test
    void closingTheClientCompletesSubscribers() throws Exception {
        Recorder recorder = new Recorder(1);
        client.publisher(queue, ConsumeOptions.defaults()).subscribe(recorder);
        Eventually.holds("the consumer is there", () -> client.getStats(queue).activeConsumers() == 1);
        client.close();
        assertEquals("complete", recorder.signals.poll(30, TimeUnit.SECONDS));
    }

    @Test
    void aHandlerThatThrowsRejectsItsMessage() throws Exception {
        enqueue(1);
        BlockingQueue<Long> attempts = new ArrayBlockingQueue<>(10);
        try (ConsumerHandle handle = client.consume(queue, ConsumeOptions.defaults().withAutoAck(true), message -> {
            attempts.add(message.attemptCount());
            if (message.attemptCount() == 0) {
                throw new IllegalStateException("not today");
            }
        })) {
            assertEquals(0, attempts.poll(30, TimeUnit.SECONDS));
            assertEquals(1, attempts.poll(30, TimeUnit.SECONDS));
            Eventually.holds("the second attempt was acknowledged", () -> {
                QueueStats stats = client.getStats(queue);
                return stats.depth() == 0 && stats.inFlight() == 0;
            });
            assertTrue(handle.isActive());
        }
    }

    @Test
    void handlersRunAtTheSameTimeUpToTheirConcurrency() throws Exception {
        enqueue(12);
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
        ConsumerHandle handle = client.consume(queue, ConsumeOptions.defaults().withConcurrency(3), message -> {
            most.accumulateAndGet(running.incrementAndGet(), Math::max);
            Thread.sleep(50);
            running.decrementAndGet();
            message.ack();
            seen.add(message.id());
        });
        Eventually.holds("all are handled", () -> seen.size() == 12);
        assertEquals(3, most.get());
        handle.cancel();
        handle.done().get(30, TimeUnit.SECONDS);
        assertEquals(0, client.getStats(queue).depth());
    }

    @Test
    void aCancelledConsumerHandsBackWhatNobodyReadUncounted() throws Exception {
        enqueue(10);
        FilaConsumer consumer = client.consume(queue);
        Message first = consumer.receive().orElseThrow();
        Eventually.holds("all are fetched", () -> client.getStats(queue).inFlight() == 10);
        consumer.close();
        assertEquals(Optional.empty(), consumer.receive());
        assertTrue(consumer.isClosed());
        first.ack();
        Eventually.holds("nine are back", () -> client.getStats(queue).depth() == 9);
        try (FilaConsumer other = client.consume(queue)) {
            assertEquals(0, other.receive().orElseThrow().attemptCount());
        }
    }

    @Test
    void aReleasedMessageComesAgainUncounted() {
        enqueue(1);
        try (FilaConsumer consumer = client.consume(queue)) {
            consumer.receive().orElseThrow().release();
            Message again = consumer.receive(Duration.ofSeconds(30)).orElseThrow();
            assertEquals(0, again.attemptCount());
            client.nack(queue, again.id(), "mine");
            Message rejected = consumer.receive(Duration.ofSeconds(30)).orElseThrow();
            assertEquals(1, rejected.attemptCount());
            client.release(queue, rejected.id());
            Message last = consumer.receive(Duration.ofSeconds(30)).orElseThrow();
            client.ack(queue, last.id());
            List<SettleResult> late = client.ackMany(queue, List.of(last.id(), "no id"));
            assertTrue(late.stream().allMatch(result -> result.exception() instanceof MessageNotFoundException));
        }
    }

    @Test
    void waitingForAMessageEndsInTime() {
        try (FilaConsumer consumer = client.consume(queue)) {
            assertEquals(Optional.empty(), consumer.receive(Duration.ofMillis(50)));
            assertEquals(List.of(), consumer.receiveMany(10, Duration.ZERO));
            assertFalse(consumer.isClosed());
        }
    }

    private static String text(Object signal) {
        return new String(((Message) signal).payload());
    }

    /** Notes every signal. */
    private static final class Recorder implements Flow.Subscriber<Message> {
        final BlockingQueue<Object> signals = new LinkedBlockingQueue<>();
        final long first;
        volatile Flow.Subscription subscription;

        Recorder(long first) {
            this.first = first;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            if (first > 0) {
                given.request(first);
            }
        }

        @Override
        public void onNext(Message message) {
            signals.add(message);
        }

        @Override
        public void onError(Throwable error) {
            signals.add(error);
        }

        @Override
        public void onComplete() {
            signals.add("complete");
        }
    }
}
