// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The queue is not a dead letter queue. */
public final class NotADLQException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public NotADLQException(String message, Map<String, String> metadata) {
        super(message, 6, "NotADLQ", false, metadata);
    }
}
