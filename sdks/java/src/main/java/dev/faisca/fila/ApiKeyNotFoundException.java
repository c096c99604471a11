// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** No API key has this id. */
public final class ApiKeyNotFoundException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public ApiKeyNotFoundException(String message, Map<String, String> metadata) {
        super(message, 15, "ApiKeyNotFound", false, metadata);
    }
}
