package dev.faisca.fila;

import java.util.List;

/**
 * What a queue is doing.
 *
 * @param depth messages that are pending
 * @param inFlight messages that are leased
 * @param activeFairnessKeys fairness keys with something to send
 * @param activeConsumers consumers of the queue
 * @param quantum messages a key of weight 1 may send per visit
 * @param leaderNodeId the node that leads it; 0 on a broker that stands alone
 * @param replicationCount nodes that hold it
 * @param fairnessKeys the keys
 * @param throttleKeys the buckets
 */
public record QueueStats(
        long depth,
        long inFlight,
        long activeFairnessKeys,
        long activeConsumers,
        long quantum,
        long leaderNodeId,
        long replicationCount,
        List<FairnessKey> fairnessKeys,
        List<ThrottleKey> throttleKeys) {

    /**
     * A fairness key.
     *
     * @param key its name
     * @param pending messages that wait
     * @param deficit what is left of its visit
     * @param weight its share
     */
    public record FairnessKey(String key, long pending, long deficit, long weight) {}

    /**
     * A throttle key.
     *
     * @param key its name
     * @param tokens what its bucket holds
     * @param ratePerSecond tokens that come in
     * @param burst most it can hold
     */
    public record ThrottleKey(String key, double tokens, double ratePerSecond, double burst) {}
}
