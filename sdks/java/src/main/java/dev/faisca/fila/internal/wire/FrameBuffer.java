package dev.faisca.fila.internal.wire;

import java.util.Arrays;

/**
 * Frames that are ready to be written. A body is announced with its whole length and then put in any
 * number of pieces; what does not fit one frame is cut into continued ones on the way.
 */
public final class FrameBuffer {
    private byte[] bytes;
    private int size;
    private int opcode;
    private int requestId;
    private int pieceMax; // body bytes of one frame
    private int frameLeft; // body bytes of the present frame
    private int bodyLeft;

    public FrameBuffer(int capacity) {
        bytes = new byte[capacity];
    }

    public int size() {
        return size;
    }

    public int capacity() {
        return bytes.length;
    }

    public boolean isEmpty() {
        return size == 0;
    }

    public byte[] array() {
        return bytes;
    }

    public byte[] toBytes() {
        return Arrays.copyOf(bytes, size);
    }

    public void clear() {
        size = 0;
    }

    /** One whole message. */
    public void frame(int opcode, int requestId, byte[] body, int frameBytesMax) {
        begin(opcode, requestId, body.length, frameBytesMax);
        put(body, 0, body.length);
    }

    /** Begins a message whose body has so many bytes; as many must be put before the next one. */
    public void begin(int opcode, int requestId, int bodyBytes, int frameBytesMax) {
        if (bodyLeft != 0) {
            throw new IllegalStateException(bodyLeft + " bytes of the last body are missing");
        }
        this.opcode = opcode;
        this.requestId = requestId;
        pieceMax = frameBytesMax - FrameReader.COUNTED_BYTES;
        bodyLeft = bodyBytes;
        header();
    }

    public void put(byte[] from, int at, int length) {
        while (length > 0) {
            if (frameLeft == 0) {
                header();
            }
            int piece = Math.min(length, frameLeft);
            room(piece);
            System.arraycopy(from, at, bytes, size, piece);
            size += piece;
            at += piece;
            length -= piece;
            frameLeft -= piece;
            bodyLeft -= piece;
        }
    }

    public void putInt(int value) {
        put(new byte[] {(byte) (value >> 24), (byte) (value >> 16), (byte) (value >> 8), (byte) value}, 0, 4);
    }

    private void header() {
        frameLeft = Math.min(bodyLeft, pieceMax);
        room(10);
        int32(frameLeft + FrameReader.COUNTED_BYTES);
        bytes[size++] = (byte) opcode;
        bytes[size++] = (byte) (bodyLeft > pieceMax ? FrameReader.CONTINUATION : 0);
        int32(requestId);
    }

    private void int32(int value) {
        bytes[size++] = (byte) (value >> 24);
        bytes[size++] = (byte) (value >> 16);
        bytes[size++] = (byte) (value >> 8);
        bytes[size++] = (byte) value;
    }

    private void room(int wanted) {
        int needed = Math.addExact(size, wanted);
        if (needed > bytes.length) {
            bytes = Arrays.copyOf(bytes, (int) Math.max(needed, Math.min(Integer.MAX_VALUE - 8, bytes.length * 2L)));
        }
    }
}
