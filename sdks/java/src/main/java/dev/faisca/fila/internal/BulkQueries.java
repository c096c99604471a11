package dev.faisca.fila.internal;

import dev.faisca.fila.BatchCount;
import dev.faisca.fila.BrowseOptions;
import dev.faisca.fila.BrowsePage;
import dev.faisca.fila.BrowsedMessage;
import dev.faisca.fila.LeaseOptions;
import dev.faisca.fila.OpenBatch;
import dev.faisca.fila.SettleResult;
import dev.faisca.fila.Snapshot;
import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Cause;
import dev.faisca.fila.internal.wire.Decoder;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Lease batches and browsing. */
public final class BulkQueries {
    private static final int FORM_MESSAGES = 0;
    private static final int FORM_ARROW = 1;
    private static final int BROWSED_SMALLEST = 39;
    private static final int NOT_FOUND = Cause.MESSAGE_NOT_FOUND.code();

    /** How many ids one request to extend leases names. */
    public static final int EXTEND_IDS = 1_000;

    private BulkQueries() {}

    /** A lease batch before its messages are the caller's. */
    public record Leased(
            boolean again, Instant expiresAt, long count, List<Delivered> messages, Optional<byte[]> arrow) {}

    /** Safe to repeat: the same name gives the same messages. */
    public static Query<Leased> leaseBatch(String queue, String name, LeaseOptions options) {
        Bodies.LeaseBatch body = new Bodies.LeaseBatch(
                queue,
                name,
                options.messagesMax(),
                options.bytesMax(),
                Queries.millis(options.visibility()),
                Queries.millis(options.waitTime()),
                options.countAttempt(),
                options.form().ordinal()); // in the order of the protocol's numbers
        return Queries.onQueue("lease batch \"" + name + "\" of", queue, true, body, r -> {
            Bodies.LeaseBatchResult batch = (Bodies.LeaseBatchResult) r;
            return new Leased(
                    batch.again(),
                    Instant.ofEpochMilli(batch.expiresAtMs()),
                    batch.messages(),
                    batch.form() == FORM_MESSAGES ? Delivered.parse(batch.body()) : List.of(),
                    Optional.of(batch.body()).filter(bytes -> batch.form() == FORM_ARROW));
        }).after(options.waitTime());
    }

    // With `below` they may be repeated: what is done already is not found again, and that is fine.

    public static Query<BatchCount> ackBatch(String queue, String name, Long below) {
        return Queries.onQueue("ack batch \"" + name + "\" of", queue, below != null,
                new Bodies.AckBatch(queue, name, below), r -> {
                    Bodies.AckBatchResult count = (Bodies.AckBatchResult) r;
                    return new BatchCount(count.batches(), count.messages());
                });
    }

    public static Query<BatchCount> extendBatch(String queue, String name, Duration visibility, Long below) {
        return Queries.onQueue("extend batch \"" + name + "\" of", queue, below != null,
                new Bodies.ExtendBatch(queue, name, Queries.millis(visibility), below), r -> {
                    Bodies.ExtendBatchResult count = (Bodies.ExtendBatchResult) r;
                    return new BatchCount(count.batches(), count.messages());
                });
    }

    /** At most 1,000 ids; one result for each, in order. */
    public static Query<List<SettleResult>> extend(String queue, List<String> ids, Duration visibility) {
        return Queries.onQueue("extend leases of", queue, true,
                new Bodies.Extend(queue, ids, Queries.millis(visibility)), r -> {
                    Set<String> missing = new HashSet<>(((Bodies.ExtendResult) r).missing());
                    return ids.stream()
                            .map(id -> new SettleResult(id, missing.contains(id) ? Errors.refusedSettlement(NOT_FOUND, queue, id) : null))
                            .toList();
                }).settling();
    }

    /** What a heart-beat asks. */
    static Query<Bodies.ExtendResult> extendHeld(String queue, List<String> ids) {
        return Queries.onQueue("extend leases of", queue, false,
                new Bodies.Extend(queue, ids, 0), r -> (Bodies.ExtendResult) r).settling();
    }

    public static Query<BatchCount> releaseBatch(String queue, String name, Long below) {
        return Queries.onQueue("release batch \"" + name + "\" of", queue, below != null,
                new Bodies.ReleaseBatch(queue, name, below), r -> {
                    Bodies.ReleaseBatchResult count = (Bodies.ReleaseBatchResult) r;
                    return new BatchCount(count.batches(), count.messages());
                });
    }

    public static Query<List<OpenBatch>> listBatches(String queue) {
        return Queries.onQueue("batches of", queue, true, new Bodies.ListBatches(queue),
                r -> ((Bodies.ListBatchesResult) r).batches().stream()
                        .map(b -> new OpenBatch(
                                b.name(),
                                b.messages(),
                                Instant.ofEpochMilli(b.leasedAtMs()),
                                Instant.ofEpochMilli(b.expiresAtMs())))
                        .toList());
    }

    public static Query<Snapshot> browse(String queue, BrowseOptions options) {
        Bodies.Browse body = new Bodies.Browse(
                queue, options.fairnessKey().orElse(null), options.parts(), Queries.millis(options.ttl()));
        return Queries.onQueue("browse", queue, false, body, r -> {
                    Bodies.BrowseResult snapshot = (Bodies.BrowseResult) r;
                    return new Snapshot(
                            snapshot.snapshot(),
                            Instant.ofEpochMilli(snapshot.expiresAtMs()),
                            snapshot.messages(),
                            snapshot.ranges().stream()
                                    .map(range -> new Snapshot.Range(range.start(), range.end()))
                                    .toList());
                });
    }

    public static Query<BrowsePage> browsePage(
            String queue, String snapshot, byte[] start, byte[] end, Set<BrowsedMessage.State> states) {
        int wanted = 0;
        for (BrowsedMessage.State state : states) {
            wanted |= 1 << state.ordinal();
        }
        Bodies.BrowsePage body = new Bodies.BrowsePage(snapshot, start, end, wanted, 0, 0, FORM_MESSAGES);
        return Queries.onQueue("browse", queue, true, body, r -> {
            Bodies.BrowsePageResult page = (Bodies.BrowsePageResult) r;
            return new BrowsePage(messages(page.body()), page.next());
        });
    }

    public static Query<Void> browseClose(String queue, String snapshot) {
        return Queries.onQueue("close the snapshot of", queue, false, new Bodies.BrowseClose(snapshot), r -> null);
    }

    private static List<BrowsedMessage> messages(byte[] body) {
        Decoder from = new Decoder(body);
        int count = from.count("messages", from.u32("messages"), BROWSED_SMALLEST);
        List<BrowsedMessage> messages = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            String id = from.string("id");
            String queue = from.string("queue");
            Map<String, String> headers = from.map("headers");
            byte[] payload = from.bytes("payload");
            String fairnessKey = from.string("fairness_key");
            long weight = from.u32("weight");
            List<String> throttleKeys = from.strings("throttle_keys");
            long attempts = from.u32("attempt_count");
            Instant enqueuedAt = Instant.ofEpochMilli(from.u64("enqueued_at_ms"));
            Instant readyAt = Instant.ofEpochMilli(from.u64("ready_at_ms"));
            messages.add(new BrowsedMessage(id, queue, headers, payload, fairnessKey, weight, throttleKeys, attempts,
                    enqueuedAt, readyAt, state(from.u8("state"))));
        }
        return messages;
    }

    private static BrowsedMessage.State state(int bit) {
        return switch (bit) {
            case 2 -> BrowsedMessage.State.DELAYED;
            case 4 -> BrowsedMessage.State.LEASED;
            default -> BrowsedMessage.State.READY;
        };
    }
}
