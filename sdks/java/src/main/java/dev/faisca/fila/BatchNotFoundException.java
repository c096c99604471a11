// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** No lease batch of this name is open: it was acked, released, or its time ran out. */
public final class BatchNotFoundException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public BatchNotFoundException(String message, Map<String, String> metadata) {
        super(message, 17, "BatchNotFound", false, metadata);
    }
}
