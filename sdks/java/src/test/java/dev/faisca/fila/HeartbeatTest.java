package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.faisca.fila.support.Broker;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HeartbeatTest {
    // Long enough that a busy machine does not miss two of three beats.
    private static final Duration VISIBILITY = Duration.ofSeconds(3);

    private FilaClient client;
    private String queue;

    @BeforeEach
    void connect() throws Exception {
        client = FilaClient.connect(Broker.shared().address());
        queue = "heartbeat-" + System.nanoTime();
        client.createQueue(queue, QueueOptions.defaults().withVisibilityTimeout(VISIBILITY));
        client.enqueue(queue, Map.of(), "1".getBytes());
    }

    @AfterEach
    void close() {
        client.close();
    }

    @Test
    void aHeartbeatKeepsWhatASlowConsumerHolds() throws Exception {
        try (FilaConsumer consumer = client.consume(queue, ConsumeOptions.defaults().withHeartbeat(true))) {
            Message message = consumer.iterator().next();
            Thread.sleep(2 * VISIBILITY.toMillis());
            QueueStats stats = client.getStats(queue);
            assertEquals(List.of(0L, 1L), List.of(stats.depth(), stats.inFlight()));
            message.ack();
        }
    }

    @Test
    void aHeartbeatKeepsWhatHandlersHaveWhileTheClientDrains() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        AtomicInteger handled = new AtomicInteger();
        ConsumeOptions options = ConsumeOptions.defaults().withHeartbeat(true);
        ConsumerHandle handle = client.consume(queue, options, message -> {
            begun.countDown();
            Thread.sleep(2 * VISIBILITY.toMillis());
            message.extend(Duration.ZERO); // settling, and what concerns it, goes on
            message.ack();
            handled.incrementAndGet();
        });
        begun.await();
        client.drain(Duration.ofMinutes(1));
        handle.done().get(1, TimeUnit.MINUTES);
        assertEquals(1, handled.get());
        try (FilaClient other = FilaClient.connect(Broker.shared().address())) {
            QueueStats stats = other.getStats(queue);
            assertEquals(List.of(0L, 0L), List.of(stats.depth(), stats.inFlight()));
        }
    }

    @Test
    void aLeaseIsExtendedByHand() throws Exception {
        try (FilaConsumer consumer = client.consume(queue)) {
            Message message = consumer.iterator().next();
            message.extend(Duration.ofMinutes(1));
            client.extend(queue, message.id(), Duration.ofMinutes(1));
            Thread.sleep(VISIBILITY.toMillis() * 3 / 2);
            message.ack();
            assertThrows(MessageNotFoundException.class, () -> message.extend(Duration.ZERO));
        }
    }

    @Test
    void aQueueLimitsAttempts() throws Exception {
        String limited = queue + "-limited";
        client.createQueue(limited, QueueOptions.defaults().withMaxAttempts(1));
        client.enqueue(limited, Map.of(), "poison".getBytes());
        try (FilaConsumer consumer = client.consume(limited)) {
            consumer.iterator().next().nack("it broke");
            assertEquals(1, client.getStats(limited + ".dlq").depth());
        }
    }
}
