package dev.faisca.fila;

/** No answer came within the call's timeout: it may or may not have been carried out. */
public final class RequestTimeoutException extends FilaException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public RequestTimeoutException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "Timeout";
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
