package dev.faisca.fila.support;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A real broker in a process of its own. Its address stays the same when it is started again. */
public final class Broker implements AutoCloseable {
    private static Broker shared;

    private final Path place;
    private final Map<String, String> settings;
    private final int port;
    private Process process;

    private Broker(Map<String, String> settings) throws Exception {
        this.settings = settings;
        place = Files.createTempDirectory("fila-java");
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            port = probe.getLocalPort();
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::kill));
        start();
    }

    /** A broker for this test alone; settings are environment variables. */
    public static Broker start(Map<String, String> settings) throws Exception {
        return new Broker(settings);
    }

    /** The broker of all tests that leave it as it was. */
    public static synchronized Broker shared() throws Exception {
        if (shared == null) {
            shared = new Broker(Map.of());
        }
        return shared;
    }

    public String address() {
        return "127.0.0.1:" + port;
    }

    /** Starts it on its data; it must not be running. */
    public void start() throws Exception {
        Path portFile = place.resolve("port");
        Files.deleteIfExists(portFile);
        ProcessBuilder builder = new ProcessBuilder(program());
        builder.directory(place.toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("FILA_"));
        builder.environment().put("FILA_SERVER__LISTEN_ADDR", address());
        builder.environment().put("FILA_DATA_DIR", place.resolve("data").toString());
        builder.environment().put("FILA_PORT_FILE", portFile.toString());
        builder.environment().putAll(settings);
        File log = place.resolve("log").toFile();
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
        process = builder.start();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!Files.exists(portFile)) {
            if (!process.isAlive() || System.nanoTime() > end) {
                throw new IllegalStateException("the broker did not start:\n" + Files.readString(log.toPath()));
            }
            Thread.sleep(20);
        }
    }

    /** Ends the process without warning. */
    public void kill() {
        process.destroyForcibly();
        try {
            process.waitFor(20, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Stops the process without closing its connections. */
    public void freeze() throws Exception {
        signal("-STOP");
    }

    /** Ends {@link #freeze}. */
    public void thaw() throws Exception {
        signal("-CONT");
    }

    @Override
    public void close() {
        kill();
    }

    private void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", name, Long.toString(process.pid())).start().waitFor();
    }

    private static String program() {
        String named = System.getenv("FILA_SERVER_BIN");
        return named != null ? named : Spec.root().resolve(".venv/bin/fila-server").toString();
    }
}
