package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;

/**
 * How a queue is made.
 *
 * @param onEnqueue Lua source of the hook that gives a message its place; null for none
 * @param onFailure Lua source of the hook that decides what follows a failure; null for none
 * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
 * @param maxAttempts a message that failed so many times is a dead letter, whatever the hook says; 0 for no limit
 */
public record QueueOptions(String onEnqueue, String onFailure, Duration visibilityTimeout, int maxAttempts) {
    /**
     * Checks the numbers.
     *
     * @param onEnqueue Lua source of the hook that gives a message its place; null for none
     * @param onFailure Lua source of the hook that decides what follows a failure; null for none
     * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
     * @param maxAttempts a message that failed so many times is a dead letter, whatever the hook says; 0 for no limit
     */
    public QueueOptions {
        Objects.requireNonNull(visibilityTimeout, "visibilityTimeout");
        if (visibilityTimeout.isNegative()) {
            throw new IllegalArgumentException("visibilityTimeout must not be negative, not " + visibilityTimeout);
        }
        if (maxAttempts < 0) {
            throw new IllegalArgumentException("maxAttempts must not be negative, not " + maxAttempts);
        }
    }

    /**
     * Without a limit of attempts.
     *
     * @param onEnqueue Lua source of the hook that gives a message its place; null for none
     * @param onFailure Lua source of the hook that decides what follows a failure; null for none
     * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
     */
    public QueueOptions(String onEnqueue, String onFailure, Duration visibilityTimeout) {
        this(onEnqueue, onFailure, visibilityTimeout, 0);
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
        return new QueueOptions(lua, onFailure, visibilityTimeout, maxAttempts);
    }

    /**
     * These options with an {@code on_failure} hook.
     *
     * @param lua its source
     * @return the options
     */
    public QueueOptions withOnFailure(String lua) {
        return new QueueOptions(onEnqueue, lua, visibilityTimeout, maxAttempts);
    }

    /**
     * These options with another visibility timeout.
     *
     * @param time a second or more
     * @return the options
     */
    public QueueOptions withVisibilityTimeout(Duration time) {
        return new QueueOptions(onEnqueue, onFailure, time, maxAttempts);
    }

    /**
     * These options with a limit of attempts.
     *
     * @param attempts failures that make a dead letter, whatever the hook says; 0 for no limit
     * @return the options
     */
    public QueueOptions withMaxAttempts(int attempts) {
        return new QueueOptions(onEnqueue, onFailure, visibilityTimeout, attempts);
    }
}
