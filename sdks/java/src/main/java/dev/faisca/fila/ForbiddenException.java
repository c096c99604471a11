// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The API key lacks the permission the text names. */
public final class ForbiddenException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public ForbiddenException(String message, Map<String, String> metadata) {
        super(message, 11, "Forbidden", false, metadata);
    }
}
