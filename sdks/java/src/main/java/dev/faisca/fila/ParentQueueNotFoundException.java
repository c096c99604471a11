// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The queue a dead letter queue belongs to no longer exists. */
public final class ParentQueueNotFoundException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public ParentQueueNotFoundException(String message, Map<String, String> metadata) {
        super(message, 7, "ParentQueueNotFound", false, metadata);
    }
}
