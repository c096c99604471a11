// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** The node is starting; try again in a moment. */
public final class NodeNotReadyException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public NodeNotReadyException(String message, Map<String, String> metadata) {
        super(message, 16, "NodeNotReady", true, metadata);
    }
}
