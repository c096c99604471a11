package dev.faisca.fila.internal.wire;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Bytes to whole messages: reads frames and joins continued bodies, within limits. Reads the stream
 * through a buffer of its own; large bodies are read straight into their arrays.
 */
public final class FrameReader {
    public static final int FRAME_BYTES_MAX = 16 * 1024 * 1024;
    static final int CONTINUATION = 1;
    static final int COUNTED_BYTES = 6; // opcode, flags and request id are part of a frame's length
    private static final int BUFFER_BYTES = 64 * 1024;
    private static final int TRUSTED_BYTES = 1024 * 1024; // reserved before the bytes are there

    /** One whole message. */
    public record Frame(int opcode, int requestId, byte[] body) {}

    /** A body being joined. */
    private static final class Assembly {
        byte[] bytes = new byte[0];
        int size;

        void add(byte[] piece) {
            if (size + piece.length > bytes.length) {
                bytes = Arrays.copyOf(bytes, Math.max(size + piece.length, (int) Math.min(1 << 30, bytes.length * 2L)));
            }
            System.arraycopy(piece, 0, bytes, size, piece.length);
            size += piece.length;
        }
    }

    private final InputStream in;
    private final int assemblyStreamsMax;
    private final long assemblyBytesMax;
    private long frameBytesMax;
    private final byte[] buffer = new byte[BUFFER_BYTES];
    private int at;
    private int end;
    private final Map<Long, Assembly> assemblies = new HashMap<>();
    private final Set<Long> refused = new HashSet<>();
    private long assemblyBytes;

    public FrameReader(InputStream in, long frameBytesMax, int assemblyStreamsMax, long assemblyBytesMax) {
        this.in = in;
        this.frameBytesMax = frameBytesMax;
        this.assemblyStreamsMax = assemblyStreamsMax;
        this.assemblyBytesMax = assemblyBytesMax;
    }

    public void frameBytesMax(long most) {
        frameBytesMax = most;
    }

    /** The first byte of what comes next, without taking it. */
    public int peek() throws IOException {
        fill(1);
        return buffer[at] & 0xFF;
    }

    /** Whether a frame's first bytes are here already, so that {@link #next} may not have to wait. */
    public boolean hasBuffered() {
        return at < end;
    }

    /** The next whole message. EOFException when the stream ends. */
    public Frame next() throws IOException, FrameException {
        while (true) {
            fill(4);
            long length = int32(at) & 0xFFFF_FFFFL;
            if (length < COUNTED_BYTES) {
                throw new FrameException(
                        "frame length " + length + " is shorter than its " + COUNTED_BYTES + "-byte header", 0, true);
            }
            fill(10);
            int opcode = buffer[at + 4] & 0xFF;
            int flags = buffer[at + 5] & 0xFF;
            int requestId = int32(at + 6);
            if (length > frameBytesMax) {
                throw new FrameException(
                        "frame of " + length + " bytes exceeds the limit of " + frameBytesMax, requestId, true);
            }
            at += 10;
            byte[] body = read((int) length - COUNTED_BYTES);
            if (flags == 0 && assemblies.isEmpty() && refused.isEmpty()) {
                return new Frame(opcode, requestId, body);
            }
            byte[] whole = assemble(opcode, flags, requestId, body);
            if (whole != null) {
                return new Frame(opcode, requestId, whole);
            }
        }
    }

    private byte[] assemble(int opcode, int flags, int requestId, byte[] body) throws FrameException {
        long key = (long) opcode << 32 | requestId & 0xFFFF_FFFFL;
        boolean more = (flags & CONTINUATION) != 0;
        if (refused.contains(key)) {
            if (!more) {
                refused.remove(key);
            }
            return null;
        }
        if ((flags & ~CONTINUATION) != 0) {
            throw refuse(key, more, String.format("flags 0x%02X use bits that are reserved", flags));
        }
        Assembly assembly = assemblies.get(key);
        if (assembly == null) {
            if (!more) {
                return body;
            }
            if (assemblies.size() >= assemblyStreamsMax) {
                throw refuse(key, true, "more than " + assemblyStreamsMax + " messages are being continued at once");
            }
        }
        if (assemblyBytes + body.length > assemblyBytesMax) {
            throw refuse(key, more, "continued messages exceed " + assemblyBytesMax + " bytes on this connection");
        }
        if (assembly == null) {
            assembly = new Assembly();
            assemblies.put(key, assembly);
        }
        assembly.add(body);
        assemblyBytes += body.length;
        if (more) {
            return null;
        }
        assemblies.remove(key);
        assemblyBytes -= assembly.size;
        return assembly.size == assembly.bytes.length ? assembly.bytes : Arrays.copyOf(assembly.bytes, assembly.size);
    }

    /** Drops this message and the pieces of it still to come. */
    private FrameException refuse(long key, boolean more, String why) {
        Assembly dropped = assemblies.remove(key);
        if (dropped != null) {
            assemblyBytes -= dropped.size;
        }
        boolean fatal = false;
        if (more) {
            refused.add(key);
            fatal = refused.size() > assemblyStreamsMax;
        }
        return new FrameException(why, (int) key, fatal);
    }

    private byte[] read(int length) throws IOException {
        int here = Math.min(length, end - at);
        if (length - here > TRUSTED_BYTES) {
            return readGrowing(length, here);
        }
        byte[] body = new byte[length];
        System.arraycopy(buffer, at, body, 0, here);
        at += here;
        if (length - here >= BUFFER_BYTES) {
            readInto(body, here, length);
            return body;
        }
        while (here < length) {
            fill(1);
            int piece = Math.min(length - here, end - at);
            System.arraycopy(buffer, at, body, here, piece);
            at += piece;
            here += piece;
        }
        return body;
    }

    /** A claimed length is believed piece by piece, as the bytes come. */
    private byte[] readGrowing(int length, int here) throws IOException {
        byte[] body = Arrays.copyOfRange(buffer, at, at + here);
        at += here;
        while (body.length < length) {
            int known = body.length;
            int grown = (int) Math.min(length, Math.max(known * 2L, known + (long) TRUSTED_BYTES));
            body = Arrays.copyOf(body, grown);
            readInto(body, known, grown);
        }
        return body;
    }

    private void readInto(byte[] body, int from, int to) throws IOException {
        while (from < to) {
            int count = in.read(body, from, to - from);
            if (count < 0) {
                throw new EOFException();
            }
            from += count;
        }
    }

    private void fill(int wanted) throws IOException {
        if (end - at >= wanted) {
            return;
        }
        if (buffer.length - at < wanted || at == end) {
            System.arraycopy(buffer, at, buffer, 0, end - at);
            end -= at;
            at = 0;
        }
        while (end - at < wanted) {
            int count = in.read(buffer, end, buffer.length - end);
            if (count < 0) {
                throw new EOFException();
            }
            end += count;
        }
    }

    private int int32(int from) {
        return buffer[from] << 24 | (buffer[from + 1] & 0xFF) << 16 | (buffer[from + 2] & 0xFF) << 8
                | buffer[from + 3] & 0xFF;
    }
}
