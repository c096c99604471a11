// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The store could not do what was asked of it, or the queue is quarantined: its rows cannot be read, and `fila explain` says why. */
public final class StorageException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public StorageException(String message, Map<String, String> metadata) {
        super(message, 5, "StorageError", false, metadata);
    }
}
