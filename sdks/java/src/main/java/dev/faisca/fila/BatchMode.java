package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;

/**
 * How calls that are made at the same time share frames.
 *
 * @param kind which of the three
 * @param lingerTime how long {@link Kind#LINGER} collects; zero otherwise
 */
public record BatchMode(Kind kind, Duration lingerTime) {
    /** The three modes. */
    public enum Kind {
        /** See {@link BatchMode#auto()}. */
        AUTO,
        /** See {@link BatchMode#linger(Duration)}. */
        LINGER,
        /** See {@link BatchMode#disabled()}. */
        DISABLED
    }

    /**
     * Checks the linger time.
     *
     * @param kind which of the three
     * @param lingerTime how long {@link Kind#LINGER} collects; zero otherwise
     */
    public BatchMode {
        Objects.requireNonNull(kind, "kind");
        Objects.requireNonNull(lingerTime, "lingerTime");
        if (kind == Kind.LINGER && (lingerTime.isZero() || lingerTime.isNegative())) {
            throw new IllegalArgumentException("linger must be positive, not " + lingerTime);
        }
    }

    /**
     * The default. A lone call is sent at once; while an answer is on its way, further calls are
     * collected and leave together when it comes, or when there are a hundred of them. No call waits for
     * company.
     *
     * @return the mode
     */
    public static BatchMode auto() {
        return new BatchMode(Kind.AUTO, Duration.ZERO);
    }

    /**
     * Calls are collected for five milliseconds or until the batch is full.
     *
     * @return the mode
     */
    public static BatchMode linger() {
        return linger(Duration.ofMillis(5));
    }

    /**
     * Calls are collected for so long or until the batch is full: fewer, larger frames, and that much
     * latency. Settlements never linger.
     *
     * @param time how long
     * @return the mode
     */
    public static BatchMode linger(Duration time) {
        return new BatchMode(Kind.LINGER, time);
    }

    /**
     * One frame for every call.
     *
     * @return the mode
     */
    public static BatchMode disabled() {
        return new BatchMode(Kind.DISABLED, Duration.ZERO);
    }
}
