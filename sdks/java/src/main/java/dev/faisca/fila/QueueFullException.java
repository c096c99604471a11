// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/** As much waits in the queue, or of the message's fairness key, as may; it was not stored; try again when consumers caught up. */
public final class QueueFullException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public QueueFullException(String message, Map<String, String> metadata) {
        super(message, 20, "QueueFull", true, metadata);
    }

    /**
     * The broker's {@code retry_after_ms}.
     *
     * @return empty if the broker did not say
     */
    public Optional<Duration> retryAfter() {
        return milliseconds("retry_after_ms");
    }

    /**
     * The broker's {@code depth}.
     *
     * @return empty if the broker did not say
     */
    public Optional<String> depth() {
        return text("depth");
    }

    /**
     * The broker's {@code limit}.
     *
     * @return empty if the broker did not say
     */
    public Optional<String> limit() {
        return text("limit");
    }
}
