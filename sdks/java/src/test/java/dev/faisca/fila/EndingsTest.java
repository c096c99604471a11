package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Decoder;
import dev.faisca.fila.internal.wire.Opcodes;
import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Eventually;
import dev.faisca.fila.support.Peer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * How calls and consumers end when nobody means well: many deadlines in one moment, answers that cannot be read,
 * connections that die with work on them.
 */
@SuppressWarnings("try") // clients are closed before their blocks end
class EndingsTest {
    private static final Bodies.ConsumeOk ACCEPTED = new Bodies.ConsumeOk("c-1");

    /** Connected to a peer that has gone since and does not come back. */
    private static FilaClient leftAlone(FilaClientBuilder builder) throws Exception {
        FilaClient client = builder.withReconnectPauses(Duration.ofHours(1), Duration.ofHours(1)).build();
        assertThrows(ConnectionLostException.class, () -> client.ack("q", "id"));
        return client;
    }

    @Test
    void whatWasGivenUpMakesRoomForOthers() throws Exception {
        try (Peer peer = Peer.raw(frame -> Peer.HANG_UP);
                FilaClient client = leftAlone(FilaClient.builder(peer.address()).withInFlightBytesMax(100_000))) {
            for (int i = 0; i < 30; i++) {
                RequestTimeoutException late = assertThrows(RequestTimeoutException.class,
                        () -> client.withTimeout(Duration.ofMillis(10)).enqueue("q", Map.of(), new byte[90_000]));
                assertFalse(late.getMessage().contains("under way"), late.getMessage());
            }
        }
    }

    /** An answer that cannot be read is no refusal: sending the messages again would store them twice. */
    @Test
    void anAnswerThatCannotBeReadIsNotTakenForARefusal() throws Exception {
        try (Peer peer = Peer.raw(frame -> Peer.unreadable(Opcodes.ENQUEUE_RESULT, frame.requestId()));
                FilaClient client = FilaClient.connect(peer.address())) {
            List<EnqueueMessage> messages = List.of(
                    new EnqueueMessage("q", Map.of(), new byte[0]),
                    new EnqueueMessage("q", Map.of(), new byte[0]),
                    new EnqueueMessage("r", Map.of(), new byte[0]));
            for (EnqueueResult result : client.enqueueMany(messages)) {
                FilaException error = result.error().orElseThrow();
                assertTrue(error.maybeApplied(), error.toString());
                assertTrue(error.getMessage().contains("cannot be read"), error.getMessage());
            }
            assertEquals(1, peer.received(Opcodes.ENQUEUE));
        }
    }

    @Test
    void aDeliveryThatCannotBeReadEndsTheConsumerOnBothSides() throws Exception {
        try (Peer peer = Peer.raw(frame -> frame.opcode() != Opcodes.CONSUME
                        ? null
                        : join(Peer.bytes(frame.requestId(), ACCEPTED), Peer.unreadable(Opcodes.DELIVERY, frame.requestId())));
                FilaClient client = FilaClient.connect(peer.address());
                FilaConsumer consumer = client.consume("q")) {
            assertThrows(InvalidFrameException.class, consumer::receive);
            Eventually.holds("the broker is told", () -> peer.received(Opcodes.CANCEL_CONSUME) == 1);
        }
    }

    @Test
    void textThatIsNoTextIsRefusedWhenItComesNotWhenItIsRead() throws Exception {
        byte[] delivery = Peer.bytes(1, deliveryOf("one"));
        AtomicBoolean broken = new AtomicBoolean(true);
        try (Peer peer = Peer.raw(frame -> {
                    if (frame.opcode() != Opcodes.CONSUME) {
                        return null;
                    }
                    byte[] sent = Peer.bytes(frame.requestId(), deliveryOf("one"));
                    if (broken.getAndSet(false)) {
                        sent[sent.length - 40] = (byte) 0xff; // somewhere in the texts, which are all x
                    }
                    return join(Peer.bytes(frame.requestId(), ACCEPTED), sent);
                });
                FilaClient client = FilaClient.builder(peer.address())
                        .withReconnectPauses(Duration.ofMillis(1), Duration.ofMillis(1)).build();
                FilaConsumer consumer = client.consume("q")) {
            assertTrue(delivery.length > 40);
            Message message = consumer.receive().orElseThrow();
            assertEquals(Map.of("x".repeat(30), "x".repeat(30)), message.headers());
            assertEquals(2, peer.received(Opcodes.CONSUME), "the first delivery cost its connection");
        }
    }

    @Test
    void whatIsSentAgainKeepsItsOrder() throws Exception {
        List<String> stored = new CopyOnWriteArrayList<>();
        AtomicBoolean broken = new AtomicBoolean();
        try (Peer peer = Peer.raw(frame -> {
                    if (frame.opcode() != Opcodes.ENQUEUE_WITH) {
                        return null;
                    }
                    List<String> keys = Bodies.EnqueueWith.decode(new Decoder(frame.body())).messages().stream()
                            .map(Bodies.EnqueueWithItem::idempotencyKey)
                            .toList();
                    if (!broken.get()) {
                        broken.set(keys.contains("199"));
                        return broken.get() ? Peer.HANG_UP : null;
                    }
                    stored.addAll(keys);
                    return Peer.bytes(frame.requestId(), new Bodies.EnqueueWithResult(keys.stream()
                            .map(key -> new Bodies.EnqueueWithResultItem(0, "id", false))
                            .toList()));
                });
                FilaClient client = FilaClient.builder(peer.address())
                        .withBatchMessagesMax(10)
                        .withReconnectPauses(Duration.ofMillis(1), Duration.ofMillis(1))
                        .build()) {
            List<EnqueueMessage> messages = IntStream.range(0, 200)
                    .mapToObj(n -> EnqueueMessage.builder("q").idempotencyKey("" + n).build())
                    .toList();
            client.enqueueMany(messages).forEach(EnqueueResult::messageIdOrThrow);
            assertEquals(IntStream.range(0, 200).mapToObj(n -> "" + n).toList(), stored);
        }
    }

    @Test
    void consumersAtALeaderLearnWhyTheClientEnded() throws Exception {
        try (Peer leader = Peer.raw(
                        frame -> frame.opcode() == Opcodes.CONSUME ? Peer.bytes(frame.requestId(), ACCEPTED) : null);
                Peer seed = Peer.raw(frame -> frame.opcode() == Opcodes.LIST_QUEUES
                        ? join(Peer.bytes(0, new Bodies.Error(10, "the key was revoked", Map.of())),
                                Peer.bytes(0, new Bodies.Disconnect()))
                        : Peer.bytes(frame.requestId(), Peer.notLeader(leader.address())));
                FilaClient client = FilaClient.connect(seed.address());
                FilaConsumer consumer = client.consume("q")) {
            CompletableFuture<String> call = client.async().enqueue("q", Map.of(), new byte[0]);
            Eventually.holds("the call is under way", () -> leader.received(Opcodes.ENQUEUE) == 1);
            assertThrows(FilaException.class, client::listQueues);
            assertThrows(UnauthorizedException.class, consumer::receive);
            ExecutionException lost = assertThrows(ExecutionException.class, () -> call.get(30, TimeUnit.SECONDS));
            assertInstanceOf(ConnectionLostException.class, lost.getCause());
        }
    }

    @Test
    void whatWasSentBeforeCloseMayHaveBeenCarriedOut() throws Exception {
        try (Peer peer = Peer.raw(frame -> null);
                FilaClient client = FilaClient.connect(peer.address())) {
            CompletableFuture<String> call = client.async().enqueue("q", Map.of(), new byte[0]);
            Eventually.holds("it is under way", () -> peer.received(Opcodes.ENQUEUE) == 1);
            client.close();
            ExecutionException ended = assertThrows(ExecutionException.class, () -> call.get(30, TimeUnit.SECONDS));
            assertTrue(assertInstanceOf(ClientClosedException.class, ended.getCause()).maybeApplied());
            assertFalse(assertThrows(ClientClosedException.class, () -> client.enqueue("q", Map.of(), new byte[0])).maybeApplied());
        }
    }

    @Test
    void aLeaseMayWaitLongerThanTheCallTimeout() throws Exception {
        String queue = "waits-" + System.nanoTime();
        try (FilaClient witness = FilaClient.connect(Broker.shared().address());
                FilaClient client = FilaClient.builder(Broker.shared().address())
                        .withTimeout(Duration.ofMillis(500)).build()) {
            witness.createQueue(queue);
            CompletableFuture.delayedExecutor(900, TimeUnit.MILLISECONDS)
                    .execute(() -> witness.enqueue(queue, Map.of(), new byte[0]));
            LeasedBatch batch = client.leaseBatch(queue, "job",
                    LeaseOptions.of(1).withWait(Duration.ofSeconds(20)).withForm(LeaseOptions.Form.COUNT));
            assertEquals(1, batch.messageCount());
            assertTrue(batch.messages().isEmpty() && batch.arrow().isEmpty());
            assertThrows(IllegalArgumentException.class, () -> LeaseOptions.of(1).withWait(Duration.ofDays(50)));
        }
    }

    @Test
    void aSubscriberOfAClosedClientIsToldSo() throws Exception {
        FilaClient client = FilaClient.connect(Broker.shared().address());
        client.close();
        CompletableFuture<Throwable> told = new CompletableFuture<>();
        client.publisher("q").subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.request(1);
            }

            @Override
            public void onNext(Message message) {}

            @Override
            public void onError(Throwable error) {
                told.complete(error);
            }

            @Override
            public void onComplete() {
                told.complete(null);
            }
        });
        assertInstanceOf(ClientClosedException.class, told.get(10, TimeUnit.SECONDS));
    }

    /** A delivery can come between the end of a consumer and its cancel: nobody has read it, so it goes back. */
    @Test
    void deliveriesInTheMomentOfACloseAreHandedBack() throws Exception {
        String queue = "closed-" + System.nanoTime();
        try (FilaClient client = FilaClient.connect(Broker.shared().address())) {
            client.createQueue(queue, QueueOptions.defaults().withVisibilityTimeout(Duration.ofHours(1)));
            EnqueueMessage message = new EnqueueMessage(queue, Map.of(), new byte[200]);
            client.enqueueMany(java.util.Collections.nCopies(2_000, message)).forEach(EnqueueResult::messageIdOrThrow);
            for (int i = 0; i < 300; i++) {
                FilaConsumer consumer = client.consume(queue, ConsumeOptions.defaults().withPrefetch(500));
                java.util.concurrent.locks.LockSupport.parkNanos(i % 30 * 100_000L);
                consumer.close();
            }
            Eventually.holds("nothing is leased", () -> client.getStats(queue).inFlight() == 0);
        }
    }

    /** Whoever stops the executor while messages come must not have them all rejected. */
    @Test
    void anInterruptedHandlerHandsItsMessageBackAndTakesNoOther() throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        List<Integer> handled = new CopyOnWriteArrayList<>();
        try (Peer peer = Peer.raw(frame -> frame.opcode() == Opcodes.CONSUME
                        ? Peer.bytes(frame.requestId(), ACCEPTED, deliveryOf("one"), deliveryOf("two"), deliveryOf("three"))
                        : null);
                FilaClient client = FilaClient.builder(peer.address()).withExecutor(executor).build()) {
            ConsumerHandle handle = client.consume("q", message -> {
                handled.add(1);
                Thread.sleep(60_000);
            });
            Eventually.holds("a handler runs", () -> handled.size() == 1);
            executor.shutdownNow();
            CompletionException ended = assertThrows(CompletionException.class,
                    () -> handle.done().orTimeout(30, TimeUnit.SECONDS).join());
            assertInstanceOf(ClientClosedException.class, ended.getCause(), "nobody can handle messages any more");
            Eventually.holds("the messages go back", () -> peer.received(Opcodes.RELEASE) >= 1);
            assertEquals(0, peer.received(Opcodes.NACK));
            assertEquals(1, handled.size());
        }
    }

    private static Bodies.Delivery deliveryOf(String id) {
        String text = "x".repeat(30);
        return new Bodies.Delivery(List.of(new Bodies.DeliveryItem(
                id, "q", Map.of(text, text), new byte[0], text, 1, List.of(), 0, 0, 0)));
    }

    private static byte[] join(byte[] one, byte[] other) {
        byte[] both = java.util.Arrays.copyOf(one, one.length + other.length);
        System.arraycopy(other, 0, both, one.length, other.length);
        return both;
    }
}
