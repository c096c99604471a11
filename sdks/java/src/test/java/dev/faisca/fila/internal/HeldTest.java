package dev.faisca.fila.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.wire.Encoder;
import dev.faisca.fila.support.Peer;
import java.util.List;
import org.junit.jupiter.api.Test;

class HeldTest {
    @Test
    void whatIsDeliveredDuringABeatIsNotForgottenWithItsAnswer() throws Exception {
        try (Peer peer = new Peer(null, frame -> null)) {
            Engine engine = Engine.connect(CollectorTest.config(peer.address()));
            Stream stream = new Stream(engine, "q", 10, true, () -> {});
            stream.push(delivery("gone"));
            stream.push(delivery("again"));
            assertEquals(2, stream.held().size());
            stream.push(delivery("again")); // its lease ran out, and this consumer got it once more
            stream.forget(List.of("gone", "again"));
            assertEquals(List.of("again"), stream.held());
            stream.close();
            assertTrue(!stream.isAlive());
            engine.close();
        }
    }

    private static List<Delivered> delivery(String id) {
        Encoder to = new Encoder(128);
        to.u32("messages", 1);
        to.string("id", id);
        to.string("queue", "q");
        to.u16("headers", 0);
        to.bytes("payload", new byte[0]);
        to.string("fairness_key", "");
        to.u32("weight", 1);
        to.u16("throttle_keys", 0);
        to.u32("attempt_count", 0);
        to.u64("enqueued_at_ms", 0);
        to.u64("leased_at_ms", 0);
        return Delivered.parse(to.compact());
    }
}
