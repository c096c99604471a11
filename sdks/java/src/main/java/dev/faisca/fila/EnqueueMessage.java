package dev.faisca.fila;

import dev.faisca.fila.internal.wire.Utf8;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A message to store. Only the queue is required; {@link #builder(String)} is the comfortable form.
 *
 * <p>The payload's array is not copied here: it must not be changed before the call has returned, or
 * its future is done.
 *
 * @param queue the queue's name
 * @param headers text pairs; copied
 * @param payload the message's bytes
 * @param delay how long the message waits before it can be delivered; zero for not at all
 * @param idempotencyKey names this enqueue, so that repeating it stores nothing; null for none
 * @param fairnessKey whose message it is; null for not given
 * @param weight the share of the fairness key; 0 for not given
 * @param throttleKeys names under which the message is rate limited
 */
public record EnqueueMessage(
        String queue,
        Map<String, String> headers,
        byte[] payload,
        Duration delay,
        String idempotencyKey,
        String fairnessKey,
        long weight,
        List<String> throttleKeys) {

    private static final int COUNT_MAX = 65_534; // one header may be added: traceparent

    /**
     * Checks that the message can be sent.
     *
     * @param queue the queue's name
     * @param headers text pairs; copied
     * @param payload the message's bytes
     * @param delay how long the message waits before it can be delivered; zero for not at all
     * @param idempotencyKey names this enqueue, so that repeating it stores nothing; null for none
     * @param fairnessKey whose message it is; null for not given
     * @param weight the share of the fairness key; 0 for not given
     * @param throttleKeys names under which the message is rate limited
     */
    public EnqueueMessage {
        Utf8.check("queue", queue);
        if (queue.isEmpty()) {
            throw new IllegalArgumentException("queue has no name");
        }
        headers = Map.copyOf(headers);
        throttleKeys = List.copyOf(throttleKeys);
        Objects.requireNonNull(payload, "payload");
        Objects.requireNonNull(delay, "delay");
        if (headers.size() > COUNT_MAX) {
            throw new IllegalArgumentException(headers.size() + " headers are more than can be sent");
        }
        headers.forEach((name, value) -> {
            Utf8.check("header name", name);
            Utf8.check("header value", value);
        });
        if (delay.isNegative()) {
            throw new IllegalArgumentException("delay must not be negative, not " + delay);
        }
        if (weight < 0 || weight > 0xFFFF_FFFFL) {
            throw new IllegalArgumentException("weight must be from 0 to 4294967295, not " + weight);
        }
        if (idempotencyKey != null) {
            Utf8.check("idempotency key", idempotencyKey);
        }
        if (fairnessKey != null) {
            Utf8.check("fairness key", fairnessKey);
        }
        throttleKeys.forEach(key -> Utf8.check("throttle key", key));
    }

    /**
     * A message without options.
     *
     * @param queue the queue's name
     * @param headers text pairs
     * @param payload the message's bytes
     */
    public EnqueueMessage(String queue, Map<String, String> headers, byte[] payload) {
        this(queue, headers, payload, Duration.ZERO, null, null, 0, List.of());
    }

    /**
     * Begins a message.
     *
     * @param queue the queue's name
     * @return a builder
     */
    public static Builder builder(String queue) {
        return new Builder(queue);
    }

    /** The queue and the payload's size, but not what is inside: messages end up in logs. */
    @Override
    public String toString() {
        return "EnqueueMessage[queue=" + queue + ", headers=" + headers.keySet() + ", payloadBytes=" + payload.length + "]";
    }

    /** Sets one thing after the other. */
    public static final class Builder {
        private final String queue;
        private Map<String, String> headers = Map.of();
        private byte[] payload = {};
        private Duration delay = Duration.ZERO;
        private String idempotencyKey;
        private String fairnessKey;
        private long weight;
        private List<String> throttleKeys = List.of();

        private Builder(String queue) {
            this.queue = queue;
        }

        /**
         * Sets the headers.
         *
         * @param headers text pairs
         * @return this builder
         */
        public Builder headers(Map<String, String> headers) {
            this.headers = headers;
            return this;
        }

        /**
         * Sets the payload.
         *
         * @param payload the message's bytes
         * @return this builder
         */
        public Builder payload(byte[] payload) {
            this.payload = payload;
            return this;
        }

        /**
         * Sets the payload to a text as UTF-8.
         *
         * @param text the message's text
         * @return this builder
         */
        public Builder payload(String text) {
            return payload(text.getBytes(StandardCharsets.UTF_8));
        }

        /**
         * Lets the message become ready that much later; at most 366 days.
         *
         * @param delay how long
         * @return this builder
         */
        public Builder delay(Duration delay) {
            this.delay = delay;
            return this;
        }

        /**
         * Names this enqueue: a queue that remembers the key stores nothing and answers with the first
         * message's id. With a key an enqueue is sent again by itself after a lost connection.
         *
         * @param key 1 to 255 bytes
         * @return this builder
         */
        public Builder idempotencyKey(String key) {
            this.idempotencyKey = key;
            return this;
        }

        /**
         * Says whose message it is, in a queue without an {@code on_enqueue} hook.
         *
         * @param key the fairness key
         * @return this builder
         */
        public Builder fairnessKey(String key) {
            this.fairnessKey = key;
            return this;
        }

        /**
         * Sets the fairness key's share, in a queue without an {@code on_enqueue} hook.
         *
         * @param weight the share
         * @return this builder
         */
        public Builder weight(long weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Names the buckets the message takes tokens from, in a queue without an {@code on_enqueue}
         * hook.
         *
         * @param keys at most 16
         * @return this builder
         */
        public Builder throttleKeys(String... keys) {
            this.throttleKeys = List.of(keys);
            return this;
        }

        /**
         * Makes the message.
         *
         * @return the message
         * @throws IllegalArgumentException if it cannot be sent
         */
        public EnqueueMessage build() {
            return new EnqueueMessage(queue, headers, payload, delay, idempotencyKey, fairnessKey, weight, throttleKeys);
        }
    }
}
