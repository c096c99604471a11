// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The queue has another version than the one that was expected: somebody changed it; look at what it is now. */
public final class VersionConflictException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public VersionConflictException(String message, Map<String, String> metadata) {
        super(message, 19, "VersionConflict", false, metadata);
    }
}
