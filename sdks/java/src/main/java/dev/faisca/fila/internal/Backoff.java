package dev.faisca.fila.internal;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How long to wait before the next attempt to connect. Pauses double with every attempt, and each is shortened by
 * up to half at random: many clients lose one broker at the same moment and must not come back at one moment.
 */
final class Backoff {
    private final long minNanos;
    private final long maxNanos;
    private int pauses;

    Backoff(Duration min, Duration max) {
        minNanos = min.toNanos();
        maxNanos = Math.max(minNanos, max.toNanos());
    }

    /** Whether no pause was made since the last stable connection. */
    boolean isFresh() {
        return pauses == 0;
    }

    void reset() {
        pauses = 0;
    }

    Duration next() {
        return after(pauses++);
    }

    /** The pause after so many attempts. */
    Duration after(int attempts) {
        return Duration.ofNanos(shortened((long) Math.min(maxNanos, minNanos * Math.pow(2, Math.min(attempts, 40)))));
    }

    /** By up to half at random. */
    static long shortened(long nanos) {
        return nanos - (long) (nanos / 2.0 * ThreadLocalRandom.current().nextDouble());
    }
}
