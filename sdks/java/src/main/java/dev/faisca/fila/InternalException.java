// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The broker failed unexpectedly; its log says why. */
public final class InternalException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public InternalException(String message, Map<String, String> metadata) {
        super(message, 255, "InternalError", false, metadata);
    }
}
