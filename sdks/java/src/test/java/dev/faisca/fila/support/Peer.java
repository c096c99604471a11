package dev.faisca.fila.support;

import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Body;
import dev.faisca.fila.internal.wire.FrameBuffer;
import dev.faisca.fila.internal.wire.FrameReader;
import dev.faisca.fila.internal.wire.Opcodes;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.net.ssl.SSLContext;

/** A scripted peer, for what a real broker does not do. Shakes hands and hands every other frame to a script. */
public final class Peer implements AutoCloseable {
    /** What to answer to a frame; null answers nothing. */
    public interface Script {
        Body answer(FrameReader.Frame frame);
    }

    /** What to answer to a frame, as bytes; null answers nothing. */
    public interface RawScript {
        byte[] answer(FrameReader.Frame frame);
    }

    /** The answer that ends the connection. */
    public static final byte[] HANG_UP = {};

    private final ServerSocket server;
    private final RawScript script;
    public final List<FrameReader.Frame> frames = new CopyOnWriteArrayList<>();
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();

    public Peer(SSLContext tls, Script script) throws IOException {
        this((RawScript) frame -> bytes(frame.requestId(), script.answer(frame)), tls);
    }

    /** One that sends bytes as they are. */
    public static Peer raw(RawScript script) throws IOException {
        return new Peer(script, null);
    }

    private Peer(RawScript script, SSLContext tls) throws IOException {
        this.script = script;
        InetAddress here = InetAddress.getByName("127.0.0.1");
        server = tls == null
                ? new ServerSocket(0, 10, here)
                : tls.getServerSocketFactory().createServerSocket(0, 10, here);
        Thread thread = new Thread(this::accept);
        thread.setDaemon(true);
        thread.start();
    }

    public String address() {
        return "127.0.0.1:" + server.getLocalPort();
    }

    /** Answers to one request as bytes. */
    public static byte[] bytes(int requestId, Body... bodies) {
        FrameBuffer out = new FrameBuffer(64);
        for (Body body : bodies) {
            if (body != null) {
                out.frame(body.opcode(), requestId, body.encoded(), FrameReader.FRAME_BYTES_MAX);
            }
        }
        return out.isEmpty() ? null : out.toBytes();
    }

    /** A frame whose flags nobody knows. */
    public static byte[] unreadable(int opcode, int requestId) {
        return ByteBuffer.allocate(10).putInt(6).put((byte) opcode).put((byte) 0x80).putInt(requestId).array();
    }

    /** How many frames of an operation came. */
    public long received(int opcode) {
        return frames.stream().filter(frame -> frame.opcode() == opcode).count();
    }

    /** A NotLeader error. */
    public static Body notLeader(String leader) {
        return new Bodies.Error(12, "another node leads", java.util.Map.of("leader_addr", leader));
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket socket = server.accept();
                sockets.add(socket);
                Thread thread = new Thread(() -> serve(socket));
                thread.setDaemon(true);
                thread.start();
            } catch (IOException e) {
                return;
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            FrameReader in = new FrameReader(socket.getInputStream(), FrameReader.FRAME_BYTES_MAX, 16, 1 << 28);
            while (true) {
                FrameReader.Frame frame = in.next();
                frames.add(frame);
                byte[] answer = frame.opcode() == Opcodes.HANDSHAKE
                        ? bytes(0, new Bodies.HandshakeOk(1, 0, FrameReader.FRAME_BYTES_MAX))
                        : script.answer(frame);
                if (answer == HANG_UP) {
                    return;
                }
                if (answer != null) {
                    socket.getOutputStream().write(answer);
                }
            }
        } catch (Exception e) {
            // The client has gone, or was never one.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
