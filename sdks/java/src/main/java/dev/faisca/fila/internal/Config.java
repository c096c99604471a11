package dev.faisca.fila.internal;

import dev.faisca.fila.BatchMode;
import dev.faisca.fila.ConnectionEvent;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;

/**
 * What a client was told, checked. Null: no TLS, no API key, no listener, no traceparent, an executor of the
 * client's own.
 */
public record Config(
        Address address,
        SSLContext tls,
        String apiKey,
        Duration connectTimeout,
        BatchMode batchMode,
        int batchMessagesMax,
        int batchBytesMax,
        long inFlightBytesMax,
        boolean reconnect,
        Duration pauseMin,
        Duration pauseMax,
        Duration keepAliveInterval,
        Duration keepAliveTimeout,
        System.Logger logger,
        Consumer<ConnectionEvent> listener,
        Executor executor,
        Supplier<String> traceparent) {}
