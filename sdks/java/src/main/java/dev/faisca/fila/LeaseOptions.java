package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;

/**
 * How a batch is leased.
 *
 * @param messagesMax from 1 to 65,535; 0 returns a batch that is open and never leases one
 * @param bytesMax 0 for 8 MiB; at most 64 MiB
 * @param visibility how long the lease lasts; zero for the queue's visibility timeout
 * @param waitTime how long the broker waits for the first message, at most a minute; the client's timeout is
 *     lengthened to ten seconds more than that where it is shorter
 * @param countAttempt whether a batch whose time runs out is a failure that counts
 * @param form how the messages come
 */
public record LeaseOptions(
        long messagesMax, long bytesMax, Duration visibility, Duration waitTime, boolean countAttempt, Form form) {
    private static final Duration WAIT_MAX = Duration.ofMinutes(1);

    /** How leased messages come. */
    public enum Form {
        /** As {@link Message}s. */
        MESSAGES,
        /** As an Arrow IPC stream. */
        ARROW,
        /** Only their number, for one who leases what others read. */
        COUNT
    }

    /**
     * Checks the times.
     *
     * @param messagesMax from 1 to 65,535; 0 returns a batch that is open and never leases one
     * @param bytesMax 0 for 8 MiB; at most 64 MiB
     * @param visibility how long the lease lasts; zero for the queue's visibility timeout
     * @param waitTime how long the broker waits for the first message; at most a minute
     * @param countAttempt whether a batch whose time runs out is a failure that counts
     * @param form how the messages come
     */
    public LeaseOptions {
        Objects.requireNonNull(form, "form");
        if (visibility.isNegative()) {
            throw new IllegalArgumentException("visibility must not be negative, not " + visibility);
        }
        if (waitTime.isNegative() || waitTime.compareTo(WAIT_MAX) > 0) {
            throw new IllegalArgumentException("waitTime must be from 0 to a minute, not " + waitTime);
        }
    }

    /**
     * So many messages, at once, for the queue's visibility timeout.
     *
     * @param messagesMax from 1 to 65,535, or 0 for a batch that is open already
     * @return the options
     */
    public static LeaseOptions of(long messagesMax) {
        return new LeaseOptions(messagesMax, 0, Duration.ZERO, Duration.ZERO, false, Form.MESSAGES);
    }

    /**
     * These options with another bound on the bytes.
     *
     * @param most at most 64 MiB
     * @return the options
     */
    public LeaseOptions withBytesMax(long most) {
        return new LeaseOptions(messagesMax, most, visibility, waitTime, countAttempt, form);
    }

    /**
     * These options with another visibility.
     *
     * @param time how long the lease lasts
     * @return the options
     */
    public LeaseOptions withVisibility(Duration time) {
        return new LeaseOptions(messagesMax, bytesMax, time, waitTime, countAttempt, form);
    }

    /**
     * These options, waiting for the first message.
     *
     * @param time how long; at most a minute
     * @return the options
     */
    public LeaseOptions withWait(Duration time) {
        return new LeaseOptions(messagesMax, bytesMax, visibility, time, countAttempt, form);
    }

    /**
     * These options, where a batch whose time runs out is a failure that counts or is none.
     *
     * @param counts whether it counts
     * @return the options
     */
    public LeaseOptions withCountAttempt(boolean counts) {
        return new LeaseOptions(messagesMax, bytesMax, visibility, waitTime, counts, form);
    }

    /**
     * These options with messages in another form.
     *
     * @param how how the messages come
     * @return the options
     */
    public LeaseOptions withForm(Form how) {
        return new LeaseOptions(messagesMax, bytesMax, visibility, waitTime, countAttempt, how);
    }
}
