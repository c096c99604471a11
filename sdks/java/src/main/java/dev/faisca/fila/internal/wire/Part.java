package dev.faisca.fila.internal.wire;

/** A record inside a body. */
public interface Part {
    /** Appends the fields in wire order. Fails with IllegalArgumentException on what cannot be sent. */
    void encode(Encoder to);
}
