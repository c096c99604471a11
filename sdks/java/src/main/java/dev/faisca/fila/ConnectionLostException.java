package dev.faisca.fila;

/** The connection broke before the answer came: the call may or may not have been carried out. */
public final class ConnectionLostException extends FilaException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public ConnectionLostException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "ConnectionLost";
    }

    @Override
    public boolean retryable() {
        return true;
    }

    @Override
    public boolean maybeApplied() {
        return true;
    }
}
