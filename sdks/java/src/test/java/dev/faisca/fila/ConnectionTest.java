package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.wire.Opcodes;
import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Eventually;
import dev.faisca.fila.support.Peer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

@SuppressWarnings("try") // clients are closed before their blocks end
class ConnectionTest {
    @Test
    void theClientComesBackAndItsConsumersGoOn() throws Exception {
        List<ConnectionEvent> events = new CopyOnWriteArrayList<>();
        try (Broker broker = Broker.start(Map.of());
                FilaClient client = FilaClient.builder(broker.address())
                        .withReconnectPauses(Duration.ofMillis(50), Duration.ofMillis(200))
                        .withConnectionListener(events::add)
                        .build()) {
            client.createQueue("lasting");
            Set<String> seen = new HashSet<>();
            ConsumerHandle handle = client.consume("lasting", ConsumeOptions.defaults(), message -> {
                message.ack();
                synchronized (seen) {
                    seen.add(new String(message.payload()));
                }
            });
            client.enqueue("lasting", Map.of(), "before".getBytes());
            Eventually.holds("it is handled", () -> seen.size() == 1);
            broker.kill();
            Eventually.holds("the loss is noticed", () -> events.stream().anyMatch(ConnectionEvent.Disconnected.class::isInstance));
            CompletableFuture<String> waiting = client.async().enqueue("lasting", Map.of(), "meanwhile".getBytes());
            RequestTimeoutException late = assertThrows(RequestTimeoutException.class,
                    () -> client.withTimeout(Duration.ofMillis(100)).getStats("lasting"));
            assertTrue(late.getMessage().contains("not connected"), late.getMessage());
            broker.start();
            assertEquals(36, waiting.get(30, TimeUnit.SECONDS).length());
            Eventually.holds("the consumer came back", () -> {
                synchronized (seen) {
                    return seen.contains("meanwhile");
                }
            });
            assertTrue(handle.isActive());
            assertTrue(events.stream().anyMatch(ConnectionEvent.Reconnecting.class::isInstance));
            client.close();
            assertInstanceOf(ConnectionEvent.Closed.class, events.get(events.size() - 1));
        }
    }

    @Test
    void whatWasSentAndNotAnsweredIsNotSentAgainUnlessItHasAKey() throws Exception {
        try (Broker broker = Broker.start(Map.of());
                FilaClient client = FilaClient.builder(broker.address())
                        .withReconnectPauses(Duration.ofMillis(50), Duration.ofMillis(200))
                        .build()) {
            client.createQueue("ambiguous");
            broker.freeze();
            CompletableFuture<String> plain = client.async().enqueue("ambiguous", Map.of(), new byte[1]);
            CompletableFuture<String> keyed = client.async()
                    .enqueue(EnqueueMessage.builder("ambiguous").idempotencyKey("once").build());
            Thread.sleep(300); // both are in the kernel's buffers by now; if not, they are sent later
            broker.kill();
            broker.start();
            assertEquals(36, keyed.get(30, TimeUnit.SECONDS).length());
            CompletionException lost = assertThrows(CompletionException.class, plain::join);
            ConnectionLostException cause = assertInstanceOf(ConnectionLostException.class, lost.getCause());
            assertTrue(cause.retryable() && cause.maybeApplied());
        }
    }

    @Test
    void aCallEndsAtItsDeadlineAndTheClientLivesOn() throws Exception {
        try (Broker broker = Broker.start(Map.of()); FilaClient client = FilaClient.connect(broker.address())) {
            client.createQueue("slow");
            broker.freeze();
            FilaClient hasty = client.withTimeout(Duration.ofMillis(200));
            assertThrows(RequestTimeoutException.class, () -> hasty.enqueue("slow", Map.of(), new byte[0]));
            assertThrows(RequestTimeoutException.class,
                    () -> hasty.enqueueMany(List.of(EnqueueMessage.builder("slow").build())));
            CompletionException late = assertThrows(
                    CompletionException.class, () -> client.async().withTimeout(Duration.ofMillis(200)).listQueues().join());
            assertInstanceOf(RequestTimeoutException.class, late.getCause());
            broker.thaw();
            client.enqueue("slow", Map.of(), new byte[0]);
        }
    }

    @Test
    void drainFinishesWhatIsUnderWayAndHandsBackTheRest() throws Exception {
        try (FilaClient witness = FilaClient.connect(Broker.shared().address())) {
            String queue = "drained-" + System.nanoTime();
            witness.createQueue(queue);
            for (int i = 0; i < 5; i++) {
                witness.enqueue(queue, Map.of(), new byte[0]);
            }
            FilaClient client = FilaClient.builder(Broker.shared().address())
                    .withBatchMode(BatchMode.linger(Duration.ofSeconds(20))).build();
            AtomicInteger handled = new AtomicInteger();
            ConsumerHandle handle = client.consume(queue, message -> {
                Thread.sleep(300);
                message.ack();
                handled.incrementAndGet();
            });
            Eventually.holds("all are fetched", () -> witness.getStats(queue).inFlight() == 5);
            CompletableFuture<String> lingering = client.async().enqueue(queue, Map.of(), new byte[0]);
            client.drain(Duration.ofSeconds(15));
            assertEquals(36, lingering.join().length());
            handle.done().get(10, TimeUnit.SECONDS);
            Eventually.holds("the rest is back",
                    () -> witness.getStats(queue).depth() == 6 - handled.get() && witness.getStats(queue).inFlight() == 0);
            assertThrows(ClientClosedException.class, () -> client.enqueue(queue, Map.of(), new byte[0]));
        }
    }

    @Test
    void closeLeavesNobodyWaiting() throws Exception {
        try (Peer mute = new Peer(null, frame -> null)) {
            FilaClient client = FilaClient.builder(mute.address())
                    .withInFlightBytesMax(100_000).withBatchMode(BatchMode.disabled()).build();
            List<CompletableFuture<?>> calls = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                calls.add(CompletableFuture.runAsync(
                        () -> client.enqueue("q", Map.of(), new byte[20_000]),
                        task -> new Thread(task).start()));
            }
            Eventually.holds("it sends up to the bound",
                    () -> mute.frames.stream().filter(frame -> frame.opcode() == Opcodes.ENQUEUE).count() == 4);
            Thread.sleep(200);
            assertEquals(4, mute.frames.stream().filter(frame -> frame.opcode() == Opcodes.ENQUEUE).count(),
                    "100,000 bytes have room for four messages of a little over 20,000");
            client.close();
            for (CompletableFuture<?> call : calls) {
                CompletionException failed = assertThrows(CompletionException.class, call::join);
                assertInstanceOf(ClientClosedException.class, failed.getCause());
            }
        }
    }

    @Test
    void aBrokerThatIsNotThereIsToldAtOnce() throws Exception {
        ConnectFailedException refused = assertThrows(ConnectFailedException.class, () -> FilaClient.connect("127.0.0.1:1"));
        assertTrue(refused.getMessage().contains("is the broker running"), refused.getMessage());
        try (java.net.ServerSocket silent = new java.net.ServerSocket(0)) {
            ConnectFailedException mute = assertThrows(ConnectFailedException.class, () -> FilaClient
                    .builder("127.0.0.1:" + silent.getLocalPort()).withConnectTimeout(Duration.ofMillis(300)).build());
            assertTrue(mute.getMessage().contains("no handshake within 300 ms"), mute.getMessage());
        }
        assertThrows(IllegalArgumentException.class, () -> FilaClient.builder("a:b:c"));
    }

    @Test
    void aBrokerThatFellSilentIsNoticed() throws Exception {
        try (Peer silent = new Peer(null, frame -> null);
                FilaClient client = FilaClient.builder(silent.address())
                        .withKeepAlive(Duration.ofMillis(200), Duration.ofMillis(200)).build()) {
            assertThrows(ConnectionLostException.class, () -> client.enqueue("q", Map.of(), new byte[0]));
        }
    }
}
