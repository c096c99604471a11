// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila;

import java.util.Map;
import java.util.Optional;

/** Another node leads this queue; ask there. */
public final class NotLeaderException extends RefusedException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message the broker's text
     * @param metadata what the broker added; may be empty
     */
    public NotLeaderException(String message, Map<String, String> metadata) {
        super(message, 12, "NotLeader", true, metadata);
    }

    /**
     * The broker's {@code leader_addr}.
     *
     * @return empty if the broker did not say
     */
    public Optional<String> leaderAddr() {
        return text("leader_addr");
    }
}
