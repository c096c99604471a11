package dev.faisca.fila;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * A message as it stood in its queue.
 *
 * @param id the message's id
 * @param queue the queue's name
 * @param headers text pairs
 * @param payload the message's bytes
 * @param fairnessKey whose message it is
 * @param weight the key's share
 * @param throttleKeys names under which it is rate limited
 * @param attemptCount failures so far
 * @param enqueuedAt when it was stored
 * @param readyAt when it may be delivered
 * @param state ready, delayed or leased
 */
public record BrowsedMessage(
        String id,
        String queue,
        Map<String, String> headers,
        byte[] payload,
        String fairnessKey,
        long weight,
        List<String> throttleKeys,
        long attemptCount,
        Instant enqueuedAt,
        Instant readyAt,
        State state) {

    /** What a message is doing. */
    public enum State {
        /** It may be delivered. */
        READY,
        /** It will be ready at a known time. */
        DELAYED,
        /** It was delivered and is not settled. */
        LEASED
    }
}
