// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;

/** A hook script does not compile or does not define its function. */
public final class LuaCompilationException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public LuaCompilationException(String message, Map<String, String> metadata) {
        super(message, 4, "LuaCompilationError", false, metadata);
    }
}
