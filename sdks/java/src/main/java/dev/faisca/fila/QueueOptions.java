package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;

/**
 * How a queue is made.
 *
 * @param onEnqueue Lua source of the hook that gives a message its place; null for none
 * @param onFailure Lua source of the hook that decides what follows a failure; null for none
 * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
 */
public record QueueOptions(String onEnqueue, String onFailure, Duration visibilityTimeout) {
    /**
     * Checks the timeout.
     *
     * @param onEnqueue Lua source of the hook that gives a message its place; null for none
     * @param onFailure Lua source of the hook that decides what follows a failure; null for none
     * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
     */
    public QueueOptions {
        Objects.requireNonNull(visibilityTimeout, "visibilityTimeout");
        if (visibilityTimeout.isNegative()) {
            throw new IllegalArgumentException("visibilityTimeout must not be negative, not " + visibilityTimeout);
        }
    }

    /**
     * No hooks, and the broker's visibility timeout.
     *
     * @return the options
     */
    public static QueueOptions defaults() {
        return new QueueOptions(null, null, Duration.ZERO);
    }

    /**
     * These options with an {@code on_enqueue} hook.
     *
     * @param lua its source
     * @return the options
     */
    public QueueOptions withOnEnqueue(String lua) {
        return new QueueOptions(lua, onFailure, visibilityTimeout);
    }

    /**
     * These options with an {@code on_failure} hook.
     *
     * @param lua its source
     * @return the options
     */
    public QueueOptions withOnFailure(String lua) {
        return new QueueOptions(onEnqueue, lua, visibilityTimeout);
    }

    /**
     * These options with another visibility timeout.
     *
     * @param time a second or more
     * @return the options
     */
    public QueueOptions withVisibilityTimeout(Duration time) {
        return new QueueOptions(onEnqueue, onFailure, time);
    }
}
