package dev.faisca.fila;

/** The thread was interrupted while it waited for the broker. Its interrupt flag is set again. */
public final class CallInterruptedException extends FilaException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public CallInterruptedException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "Cancelled";
    }

    @Override
    public boolean retryable() {
        return false;
    }

    @Override
    public boolean maybeApplied() {
        return true;
    }
}
