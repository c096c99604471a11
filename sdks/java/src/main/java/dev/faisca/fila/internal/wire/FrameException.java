package dev.faisca.fila.internal.wire;

/** Bytes that are no acceptable frame. After a fatal one the stream cannot be trusted. */
public final class FrameException extends Exception {
    private static final long serialVersionUID = 1L;

    private final int requestId;
    private final boolean fatal;

    FrameException(String message, int requestId, boolean fatal) {
        super(message);
        this.requestId = requestId;
        this.fatal = fatal;
    }

    public int requestId() {
        return requestId;
    }

    public boolean fatal() {
        return fatal;
    }
}
