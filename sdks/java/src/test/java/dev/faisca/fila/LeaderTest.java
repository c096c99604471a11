package dev.faisca.fila;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.Tls;
import dev.faisca.fila.internal.wire.Opcodes;
import dev.faisca.fila.support.Broker;
import dev.faisca.fila.support.Certificates;
import dev.faisca.fila.support.Eventually;
import dev.faisca.fila.support.Peer;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LeaderTest {
    @Test
    void callsBatchesAndConsumersMoveToTheLeader() throws Exception {
        String leader = Broker.shared().address();
        String queue = "led-" + System.nanoTime();
        try (Peer follower = new Peer(null, frame -> frame.opcode() == Opcodes.DISCONNECT ? null : Peer.notLeader(leader));
                FilaClient client = FilaClient.connect(follower.address());
                FilaClient witness = FilaClient.connect(leader)) {
            witness.createQueue(queue);
            client.enqueue(queue, Map.of(), "first".getBytes());
            int told = follower.frames.size();
            for (int i = 0; i < 20; i++) {
                client.enqueue(queue, Map.of(), "later".getBytes());
            }
            assertEquals(21, client.getStats(queue).depth());
            assertEquals(told, follower.frames.size(), "the batcher does not keep the old connection");
            try (FilaConsumer consumer = client.consume(queue)) {
                Message message = consumer.receive().orElseThrow();
                assertEquals("first", new String(message.payload()));
                message.ack();
            }
        }
    }

    @Test
    void withoutAnAddressTheCauseIsTold() throws Exception {
        try (Peer lost = new Peer(null, frame -> Peer.notLeader(""));
                FilaClient client = FilaClient.connect(lost.address())) {
            NotLeaderException told =
                    assertThrows(NotLeaderException.class, () -> client.enqueue("q", Map.of(), new byte[0]));
            assertTrue(told.retryable());
        }
    }

    @Test
    void twoNodesThatNameEachOtherDoNotKeepACallForEver() throws Exception {
        String[] addresses = new String[2];
        try (Peer one = new Peer(null, frame -> Peer.notLeader(addresses[1]));
                Peer two = new Peer(null, frame -> Peer.notLeader(addresses[0]))) {
            addresses[0] = one.address();
            addresses[1] = two.address();
            try (FilaClient client = FilaClient.connect(one.address())) {
                assertThrows(NotLeaderException.class, () -> client.enqueue("q", Map.of(), new byte[0]));
                assertThrows(NotLeaderException.class, () -> client.getStats("q"));
                assertThrows(NotLeaderException.class, () -> client.consume("q"));
            }
        }
    }

    @Test
    void callsThatWaitForALeaderThatIsGoneEndWithTheClient() throws Exception {
        int gone;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            gone = free.getLocalPort();
        }
        Duration hour = Duration.ofHours(1);
        try (Peer follower = new Peer(null, frame ->
                frame.opcode() == Opcodes.DISCONNECT ? null : Peer.notLeader("127.0.0.1:" + gone))) {
            FilaClient client =
                    FilaClient.builder(follower.address()).withTimeout(hour).withReconnectPauses(hour, hour).build();
            CompletableFuture<String> first = client.async().enqueue("q", Map.of(), "x".getBytes());
            Eventually.holds("the enqueue came", () -> follower.received(Opcodes.ENQUEUE) == 1);
            CompletableFuture<QueueStats> second = client.async().getStats("q");
            Thread.sleep(500); // the leader's link has failed to connect and pauses
            client.close();
            for (CompletableFuture<?> call : List.of(first, second)) {
                ExecutionException why =
                        assertThrows(ExecutionException.class, () -> call.get(1, TimeUnit.MINUTES));
                assertInstanceOf(ClientClosedException.class, why.getCause());
            }
        }
    }

    @Test
    void aRedirectNeverFallsBackToPlaintext() throws Exception {
        Certificates certificates = new Certificates();
        java.nio.file.Path ca = certificates.authority("ca");
        java.nio.file.Path cert = certificates.issue("server", "ca");
        try (ServerSocket plain = new ServerSocket(0, 10, InetAddress.getByName("127.0.0.1"))) {
            CompletableFuture<byte[]> heard = CompletableFuture.supplyAsync(() -> {
                try (Socket socket = plain.accept()) {
                    return socket.getInputStream().readNBytes(3);
                } catch (java.io.IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            });
            String leader = "http://127.0.0.1:" + plain.getLocalPort();
            try (Peer follower = new Peer(Tls.context(null, cert, certificates.keyOf("server")), frame -> Peer.notLeader(leader));
                    FilaClient client = FilaClient.builder(follower.address())
                            .withTlsCaCert(ca).withApiKey("secret").withTimeout(Duration.ofSeconds(5)).build()) {
                assertThrows(FilaException.class, () -> client.enqueue("q", Map.of(), new byte[0]));
            }
            byte[] first = heard.get(20, TimeUnit.SECONDS);
            assertEquals(0x16, first[0], "the first byte is a TLS handshake's");
            assertEquals(3, first[1]);
        }
    }
}
