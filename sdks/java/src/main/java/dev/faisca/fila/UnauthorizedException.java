// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The API key is missing, wrong or expired. */
public final class UnauthorizedException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public UnauthorizedException(String message, Map<String, String> metadata) {
        super(message, 10, "Unauthorized", false, metadata);
    }
}
