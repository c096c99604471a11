package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;

/**
 * How a batch is leased.
 *
 * @param messagesMax from 1 to 65,535; 0 returns a batch that is open and never leases one
 * @param bytesMax 0 for 8 MiB; at most 64 MiB
 * @param visibility how long the lease lasts; zero for the queue's visibility timeout
 * @param waitTime how long the broker waits for the first message; at most a minute
 * @param countAttempt whether a batch whose time runs out is a failure that counts
 */
public record LeaseOptions(long messagesMax, long bytesMax, Duration visibility, Duration waitTime, boolean countAttempt) {
    /**
     * Checks for nulls.
     *
     * @param messagesMax from 1 to 65,535; 0 returns a batch that is open and never leases one
     * @param bytesMax 0 for 8 MiB; at most 64 MiB
     * @param visibility how long the lease lasts; zero for the queue's visibility timeout
     * @param waitTime how long the broker waits for the first message; at most a minute
     * @param countAttempt whether a batch whose time runs out is a failure that counts
     */
    public LeaseOptions {
        Objects.requireNonNull(visibility, "visibility");
        Objects.requireNonNull(waitTime, "waitTime");
    }

    /**
     * So many messages, at once, for the queue's visibility timeout.
     *
     * @param messagesMax from 1 to 65,535, or 0 for a batch that is open already
     * @return the options
     */
    public static LeaseOptions of(long messagesMax) {
        return new LeaseOptions(messagesMax, 0, Duration.ZERO, Duration.ZERO, false);
    }

    /**
     * These options with another visibility.
     *
     * @param time how long the lease lasts
     * @return the options
     */
    public LeaseOptions withVisibility(Duration time) {
        return new LeaseOptions(messagesMax, bytesMax, time, waitTime, countAttempt);
    }

    /**
     * These options, waiting for the first message.
     *
     * @param time how long; at most a minute
     * @return the options
     */
    public LeaseOptions withWait(Duration time) {
        return new LeaseOptions(messagesMax, bytesMax, visibility, time, countAttempt);
    }
}
