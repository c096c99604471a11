// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;
import java.util.Optional;

/** The server does not speak this version of the protocol. */
public final class UnsupportedVersionException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public UnsupportedVersionException(String message, Map<String, String> metadata) {
        super(message, 13, "UnsupportedVersion", false, metadata);
    }

    /**
     * The broker's {@code max_version}.
     *
     * @return empty if the broker did not say
     */
    public Optional<String> maxVersion() {
        return text("max_version");
    }
}
