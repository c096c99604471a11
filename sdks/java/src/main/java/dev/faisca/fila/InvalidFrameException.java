// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** A frame or its body is malformed, unknown, or out of place. */
public final class InvalidFrameException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public InvalidFrameException(String message, Map<String, String> metadata) {
        super(message, 14, "InvalidFrame", false, metadata);
    }
}
