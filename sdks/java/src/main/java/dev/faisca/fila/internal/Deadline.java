package dev.faisca.fila.internal;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * When a call's time is up.
 *
 * @param atNanos on the clock of System.nanoTime; without meaning when there is no timeout
 * @param timeout null waits for ever
 */
public record Deadline(long atNanos, Duration timeout) {
    private static final Duration LONGEST = Duration.ofDays(365);

    public static Deadline after(Duration timeout) {
        if (timeout == null) {
            return new Deadline(0, null);
        }
        Duration bounded = timeout.compareTo(LONGEST) > 0 ? LONGEST : timeout;
        return new Deadline(System.nanoTime() + bounded.toNanos(), timeout);
    }

    /** Not positive when the time is up. */
    public long leftNanos() {
        return timeout == null ? Long.MAX_VALUE : atNanos - System.nanoTime();
    }

    /** For Object.wait: at least a millisecond while there is time left, 0 for ever. */
    long waitMillis() {
        return timeout == null ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(leftNanos() + 999_999));
    }

    /** A duration as people read it. */
    static String words(Duration time) {
        return time.toMillis() % 1000 == 0 ? time.toSeconds() + " s" : time.toMillis() + " ms";
    }
}
