package dev.faisca.fila.conformance;

import dev.faisca.fila.BatchMode;
import dev.faisca.fila.ConnectionEvent;
import dev.faisca.fila.ConsumeOptions;
import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.EnqueueResult;
import dev.faisca.fila.FilaAsyncClient;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.FilaClientBuilder;
import dev.faisca.fila.FilaConsumer;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.Message;
import dev.faisca.fila.SettleResult;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** Connections, messages and consumers; administration is {@link Administration}'s. */
final class Operations {
    private final Map<String, FilaClient> clients = new ConcurrentHashMap<>();
    private final Map<String, List<String>> events = new ConcurrentHashMap<>();
    private final Map<String, Lines> logs = new ConcurrentHashMap<>();
    private final ThreadLocal<String> traceparent = new ThreadLocal<>();
    private final Map<String, Reading> consumers = new ConcurrentHashMap<>();

    /** An op that is not known. */
    static final class UnknownOperation extends RuntimeException {
        private static final long serialVersionUID = 1L;

        UnknownOperation(String op) {
            super("the adapter has no operation " + op);
        }
    }

    /** A consumer and what it handed out. */
    private record Reading(FilaConsumer consumer, Map<String, Message> messages) {}

    void closeAll() {
        clients.values().parallelStream().forEach(FilaClient::close);
    }

    /** The answer, or a future of it. */
    Object run(Map<String, Object> request) {
        traceparent.set((String) request.get("traceparent"));
        String op = (String) request.get("op");
        switch (op) {
            case "connect":
                return connect(request);
            case "close":
                client(request).close();
                return Map.of();
            case "drain":
                client(request).drain(millis(request, "timeout_ms", 30_000));
                return Map.of();
            case "events":
                List<String> told = events.get((String) request.get("client"));
                synchronized (told) {
                    return Map.of("events", List.copyOf(told));
                }
            case "logs":
                return Map.of("lines", logs.get((String) request.get("client")).told());
            case "enqueue":
                return mapped(async(request).enqueue(Values.message(request)), id -> Map.of("message_id", id));
            case "enqueue_many":
                return enqueueMany(request);
            case "consume":
                return consume(request);
            case "next":
                return next(request);
            case "cancel":
                reading(request).consumer().close();
                return Map.of();
            case "ack", "nack", "release", "extend":
                return request.get("consumer") != null ? settleMessages(op, request) : settle(op, request);
            default:
                return Administration.run(async(request), op, request);
        }
    }

    private Object connect(Map<String, Object> request) {
        Map<String, Object> options = Values.object(request.get("options"));
        FilaClientBuilder builder = FilaClient.builder((String) request.get("address"));
        if (Boolean.TRUE.equals(options.get("tls"))) {
            builder.withTls();
        }
        if (options.get("ca") != null) {
            builder.withTlsCaCert(Path.of((String) options.get("ca")));
        }
        if (options.get("cert") != null) {
            builder.withTlsClientCert(Path.of((String) options.get("cert")), Path.of((String) options.get("key")));
        }
        if (options.get("api_key") != null) {
            builder.withApiKey((String) options.get("api_key"));
        }
        if (options.get("timeout_ms") != null) {
            builder.withTimeout(millis(options, "timeout_ms", 0));
        }
        if (options.get("connect_timeout_ms") != null) {
            builder.withConnectTimeout(millis(options, "connect_timeout_ms", 0));
        }
        if (options.get("batch") != null) {
            builder.withBatchMode(switch ((String) options.get("batch")) {
                case "linger" -> BatchMode.linger(millis(options, "linger_ms", 5));
                case "off" -> BatchMode.disabled();
                default -> BatchMode.auto();
            });
        }
        if (options.get("in_flight_bytes_max") != null) {
            builder.withInFlightBytesMax((Long) options.get("in_flight_bytes_max"));
        }
        if (options.get("reconnect") != null) {
            builder.withReconnect((Boolean) options.get("reconnect"));
        }
        builder.withReconnectPauses(
                millis(options, "reconnect_pause_min_ms", 50), millis(options, "reconnect_pause_max_ms", 5000));
        builder.withKeepAlive(
                millis(options, "keepalive_interval_ms", 15_000), millis(options, "keepalive_timeout_ms", 10_000));
        String name = (String) request.get("client");
        List<String> told = events.computeIfAbsent(name, key -> new ArrayList<>());
        builder.withConnectionListener(event -> {
            String kind = event instanceof ConnectionEvent.Connected ? "connected"
                    : event instanceof ConnectionEvent.Disconnected ? "disconnected"
                    : event instanceof ConnectionEvent.Closed ? "closed" : null;
            if (kind != null) {
                synchronized (told) {
                    told.add(kind);
                }
            }
        });
        builder.withLogger(logs.computeIfAbsent(name, key -> new Lines()));
        builder.withTraceparent(traceparent::get);
        clients.put(name, builder.build());
        return Map.of();
    }

    private Object enqueueMany(Map<String, Object> request) {
        List<EnqueueMessage> messages = new ArrayList<>();
        for (Object one : (List<?>) request.get("messages")) {
            messages.add(Values.message(Values.object(one)));
        }
        return mapped(async(request).enqueueMany(messages), results -> {
            List<Object> answers = new ArrayList<>();
            for (EnqueueResult result : results) {
                Optional<FilaException> error = result.error();
                answers.add(error.isPresent()
                        ? Map.of("error", Adapter.error(error.get()))
                        : Map.of("message_id", result.messageIdOrThrow()));
            }
            return Map.of("results", answers);
        });
    }

    /** What follows a call, such that cancelling it cancels the call. */
    private static <T> CompletableFuture<Object> mapped(CompletableFuture<T> call, Function<T, Object> then) {
        CompletableFuture<Object> following = call.thenApply(then);
        following.whenComplete((value, error) -> {
            if (following.isCancelled()) {
                call.cancel(true);
            }
        });
        return following;
    }

    private Object consume(Map<String, Object> request) {
        ConsumeOptions options = ConsumeOptions.defaults();
        if (request.get("prefetch") != null) {
            options = options.withPrefetch(((Long) request.get("prefetch")).intValue());
        }
        options = options.withHeartbeat(Boolean.TRUE.equals(request.get("heartbeat")));
        FilaConsumer consumer = client(request).consume((String) request.get("queue"), options);
        consumers.put((String) request.get("consumer"), new Reading(consumer, new ConcurrentHashMap<>()));
        return Map.of();
    }

    private Object next(Map<String, Object> request) {
        Reading reading = reading(request);
        long max = (Long) request.get("max");
        long until = System.nanoTime() + millis(request, "timeout_ms", 30_000).toNanos();
        List<Object> messages = new ArrayList<>();
        boolean end = false;
        try {
            while (messages.size() < max && !end) {
                Duration left = Duration.ofNanos(Math.max(0, until - System.nanoTime()));
                Optional<Message> message = reading.consumer().receive(left);
                if (message.isPresent()) {
                    reading.messages().put(message.get().id(), message.get());
                    messages.add(Values.delivered(message.get()));
                } else if (reading.consumer().isClosed()) {
                    end = true;
                } else if (left.isZero()) {
                    break;
                }
            }
        } catch (FilaException e) {
            if (messages.isEmpty()) {
                throw e; // else the next call tells it
            }
        }
        return Map.of("messages", messages, "end", end);
    }

    private Object settle(String op, Map<String, Object> request) {
        FilaAsyncClient client = async(request);
        String queue = (String) request.get("queue");
        List<String> ids = Values.strings(request.get("ids"));
        String error = (String) request.getOrDefault("error", "");
        if (ids.size() == 1) {
            String id = ids.get(0);
            return results(List.of(switch (op) {
                case "ack" -> client.ack(queue, id);
                case "nack" -> client.nack(queue, id, error);
                case "extend" -> CompletableFuture.runAsync(() -> client(request).extend(queue, id, visibility(request)));
                default -> client.release(queue, id);
            }));
        }
        CompletableFuture<List<SettleResult>> settled = switch (op) {
            case "ack" -> client.ackMany(queue, ids);
            case "nack" -> client.nackMany(queue, ids, error);
            case "extend" -> client.extendMany(queue, ids, visibility(request));
            default -> client.releaseMany(queue, ids);
        };
        return settled.thenApply(results -> Map.of("results", results.stream()
                .map(result -> result.error().<Object>map(e -> Map.of("error", Adapter.error(e))).orElse(Map.of()))
                .toList()));
    }

    private Object settleMessages(String op, Map<String, Object> request) {
        Reading reading = reading(request);
        List<CompletableFuture<Void>> settled = new ArrayList<>();
        for (String id : Values.strings(request.get("ids"))) {
            Message message = op.equals("extend") ? reading.messages().get(id) : reading.messages().remove(id);
            settled.add(switch (op) {
                case "ack" -> message.ackAsync();
                case "nack" -> message.nackAsync((String) request.getOrDefault("error", ""));
                case "extend" -> CompletableFuture.runAsync(() -> message.extend(visibility(request)));
                default -> message.releaseAsync();
            });
        }
        return results(settled);
    }

    private static Duration visibility(Map<String, Object> request) {
        return millis(request, "visibility_ms", 0);
    }

    /** One entry for each settlement, in order. */
    private static CompletableFuture<Object> results(List<CompletableFuture<Void>> settled) {
        List<CompletableFuture<Object>> entries = new ArrayList<>();
        for (CompletableFuture<Void> one : settled) {
            entries.add(one.handle((done, error) -> error == null ? Map.of() : Map.of("error", Adapter.error(error))));
        }
        return CompletableFuture.allOf(entries.toArray(new CompletableFuture<?>[0]))
                .thenApply(all -> Map.of("results", entries.stream().map(CompletableFuture::join).toList()));
    }

    private FilaClient client(Map<String, Object> request) {
        FilaClient client = clients.get((String) request.get("client"));
        if (client == null) {
            throw new IllegalStateException("there is no client " + request.get("client"));
        }
        return client;
    }

    private FilaAsyncClient async(Map<String, Object> request) {
        FilaAsyncClient client = client(request).async();
        return request.get("timeout_ms") == null ? client : client.withTimeout(millis(request, "timeout_ms", 0));
    }

    private Reading reading(Map<String, Object> request) {
        return consumers.get((String) request.get("consumer"));
    }

    private static Duration millis(Map<String, Object> fields, String name, long otherwise) {
        Object given = fields.get(name);
        return Duration.ofMillis(given == null ? otherwise : ((Number) given).longValue());
    }
}
