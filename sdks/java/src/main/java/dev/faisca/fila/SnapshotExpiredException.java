// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The snapshot was closed or its time is up; browse again for a new one. */
public final class SnapshotExpiredException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public SnapshotExpiredException(String message, Map<String, String> metadata) {
        super(message, 18, "SnapshotExpired", false, metadata);
    }
}
