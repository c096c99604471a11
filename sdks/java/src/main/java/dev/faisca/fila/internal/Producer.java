package dev.faisca.fila.internal;

import dev.faisca.fila.CallInterruptedException;
import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.EnqueueResult;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.Encoder;
import dev.faisca.fila.internal.wire.Utf8;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Messages to chunks, handed over as the bound on bytes in flight lets them in: the one thing a call waits for
 * before it is under way.
 */
public final class Producer {
    private static final String TRACEPARENT = "traceparent";
    private static final int CHUNK_BYTES = 1024 * 1024;

    private final Engine engine;

    public Producer(Engine engine) {
        this.engine = engine;
    }

    public Ticket<String> enqueue(EnqueueMessage message, Deadline deadline) {
        return hand(List.of(message), Call::oneId, deadline);
    }

    public Ticket<List<EnqueueResult>> enqueueMany(List<EnqueueMessage> messages, Deadline deadline) {
        return hand(List.copyOf(messages), Call::enqueueResults, deadline);
    }

    private <T> Call<T> hand(List<EnqueueMessage> messages, Function<Call<?>, T> outcome, Deadline deadline) {
        String traceparent = engine.config.traceparent() == null ? null : engine.config.traceparent().get();
        if (traceparent != null) {
            Utf8.check(TRACEPARENT, traceparent);
        }
        // One kind for all of them, so that they are stored in their order.
        Kind kind = messages.stream().anyMatch(Producer::hasOptions) ? Kind.ENQUEUE_WITH : Kind.ENQUEUE;
        engine.begin(true);
        String queue = messages.isEmpty() ? "" : messages.get(0).queue();
        Call<T> call = new Call<>(engine, "enqueue", kind, queue, messages.size(), List.of(), outcome);
        if (messages.isEmpty()) {
            call.finish(null);
            return call;
        }
        try {
            handOver(call, messages, traceparent, deadline);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            call.giveUp(new CallInterruptedException("enqueue: interrupted while it waited for room", e));
        } catch (FilaException e) {
            call.giveUp(e);
        } catch (RuntimeException e) {
            call.giveUp(Errors.lost("enqueue: " + e.getMessage(), e)); // it is not under way any more
            throw e;
        }
        return call;
    }

    private void handOver(Call<?> call, List<EnqueueMessage> messages, String traceparent, Deadline deadline)
            throws InterruptedException {
        long chunkMax = Math.min(CHUNK_BYTES, engine.config.inFlightBytesMax());
        int first = 0;
        while (first < messages.size() && !call.isDone()) {
            int end = first;
            long bytes = 0;
            while (end < messages.size()) {
                EnqueueMessage next = messages.get(end);
                long size = sizeOf(next, traceparent);
                if (end > first && (bytes + size > chunkMax || !alike(messages.get(first), next))) {
                    break;
                }
                bytes += size;
                end++;
            }
            Chunk chunk = encode(call, messages, first, end, (int) Math.min(bytes, 1 << 30), traceparent);
            if (!engine.gate.enter(chunk.size(), deadline)) {
                throw call.tooLate(
                        deadline, "; " + engine.config.inFlightBytesMax() + " bytes are under way without an answer");
            }
            call.bytes += chunk.size(); // this thread alone
            engine.submit(engine.route(chunk.queue), call.kind, chunk);
            first = end;
        }
    }

    /** Messages of one chunk go to one queue, and all of them may be sent again or none. */
    private static boolean alike(EnqueueMessage one, EnqueueMessage other) {
        return one.queue().equals(other.queue()) && (one.idempotencyKey() == null) == (other.idempotencyKey() == null);
    }

    private static Chunk encode(
            Call<?> call, List<EnqueueMessage> messages, int first, int end, int bytes, String traceparent) {
        Encoder to = new Encoder(bytes);
        int[] ends = new int[end - first];
        for (int i = first; i < end; i++) {
            encode(to, messages.get(i), call.kind, traceparent);
            ends[i - first] = to.size();
        }
        EnqueueMessage sample = messages.get(first);
        boolean repeatable = sample.idempotencyKey() != null && !sample.idempotencyKey().isEmpty();
        return new Chunk(call, sample.queue(), repeatable, to.compact(), ends, first);
    }

    private static void encode(Encoder to, EnqueueMessage message, Kind kind, String traceparent) {
        to.string("queue", message.queue());
        Map<String, String> headers = message.headers();
        if (traceparent != null && !headers.containsKey(TRACEPARENT)) {
            to.u16("headers", headers.size() + 1);
            to.string("headers", TRACEPARENT);
            to.string("headers", traceparent);
            headers.forEach((name, value) -> {
                to.string("headers", name);
                to.string("headers", value);
            });
        } else {
            to.map("headers", headers);
        }
        to.bytes("payload", message.payload());
        if (kind == Kind.ENQUEUE_WITH) {
            to.u64("delay_ms", message.delay().plusNanos(999_999).toMillis()); // never ready too early
            to.string("idempotency_key", orEmpty(message.idempotencyKey()));
            to.string("fairness_key", orEmpty(message.fairnessKey()));
            to.u32("weight", message.weight());
            to.strings("throttle_keys", message.throttleKeys());
        }
    }

    private static boolean hasOptions(EnqueueMessage message) {
        return !message.delay().isZero()
                || message.idempotencyKey() != null
                || message.fairnessKey() != null
                || message.weight() != 0
                || !message.throttleKeys().isEmpty();
    }

    /** About what a message takes on the wire: the array it is encoded into grows if it is more. */
    private static long sizeOf(EnqueueMessage message, String traceparent) {
        long size = 48L + message.queue().length() + message.payload().length;
        for (Map.Entry<String, String> header : message.headers().entrySet()) {
            size += 4L + header.getKey().length() + header.getValue().length();
        }
        return traceparent == null ? size : size + 16 + traceparent.length();
    }

    private static String orEmpty(String text) {
        return text == null ? "" : text;
    }
}
