// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/** The broker is overloaded; nothing was stored; try again after the time given. */
public final class ChannelFullException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public ChannelFullException(String message, Map<String, String> metadata) {
        super(message, 9, "ChannelFull", true, metadata);
    }

    /**
     * The broker's {@code retry_after_ms}.
     *
     * @return empty if the broker did not say
     */
    public Optional<Duration> retryAfter() {
        return milliseconds("retry_after_ms");
    }
}
