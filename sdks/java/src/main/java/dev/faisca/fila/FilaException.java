package dev.faisca.fila;

import java.util.Map;

/**
 * The root of everything the client throws on purpose; unchecked. What the broker refused is a {@link
 * RefusedException} with one subclass for each cause; the others are the client's own findings.
 *
 * <p>Arguments that cannot be sent at all are {@link IllegalArgumentException}s, thrown before anything
 * is sent.
 */
public abstract class FilaException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    FilaException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * The cause's name, the same in every language's client: {@code QueueNotFound}, {@code Timeout} and
     * so on.
     *
     * @return the name
     */
    public abstract String code();

    /**
     * Whether the same call may succeed later, unchanged.
     *
     * @return true if it may; see also {@link #maybeApplied()}
     */
    public abstract boolean retryable();

    /**
     * Whether the broker may have carried the call out although it failed: a repeated enqueue is then
     * stored twice unless it has an idempotency key.
     *
     * @return true if nobody can tell
     */
    public boolean maybeApplied() {
        return false;
    }

    /**
     * What the broker added to its refusal.
     *
     * @return empty if there is nothing
     */
    public Map<String, String> metadata() {
        return Map.of();
    }
}
