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
 * @param cost what a message costs its fairness key: {@code "messages"} (1) or {@code "bytes"}, those of its
 *     headers and payload, so that keys share bytes by weight
 */
public record QueueOptions(
        String onEnqueue, String onFailure, Duration visibilityTimeout, int maxAttempts, String cost) {
    /**
     * Checks the numbers.
     *
     * @param onEnqueue Lua source of the hook that gives a message its place; null for none
     * @param onFailure Lua source of the hook that decides what follows a failure; null for none
     * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
     * @param maxAttempts a message that failed so many times is a dead letter, whatever the hook says; 0 for no limit
     * @param cost what a message costs its fairness key: {@code "messages"} (1) or {@code "bytes"}
     */
    public QueueOptions {
        Objects.requireNonNull(visibilityTimeout, "visibilityTimeout");
        Objects.requireNonNull(cost, "cost");
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
     * Where a message costs its key 1.
     *
     * @param onEnqueue Lua source of the hook that gives a message its place; null for none
     * @param onFailure Lua source of the hook that decides what follows a failure; null for none
     * @param visibilityTimeout how long a lease lasts; zero for the broker's default of 30 seconds
     * @param maxAttempts a message that failed so many times is a dead letter, whatever the hook says; 0 for no limit
     */
    public QueueOptions(String onEnqueue, String onFailure, Duration visibilityTimeout, int maxAttempts) {
        this(onEnqueue, onFailure, visibilityTimeout, maxAttempts, "messages");
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
        return new QueueOptions(lua, onFailure, visibilityTimeout, maxAttempts, cost);
    }

    /**
     * These options with an {@code on_failure} hook.
     *
     * @param lua its source
     * @return the options
     */
    public QueueOptions withOnFailure(String lua) {
        return new QueueOptions(onEnqueue, lua, visibilityTimeout, maxAttempts, cost);
    }

    /**
     * These options with another visibility timeout.
     *
     * @param time a second or more
     * @return the options
     */
    public QueueOptions withVisibilityTimeout(Duration time) {
        return new QueueOptions(onEnqueue, onFailure, time, maxAttempts, cost);
    }

    /**
     * These options with a limit of attempts.
     *
     * @param attempts failures that make a dead letter, whatever the hook says; 0 for no limit
     * @return the options
     */
    public QueueOptions withMaxAttempts(int attempts) {
        return new QueueOptions(onEnqueue, onFailure, visibilityTimeout, attempts, cost);
    }

    /**
     * These options with another cost of a message.
     *
     * @param cost {@code "messages"} or {@code "bytes"}
     * @return the options
     */
    public QueueOptions withCost(String cost) {
        return new QueueOptions(onEnqueue, onFailure, visibilityTimeout, maxAttempts, cost);
    }
}
