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
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.net.ssl.SSLContext;

/** A scripted peer, for what a real broker does not do. Shakes hands and hands every other frame to a script. */
public final class Peer implements AutoCloseable {
    /** What to answer to a frame; null answers nothing. */
    public interface Script {
        Body answer(FrameReader.Frame frame);
    }

    private final ServerSocket server;
    private final Script script;
    public final List<FrameReader.Frame> frames = new CopyOnWriteArrayList<>();
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();

    public Peer(SSLContext tls, Script script) throws IOException {
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
                Body answer = frame.opcode() == Opcodes.HANDSHAKE
                        ? new Bodies.HandshakeOk(1, 0, FrameReader.FRAME_BYTES_MAX)
                        : script.answer(frame);
                if (answer != null) {
                    FrameBuffer out = new FrameBuffer(64);
                    out.frame(answer.opcode(), frame.requestId(), answer.encoded(), FrameReader.FRAME_BYTES_MAX);
                    socket.getOutputStream().write(out.toBytes());
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
