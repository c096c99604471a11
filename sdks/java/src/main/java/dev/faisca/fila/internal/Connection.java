package dev.faisca.fila.internal;

import dev.faisca.fila.ConnectFailedException;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Decoder;
import dev.faisca.fila.internal.wire.FrameBuffer;
import dev.faisca.fila.internal.wire.FrameException;
import dev.faisca.fila.internal.wire.FrameReader;
import dev.faisca.fila.internal.wire.InvalidBodyException;
import dev.faisca.fila.internal.wire.Opcodes;
import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * One TCP connection after its handshake. Moves bytes and knows when the last one moved; what they mean is
 * the session's part.
 */
final class Connection {
    private static final int PROTOCOL_VERSION = 1;
    private static final int TLS_ALERT = 0x15;
    private static final int FRAME_BYTES_MIN = 1024; // a broker that announces less could not be talked to
    private static final int WRITE_BYTES = 256 * 1024; // progress is seen between two writes
    // A Delivery is a little longer than the Enqueue it came from, so a client must be able to put together
    // more than the broker's own bound of 128 MiB.
    private static final long ASSEMBLY_BYTES_MAX = 512L * 1024 * 1024;
    private static final int ASSEMBLY_STREAMS_MAX = 16;

    final Address address;
    final FrameReader frames;
    final long openedAt = System.nanoTime();
    int frameBytesMax = FrameReader.FRAME_BYTES_MAX;
    private final Socket raw;
    private final OutputStream out;
    private volatile long heardAt = System.nanoTime();
    private volatile long movedBytes;
    private FilaException reason;

    private Connection(Address address, Socket raw, Socket socket) throws IOException {
        this.address = address;
        this.raw = raw;
        out = socket.getOutputStream();
        InputStream in = new FilterInputStream(socket.getInputStream()) {
            @Override
            public int read(byte[] to, int at, int length) throws IOException {
                int count = super.read(to, at, length);
                heardAt = System.nanoTime();
                return count;
            }
        };
        frames = new FrameReader(in, FrameReader.FRAME_BYTES_MAX, ASSEMBLY_STREAMS_MAX, ASSEMBLY_BYTES_MAX);
    }

    /** An attempt to connect, which another thread may end. */
    static final class Attempt {
        private Socket socket;
        private boolean over;
        private boolean expired;

        synchronized void abort() {
            over = true;
            if (socket != null) {
                closeQuietly(socket);
            }
        }

        private synchronized void expire() {
            expired = true;
            abort();
        }

        private synchronized void use(Socket next) throws IOException {
            if (over) {
                closeQuietly(next);
                throw new IOException("the attempt was given up");
            }
            socket = next;
        }

        private synchronized boolean expired() {
            return expired;
        }

        /** From now on the connection is not the attempt's to close. */
        private synchronized void succeed() throws IOException {
            if (over) {
                throw new IOException("the attempt was given up");
            }
            over = true;
            socket = null;
        }
    }

    /** Opens a connection and shakes hands, within the connect timeout. */
    static Connection open(Address address, Config config, ScheduledExecutorService timer, Attempt attempt) {
        ScheduledFuture<?> alarm =
                timer.schedule(attempt::expire, config.connectTimeout().toNanos(), TimeUnit.NANOSECONDS);
        Socket raw = null;
        try {
            raw = dial(address, config, attempt);
            Socket socket = config.tls() == null ? raw : Tls.wrap(config.tls(), raw, address);
            Connection connection = new Connection(address, raw, socket);
            connection.shakeHands(config);
            attempt.succeed();
            return connection;
        } catch (IOException e) {
            closeQuietly(raw);
            throw Errors.connectFailed(address, e, config, attempt.expired());
        } catch (FilaException e) {
            closeQuietly(raw);
            throw e;
        } finally {
            alarm.cancel(false);
        }
    }

    private static Socket dial(Address address, Config config, Attempt attempt) throws IOException {
        IOException first = null;
        for (InetAddress host : InetAddress.getAllByName(address.host())) {
            Socket socket = new Socket();
            attempt.use(socket);
            try {
                socket.setTcpNoDelay(true);
                socket.connect(
                        new InetSocketAddress(host, address.port()),
                        (int) Math.min(Integer.MAX_VALUE, Math.max(1, config.connectTimeout().toMillis())));
                return socket;
            } catch (IOException e) {
                closeQuietly(socket);
                if (first == null) {
                    first = e;
                } else {
                    first.addSuppressed(e);
                }
            }
        }
        throw first;
    }

    private void shakeHands(Config config) throws IOException {
        FrameBuffer hello = new FrameBuffer(128);
        byte[] body = new Bodies.Handshake(PROTOCOL_VERSION, config.apiKey()).encoded();
        hello.frame(Opcodes.HANDSHAKE, 0, body, frameBytesMax);
        write(hello.array(), hello.size());
        try {
            if (config.tls() == null && frames.peek() == TLS_ALERT) {
                throw new ConnectFailedException("cannot connect to " + address
                        + ": it speaks TLS and this client does not; use withTls or withTlsCaCert", null);
            }
            FrameReader.Frame answer = frames.next();
            switch (answer.opcode()) {
                case Opcodes.HANDSHAKE_OK -> welcome(Bodies.HandshakeOk.decode(new Decoder(answer.body())));
                case Opcodes.ERROR -> throw Errors.decode(answer.body());
                case Opcodes.DISCONNECT -> throw new EOFException();
                default -> throw Errors.protocol(address + " does not speak FIBP: " + Opcodes.name(answer.opcode())
                        + " came instead of HandshakeOk");
            }
        } catch (FrameException e) {
            throw new ConnectFailedException(
                    "cannot connect to " + address + ": it does not speak FIBP (" + e.getMessage() + ")", e);
        } catch (InvalidBodyException e) {
            throw Errors.protocol(address + " answered the handshake with a body that does not parse: " + e.getMessage());
        }
    }

    private void welcome(Bodies.HandshakeOk welcome) {
        if (welcome.maxFrameSize() < FRAME_BYTES_MIN) {
            throw Errors.protocol(address + " allows frames of " + welcome.maxFrameSize() + " bytes only");
        }
        frameBytesMax = (int) Math.min(welcome.maxFrameSize(), 1 << 30);
        frames.frameBytesMax(welcome.maxFrameSize());
    }

    void write(byte[] bytes, int length) throws IOException {
        for (int at = 0; at < length; ) {
            int piece = Math.min(WRITE_BYTES, length - at);
            out.write(bytes, at, piece);
            at += piece;
            movedBytes += piece; // one thread writes
        }
        out.flush();
    }

    /** Closes the connection for this reason, if it is the first. */
    void drop(FilaException why) {
        synchronized (this) {
            if (reason == null) {
                reason = why;
            }
        }
        // The TCP socket itself: closing a TLS socket waits for whoever is writing.
        closeQuietly(raw);
    }

    synchronized FilaException reason() {
        return reason;
    }

    long silentNanos() {
        return System.nanoTime() - heardAt;
    }

    long movedBytes() {
        return movedBytes;
    }

    private static void closeQuietly(Socket socket) {
        if (socket != null) {
            try {
                socket.close();
            } catch (IOException e) {
                // It is of no use any more, and that is all that was wanted.
            }
        }
    }
}
