package dev.faisca.fila.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.BatchMode;
import dev.faisca.fila.support.Peer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CollectorTest {
    /** Callers can reach their deadlines together, with a broker away and everything waiting. */
    @Test
    void thousandsWhoGiveUpTogetherTakeNoTime() throws Exception {
        int callers = 100_000;
        try (Peer peer = new Peer(null, frame -> null)) {
            Engine engine = Engine.connect(config(peer.address()));
            Collector collector = new Collector(BatchMode.auto(), 1000, 1 << 20);
            List<Call<?>> calls = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                Call<?> call = new Call<>(engine, "enqueue", Kind.ENQUEUE, "q", 1, List.of(), Call::oneId);
                collector.add(new Chunk(call, "q", false, new byte[100], new int[] {100}, 0));
                calls.add(call);
            }
            long freed = 0;
            int searches = 0;
            for (int i = callers - 1; i > 0; i--) {
                calls.get(i).finish(Errors.lost("given up", null));
                long dropped = collector.forget(1, 100);
                freed += dropped;
                searches += dropped > 0 ? 1 : 0;
            }
            // Each looks at all that wait; one for every caller would be the square of them.
            assertTrue(searches < 200, "everything was looked through " + searches + " times");
            int left = collector.takeAll().size();
            assertTrue(left <= 8, left + " wait");
            assertEquals(callers * 100L, freed + left * 100L);
            engine.close();
        }
    }

    static Config config(String address) {
        Duration second = Duration.ofSeconds(1);
        return new Config(Address.parse(address), null, null, second.multipliedBy(30), BatchMode.auto(), 1000, 1 << 20,
                1 << 20, true, second, second, second.multipliedBy(30), second, System.getLogger("test"), null, null, null);
    }
}
