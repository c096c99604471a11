package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Json;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class AdminTest {
    private static final String KEY = "0123456789abcdef0123456789abcdef";
    private static Broker broker;
    private static FilaClient client;

    @BeforeAll
    static void connect() throws Exception {
        broker = Broker.start(Map.of("FILA_AUTH__BOOTSTRAP_APIKEY", KEY));
        client = FilaClient.builder(broker.address()).withApiKey(KEY).build();
    }

    @AfterAll
    static void close() {
        client.close();
        broker.close();
    }

    @Test
    void queuesAreMadeListedAndDeleted() {
        assertFalse(client.createQueue("made").isEmpty());
        QueueAlreadyExistsException twice =
                assertThrows(QueueAlreadyExistsException.class, () -> client.createQueue("made"));
        assertTrue(twice.getMessage().contains("made"));
        assertTrue(client.listQueues().stream().anyMatch(queue -> queue.name().equals("made.dlq")));
        client.deleteQueue("made");
        assertThrows(QueueNotFoundException.class, () -> client.getStats("made"));
        assertThrows(LuaCompilationException.class,
                () -> client.createQueue("bad", QueueOptions.defaults().withOnEnqueue("function on_enqueue(")));
    }

    @Test
    void aQueueIsChangedWhileItWorksAndBroughtBack() {
        client.createQueue("changing", QueueOptions.defaults().withMaxAttempts(7));
        QueueUpdate fewer = QueueUpdate.none().with("max_attempts", 3).expecting(1).because("fewer");
        assertEquals(2, client.updateQueue("changing", fewer));
        QueueSettings found = client.getQueue("changing", 0);
        assertEquals("3", found.settings().get("max_attempts"));
        assertEquals("fewer", found.note());
        assertThrows(VersionConflictException.class, () -> client.updateQueue("changing", fewer));
        assertThrows(InvalidConfigValueException.class,
                () -> client.updateQueue("changing", QueueUpdate.none().with("colour", "red")));
        assertEquals(3, client.updateQueue("changing", QueueUpdate.none().from(1)));
        assertEquals("7", client.getQueue("changing", 1).settings().get("max_attempts"));
        List<QueueVersion> versions = client.listVersions("changing");
        assertEquals(List.of(3L, 2L, 1L), versions.stream().map(QueueVersion::version).toList());
        assertEquals(List.of("max_attempts"), versions.get(1).changed());
    }

    @Test
    void settingsAreSetReadAndRemoved() {
        client.setConfig("throttle.java", "100,150");
        assertEquals(Optional.of("100,150"), client.getConfig("throttle.java"));
        assertEquals(Map.of("throttle.java", "100,150"), client.listConfig("throttle.java"));
        client.setConfig("throttle.java", "");
        assertEquals(Optional.empty(), client.getConfig("throttle.java"));
        assertThrows(InvalidConfigValueException.class, () -> client.setConfig("throttle.java", "fast"));
    }

    @Test
    void whatIsPausedWaitsAndSaysWhy() {
        client.createQueue("paused");
        client.enqueue(EnqueueMessage.builder("paused").fairnessKey("acme").build());
        client.pauseQueue("paused", "migration");
        Map<String, Object> why = Json.object(client.explain("paused"));
        assertTrue(why.toString().contains("migration"), why.toString());
        assertTrue(client.explainKey("paused", "acme").startsWith("{"));
        client.resumeQueue("paused");
        client.pauseKey("paused", "acme", "abuse");
        client.resumeKey("paused", "acme");
        assertEquals("acme", client.getStats("paused").fairnessKeys().get(0).key());
        assertEquals(0, client.purgeKey("paused", "other"));
        assertEquals(1, client.purge("paused"));
    }

    @Test
    void deadLettersAreMovedBack() {
        client.createQueue("failing", QueueOptions.defaults()
                .withOnFailure("function on_failure(msg) return { action = \"dlq\" } end"));
        client.enqueue("failing", Map.of(), new byte[0]);
        try (FilaConsumer consumer = client.consume("failing")) {
            consumer.receive().orElseThrow().nack("no");
        }
        assertEquals(1, client.redrive("failing.dlq", 0));
        assertThrows(NotADLQException.class, () -> client.redrive("failing", 0));
    }

    @Test
    void keysHavePermissionsAndCanBeRevoked() {
        ApiKey key = client.createApiKey("java");
        assertFalse(key.toString().contains(key.key()));
        client.createQueue("allowed");
        client.setAcl(key.keyId(), List.of(new Permission("produce", "allowed")));
        assertEquals(List.of(new Permission("produce", "allowed")), client.getAcl(key.keyId()).permissions());
        assertTrue(client.listApiKeys().stream().anyMatch(one -> one.keyId().equals(key.keyId()) && one.expiresAt().isEmpty()));
        try (FilaClient limited = FilaClient.builder(broker.address()).withApiKey(key.key()).build()) {
            limited.enqueue("allowed", Map.of(), new byte[0]);
            assertThrows(ForbiddenException.class, () -> limited.createQueue("other"));
            List<EnqueueResult> mixed = limited.enqueueMany(List.of(
                    EnqueueMessage.builder("allowed").build(), EnqueueMessage.builder("failing").build()));
            assertTrue(mixed.get(0).error().isEmpty(), "a forbidden companion costs only itself");
            assertInstanceOf(ForbiddenException.class, mixed.get(1).error().orElseThrow());
            client.revokeApiKey(key.keyId());
            FilaException cutOff = assertThrows(FilaException.class, () -> {
                for (int i = 0; i < 1000; i++) {
                    limited.enqueue("allowed", Map.of(), new byte[0]);
                    Thread.sleep(20);
                }
            });
            assertTrue(cutOff instanceof UnauthorizedException || cutOff instanceof ConnectionLostException, cutOff.toString());
        }
        assertThrows(UnauthorizedException.class,
                () -> FilaClient.builder(broker.address()).withApiKey(key.key()).build());
        assertThrows(UnauthorizedException.class, () -> FilaClient.connect(broker.address()));
        assertThrows(ApiKeyNotFoundException.class, () -> client.revokeApiKey("nobody"));
    }

    @Test
    void leaseBatchesAreTheSameForWhoeverAsksAgain() {
        client.createQueue("leased");
        for (int i = 0; i < 10; i++) {
            client.enqueue("leased", Map.of(), ("m" + i).getBytes());
        }
        LeasedBatch batch = client.leaseBatch("leased", "job/0", LeaseOptions.of(6).withVisibility(Duration.ofMinutes(1)));
        LeasedBatch again = client.leaseBatch("leased", "job/0", LeaseOptions.of(0));
        assertEquals(6, batch.messages().size());
        assertTrue(again.again());
        assertEquals(batch.messages().get(0).id(), again.messages().get(0).id());
        batch.messages().get(0).ack();
        client.extendBatch("leased", "job/0", Duration.ofMinutes(2));
        assertEquals(List.of("job/0"), client.listBatches("leased").stream().map(OpenBatch::name).toList());
        assertEquals(new BatchCount(1, 5), client.ackBatchesBelow("leased", "job", 1));
        assertThrows(BatchNotFoundException.class, () -> client.ackBatch("leased", "job/0"));
        client.leaseBatch("leased", "job/1", LeaseOptions.of(2));
        assertEquals(2, client.async().releaseBatch("leased", "job/1").join().messages());
    }

    @Test
    void browsingTakesNothing() {
        client.createQueue("browsed");
        client.enqueue("browsed", Map.of("n", "0"), "ready".getBytes());
        client.enqueue(EnqueueMessage.builder("browsed").payload("later").delay(Duration.ofHours(1)).build());
        try (Stream<BrowsedMessage> messages = client.browse("browsed")) {
            List<BrowsedMessage> found = messages.toList();
            assertEquals(2, found.size());
            assertTrue(found.stream().anyMatch(one -> one.state() == BrowsedMessage.State.DELAYED
                    && new String(one.payload()).equals("later")));
        }
        assertEquals(2, client.getStats("browsed").depth());
        Snapshot snapshot = client.browseOpen("browsed", 4);
        client.browseClose("browsed", snapshot.token());
        CompletionException gone = assertThrows(CompletionException.class, () -> client.async()
                .browsePage("browsed", snapshot.token(), snapshot.ranges().get(0).start(),
                        snapshot.ranges().get(0).end(), java.util.Set.of(BrowsedMessage.State.READY))
                .join());
        assertInstanceOf(SnapshotExpiredException.class, gone.getCause());
    }
}
