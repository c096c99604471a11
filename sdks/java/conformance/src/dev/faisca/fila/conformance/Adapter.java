package dev.faisca.fila.conformance;

import dev.faisca.fila.CallInterruptedException;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.InvalidBodyException;
import dev.faisca.fila.support.Json;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The conformance adapter: requests from stdin become calls of the SDK, see sdks/conformance/PROTOCOL.md. */
public final class Adapter {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final long PAGE_BYTES = 4096;

    private final Map<Long, Job> jobs = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> starters = new ConcurrentHashMap<>(); // one per client: keeps the order
    private final ExecutorService pool = Executors.newCachedThreadPool(Adapter::daemon);
    private final Operations operations = new Operations();

    /** A request that is being answered. */
    private static final class Job {
        private Thread thread;
        private CompletableFuture<?> future;
        private boolean aborted;
        private boolean answered;

        synchronized void begin() {
            thread = Thread.currentThread();
            if (aborted) {
                thread.interrupt();
            }
        }

        synchronized void end() {
            thread = null;
            Thread.interrupted();
        }

        synchronized void watch(CompletableFuture<?> started) {
            future = started;
            if (aborted) {
                started.cancel(true);
            }
        }

        synchronized void abort() {
            aborted = true;
            if (future != null) {
                future.cancel(true);
            } else if (thread != null) {
                thread.interrupt();
            }
        }

        synchronized boolean answer() {
            boolean first = !answered;
            answered = true;
            return first;
        }
    }

    public static void main(String[] args) throws Exception {
        new Adapter().serve();
        System.exit(0);
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> request = Json.object(line);
            long id = (Long) request.get("id");
            Job job = new Job();
            jobs.put(id, job);
            placeFor(request).execute(() -> run(id, job, request));
        }
        operations.closeAll();
    }

    /** Calls that only start something are started in order; what waits in its thread has one of its own. */
    private ExecutorService placeFor(Map<String, Object> request) {
        String op = (String) request.get("op");
        boolean waits = switch (op) {
            case "connect", "close", "drain", "consume", "next", "cancel", "abort", "events", "logs" -> true;
            default -> request.get("client") == null;
        };
        if (waits) {
            return pool;
        }
        return starters.computeIfAbsent(
                (String) request.get("client"), name -> Executors.newSingleThreadExecutor(Adapter::daemon));
    }

    private void run(long id, Job job, Map<String, Object> request) {
        job.begin();
        try {
            Object result = switch ((String) request.get("op")) {
                case "hello" -> Map.of("protocol", 1, "language", "java", "version", "0.1.0");
                case "stats" -> Map.of("rss_bytes", rssBytes());
                case "abort" -> {
                    Job other = jobs.get((Long) request.get("request"));
                    if (other != null) {
                        other.abort();
                    }
                    yield Map.of();
                }
                case "encode" -> Codec.encode(request);
                case "decode" -> Codec.decode(request);
                case "decode_body" -> Codec.decodeBody(request);
                case "decode_stream" -> Codec.decodeStream(request);
                case "state" -> Codec.state(request);
                default -> operations.run(request);
            };
            if (result instanceof CompletableFuture<?> future) {
                job.watch(future);
                future.whenComplete((value, error) -> {
                    if (error != null) {
                        fail(id, job, error);
                    } else {
                        answer(id, job, "ok", value);
                    }
                });
            } else {
                answer(id, job, "ok", result);
            }
        } catch (Exception e) {
            fail(id, job, e);
        } finally {
            job.end();
        }
    }

    private void fail(long id, Job job, Throwable error) {
        answer(id, job, "error", error(error));
    }

    private void answer(long id, Job job, String kind, Object value) {
        if (!job.answer()) {
            return;
        }
        jobs.remove(id);
        Map<String, Object> response = new LinkedHashMap<>();
        response.put("id", id);
        response.put(kind, value);
        String line = Json.write(response);
        synchronized (OUT) {
            OUT.print(line + "\n");
            OUT.flush();
        }
    }

    /** An exception as the protocol writes it. */
    static Map<String, Object> error(Throwable thrown) {
        Throwable e = thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        String code = "Unexpected";
        boolean retryable = false;
        Map<String, String> metadata = Map.of();
        if (e instanceof CancellationException || e instanceof CallInterruptedException) {
            code = "Cancelled";
        } else if (e instanceof FilaException fila) {
            code = fila.code();
            retryable = fila.retryable();
            metadata = fila.metadata();
        } else if (e instanceof InvalidBodyException) {
            code = "InvalidFrame";
        } else if (e instanceof Operations.UnknownOperation) {
            code = "NotImplemented";
        } else if (e instanceof IllegalArgumentException) {
            code = "InvalidArgument";
        } else {
            e.printStackTrace();
        }
        String text = e.getMessage() == null ? e.toString() : e.getMessage();
        return Map.of("code", code, "message", text, "retryable", retryable, "metadata", metadata);
    }

    private static long rssBytes() throws Exception {
        System.gc();
        Thread.sleep(50);
        System.gc();
        String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ");
        return Long.parseLong(pages[1]) * PAGE_BYTES;
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}
