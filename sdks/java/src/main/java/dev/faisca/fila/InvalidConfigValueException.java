// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** A setting, name or number is outside what it may be. */
public final class InvalidConfigValueException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public InvalidConfigValueException(String message, Map<String, String> metadata) {
        super(message, 8, "InvalidConfigValue", false, metadata);
    }
}
