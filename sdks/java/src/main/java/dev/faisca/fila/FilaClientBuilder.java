package dev.faisca.fila;

import dev.faisca.fila.internal.Address;
import dev.faisca.fila.internal.Config;
import dev.faisca.fila.internal.Engine;
import dev.faisca.fila.internal.Tls;
import dev.faisca.fila.internal.wire.Utf8;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/** What a client may be told. Everything has a default; nothing is read from the environment. */
public final class FilaClientBuilder {
    private final Address address;
    private boolean tls;
    private Path caCert;
    private Path clientCert;
    private Path clientKey;
    private SSLContext sslContext;
    private String apiKey;
    private Duration timeout = Duration.ofSeconds(30);
    private Duration connectTimeout = Duration.ofSeconds(10);
    private BatchMode batchMode = BatchMode.auto();
    private int batchMessagesMax = 1000;
    private int batchBytesMax = 1024 * 1024;
    private long inFlightBytesMax = 64L * 1024 * 1024;
    private boolean reconnect = true;
    private Duration pauseMin = Duration.ofMillis(50);
    private Duration pauseMax = Duration.ofSeconds(5);
    private Duration keepAliveInterval = Duration.ofSeconds(15);
    private Duration keepAliveTimeout = Duration.ofSeconds(10);
    private System.Logger logger;
    private Consumer<ConnectionEvent> listener;
    private Executor executor;
    private Supplier<String> traceparent;

    FilaClientBuilder(String address) {
        this.address = Address.parse(address);
        tls = this.address.tls();
    }

    /**
     * Encrypts, trusting what the JVM trusts.
     *
     * @return this builder
     */
    public FilaClientBuilder withTls() {
        tls = true;
        return this;
    }

    /**
     * Encrypts, trusting the certificates of a PEM file and no others.
     *
     * @param file one or several certificates
     * @return this builder
     */
    public FilaClientBuilder withTlsCaCert(Path file) {
        caCert = Objects.requireNonNull(file, "file");
        return withTls();
    }

    /**
     * Encrypts and shows a certificate of the client's own.
     *
     * @param cert a PEM file with the certificate and those between it and the broker's CA
     * @param key a PEM file with its private key, not encrypted
     * @return this builder
     */
    public FilaClientBuilder withTlsClientCert(Path cert, Path key) {
        clientCert = Objects.requireNonNull(cert, "cert");
        clientKey = Objects.requireNonNull(key, "key");
        return withTls();
    }

    /**
     * Encrypts with a context made elsewhere, instead of files.
     *
     * @param context the context
     * @return this builder
     */
    public FilaClientBuilder withSslContext(SSLContext context) {
        sslContext = Objects.requireNonNull(context, "context");
        return withTls();
    }

    /**
     * Sends an API key with the handshake.
     *
     * @param key the secret
     * @return this builder
     */
    public FilaClientBuilder withApiKey(String key) {
        Utf8.check("API key", key);
        apiKey = key;
        return this;
    }

    /**
     * Sets how long a call waits for its answer; 30 seconds by default. {@link FilaClient#withTimeout} gives
     * single calls another one.
     *
     * @param time how long; null for ever
     * @return this builder
     */
    public FilaClientBuilder withTimeout(Duration time) {
        timeout = time == null ? null : positive("timeout", time);
        return this;
    }

    /**
     * Sets how long opening a connection may take, handshakes included; 10 seconds by default.
     *
     * @param time how long
     * @return this builder
     */
    public FilaClientBuilder withConnectTimeout(Duration time) {
        connectTimeout = positive("connect timeout", time);
        return this;
    }

    /**
     * Sets how calls share frames; {@link BatchMode#auto()} by default.
     *
     * @param mode the mode
     * @return this builder
     */
    public FilaClientBuilder withBatchMode(BatchMode mode) {
        batchMode = Objects.requireNonNull(mode, "mode");
        return this;
    }

    /**
     * Bounds the messages of one frame; 1,000 by default.
     *
     * @param messages the most
     * @return this builder
     */
    public FilaClientBuilder withBatchMessagesMax(int messages) {
        batchMessagesMax = (int) positive("batch messages", messages);
        return this;
    }

    /**
     * Bounds the bytes of one frame; 1 MiB by default. A larger message goes alone.
     *
     * @param bytes the most
     * @return this builder
     */
    public FilaClientBuilder withBatchBytesMax(int bytes) {
        batchBytesMax = (int) positive("batch bytes", bytes);
        return this;
    }

    /**
     * Bounds what is under way without an answer; 64 MiB by default. Enqueues wait for room beyond that.
     *
     * @param bytes the most
     * @return this builder
     */
    public FilaClientBuilder withInFlightBytesMax(long bytes) {
        inFlightBytesMax = positive("bytes in flight", bytes);
        return this;
    }

    /**
     * Sets whether the client comes back after a lost connection; it does by default.
     *
     * @param on whether it does
     * @return this builder
     */
    public FilaClientBuilder withReconnect(boolean on) {
        reconnect = on;
        return this;
    }

    /**
     * Sets the pauses between attempts to reconnect: they double from the first to the second, each
     * shortened at random by up to half. 50 milliseconds and 5 seconds by default.
     *
     * @param min the first
     * @param max the longest
     * @return this builder
     */
    public FilaClientBuilder withReconnectPauses(Duration min, Duration max) {
        pauseMin = positive("first pause", min);
        pauseMax = positive("longest pause", max);
        return this;
    }

    /**
     * Sets when a silent broker is asked for a sign of life, and when it is given up; 15 and 10 seconds by
     * default.
     *
     * @param interval silence before a Ping
     * @param time silence after it
     * @return this builder
     */
    public FilaClientBuilder withKeepAlive(Duration interval, Duration time) {
        keepAliveInterval = positive("keep-alive interval", interval);
        keepAliveTimeout = positive("keep-alive timeout", time);
        return this;
    }

    /**
     * Sets where the client logs; {@code System.getLogger("dev.faisca.fila")} by default.
     *
     * @param to the logger
     * @return this builder
     */
    public FilaClientBuilder withLogger(System.Logger to) {
        logger = Objects.requireNonNull(to, "to");
        return this;
    }

    /**
     * Has connection events told, one after the other, on the client's executor.
     *
     * @param to who is told
     * @return this builder
     */
    public FilaClientBuilder withConnectionListener(Consumer<ConnectionEvent> to) {
        listener = Objects.requireNonNull(to, "to");
        return this;
    }

    /**
     * Sets where message handlers, listeners and what follows a future run, for example an executor of virtual
     * threads. By default the client has daemon threads of its own, as many as are needed at the same time. The
     * executor must not run tasks in the thread that hands them in; it is the caller's to shut down, after the
     * client.
     *
     * @param where the executor
     * @return this builder
     */
    public FilaClientBuilder withExecutor(Executor where) {
        executor = Objects.requireNonNull(where, "where");
        return this;
    }

    /**
     * Adds the header {@code traceparent} to messages that do not have it. It is asked for once per call, in
     * the calling thread.
     *
     * @param current gives the present trace context in the W3C form, or null if there is none
     * @return this builder
     */
    public FilaClientBuilder withTraceparent(Supplier<String> current) {
        traceparent = Objects.requireNonNull(current, "current");
        return this;
    }

    /**
     * Connects.
     *
     * @return a connected client
     * @throws ConnectFailedException if the broker cannot be reached: the first connection is not retried
     * @throws UnauthorizedException if the broker refuses the API key
     */
    public FilaClient build() {
        if (sslContext != null && (caCert != null || clientCert != null)) {
            throw new IllegalArgumentException("give an SSLContext or PEM files, not both");
        }
        SSLContext context = !tls ? null : sslContext != null ? sslContext : Tls.context(caCert, clientCert, clientKey);
        Config config = new Config(
                address,
                context,
                apiKey,
                connectTimeout,
                batchMode,
                batchMessagesMax,
                batchBytesMax,
                inFlightBytesMax,
                reconnect,
                pauseMin,
                pauseMax,
                keepAliveInterval,
                keepAliveTimeout,
                logger != null ? logger : System.getLogger("dev.faisca.fila"),
                listener,
                executor,
                traceparent);
        return new FilaClient(ClientCore.of(Engine.connect(config), timeout));
    }

    private static Duration positive(String what, Duration time) {
        if (time.isZero() || time.isNegative()) {
            throw new IllegalArgumentException(what + " must be positive, not " + time);
        }
        return time;
    }

    private static long positive(String what, long number) {
        if (number <= 0) {
            throw new IllegalArgumentException(what + " must be positive, not " + number);
        }
        return number;
    }
}
