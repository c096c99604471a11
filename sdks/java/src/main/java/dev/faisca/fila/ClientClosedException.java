package dev.faisca.fila;

/** The client or consumer was closed or drained. */
public final class ClientClosedException extends FilaException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public ClientClosedException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "ClientClosed";
    }

    @Override
    public boolean retryable() {
        return false;
    }
}
