// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** A queue has this name already. */
public final class QueueAlreadyExistsException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public QueueAlreadyExistsException(String message, Map<String, String> metadata) {
        super(message, 3, "QueueAlreadyExists", false, metadata);
    }
}
