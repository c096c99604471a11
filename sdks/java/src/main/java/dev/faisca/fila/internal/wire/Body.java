package dev.faisca.fila.internal.wire;

/** What one message carries. */
public interface Body extends Part {
    int opcode();

    /** The body as bytes. */
    default byte[] encoded() {
        Encoder to = new Encoder(64);
        encode(to);
        return to.toBytes();
    }
}
