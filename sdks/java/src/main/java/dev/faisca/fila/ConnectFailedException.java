package dev.faisca.fila;

/** No connection could be opened: refused, TLS failed, or no handshake in time. Nothing was sent. */
public final class ConnectFailedException extends FilaException {
    private static final long serialVersionUID = 1L;

    /**
     * For tests of code that handles it.
     *
     * @param message what happened
     * @param cause what is underneath; may be null
     */
    public ConnectFailedException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "ConnectFailed";
    }

    @Override
    public boolean retryable() {
        return true;
    }
}
