package dev.faisca.fila;

/** The client or consumer was closed or drained. */
public final class ClientClosedException extends FilaException {
    private static final long serialVersionUID = 1L;

    /** Whether the call had been sent. */
    private final boolean maybeApplied;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public ClientClosedException(String message, Throwable cause) {
        this(message, cause, false);
    }

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     * @param maybeApplied whether the call had been sent when the client was closed
     */
    public ClientClosedException(String message, Throwable cause, boolean maybeApplied) {
        super(message, cause);
        this.maybeApplied = maybeApplied;
    }

    @Override
    public String code() {
        return "ClientClosed";
    }

    @Override
    public boolean retryable() {
        return false;
    }

    @Override
    public boolean maybeApplied() {
        return maybeApplied;
    }
}
