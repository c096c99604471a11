package dev.faisca.fila.internal.wire;

/** An answer that says by a code how it went. */
public interface Result extends Body {
    int code();

    /** The broker's reason, null if it gave none. */
    default String message() {
        return null;
    }
}
