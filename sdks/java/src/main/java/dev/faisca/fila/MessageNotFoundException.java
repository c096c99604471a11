// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The id is not a UUID, or the message is not leased here: unknown, pending or finished. */
public final class MessageNotFoundException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public MessageNotFoundException(String message, Map<String, String> metadata) {
        super(message, 2, "MessageNotFound", false, metadata);
    }
}
