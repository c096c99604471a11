import dev.faisca.fila.ConsumeOptions;
import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.EnqueueResult;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.FilaConsumer;
import dev.faisca.fila.Message;
import dev.faisca.fila.SettleResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * A producer or a consumer under load, for side-by-side measurements with the other clients.
 *
 * <p>bench/run produce ADDRESS QUEUE MESSAGES [BATCH [SIZE]], bench/run consume ADDRESS QUEUE MESSAGES [BATCH]
 *
 * <p>Prints one line of JSON: {"lang","role","messages","seconds","cpu_seconds","rss_mb"}.
 */
public final class Load {
    private static final int AHEAD = 8; // batches under way at once
    private static final int PREFETCH = 2000;

    private Load() {}

    public static void main(String[] args) throws Exception {
        String role = args[0];
        String queue = args[2];
        int messages = Integer.parseInt(args[3]);
        int batch = args.length > 4 ? Integer.parseInt(args[4]) : 100;
        int size = args.length > 5 ? Integer.parseInt(args[5]) : 1024;
        try (FilaClient client = FilaClient.connect(args[1])) {
            long began = System.nanoTime();
            long cpuBefore = cpuNanos();
            if (role.equals("produce")) {
                produce(client, queue, messages, batch, size);
            } else {
                consume(client, queue, messages, batch);
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            long cpuNanos = cpuNanos() - cpuBefore;
            String most = Files.readString(Path.of("/proc/self/status")).split("VmHWM:")[1].strip().split("\\s")[0];
            System.out.printf(
                    Locale.ROOT,
                    "{\"lang\": \"java\", \"role\": \"%s\", \"messages\": %d, \"seconds\": %.3f, \"cpu_seconds\": %.3f, \"rss_mb\": %.1f}%n",
                    role, messages, seconds, cpuNanos / 1e9, Long.parseLong(most) / 1024.0);
        }
    }

    private static long cpuNanos() {
        return ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO).toNanos();
    }

    private static void produce(FilaClient client, String queue, int messages, int batch, int size) {
        byte[] payload = new byte[size];
        java.util.Arrays.fill(payload, (byte) 'x');
        EnqueueMessage message = new EnqueueMessage(queue, Map.of(), payload);
        ArrayDeque<CompletableFuture<List<EnqueueResult>>> underWay = new ArrayDeque<>();
        for (int sent = 0; sent < messages; sent += batch) {
            if (underWay.size() == AHEAD) {
                underWay.poll().join().forEach(EnqueueResult::messageIdOrThrow);
            }
            List<EnqueueMessage> list = Collections.nCopies(Math.min(batch, messages - sent), message);
            underWay.add(client.async().enqueueMany(list));
        }
        underWay.forEach(last -> last.join().forEach(EnqueueResult::messageIdOrThrow));
    }

    private static void consume(FilaClient client, String queue, int messages, int batch) {
        long bytes = 0;
        int seen = 0;
        ArrayDeque<CompletableFuture<List<SettleResult>>> acks = new ArrayDeque<>();
        try (FilaConsumer consumer = client.consume(queue, ConsumeOptions.defaults().withPrefetch(PREFETCH))) {
            while (seen < messages) {
                List<Message> got = consumer.receiveMany(batch, Duration.ofMinutes(1));
                List<String> ids = new ArrayList<>(got.size());
                for (Message message : got) {
                    bytes += message.payload().length;
                    ids.add(message.id());
                }
                if (acks.size() == AHEAD) {
                    check(acks.poll().join());
                }
                acks.add(client.async().ackMany(queue, ids));
                seen += got.size();
            }
            acks.forEach(last -> check(last.join()));
        }
        if (bytes == 0) {
            throw new IllegalStateException("nothing was read");
        }
    }

    private static void check(List<SettleResult> results) {
        for (SettleResult result : results) {
            if (!result.settled()) {
                throw result.exception();
            }
        }
    }
}
