// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila.internal.wire;

import java.util.List;
import java.util.Map;

/** Every body of FIBP as a record, in wire order. A trailing field that is absent is null. */
public final class Bodies {
    private Bodies() {}

    /** Decodes the body of a known operation; null if the opcode is not known. */
    public static Body decode(int opcode, byte[] body) {
        Decoder from = new Decoder(body);
        return switch (opcode) {
            case Opcodes.HANDSHAKE -> Handshake.decode(from);
            case Opcodes.HANDSHAKE_OK -> HandshakeOk.decode(from);
            case Opcodes.PING -> Ping.decode(from);
            case Opcodes.PONG -> Pong.decode(from);
            case Opcodes.DISCONNECT -> Disconnect.decode(from);
            case Opcodes.ENQUEUE -> Enqueue.decode(from);
            case Opcodes.ENQUEUE_RESULT -> EnqueueResult.decode(from);
            case Opcodes.CONSUME -> Consume.decode(from);
            case Opcodes.CONSUME_OK -> ConsumeOk.decode(from);
            case Opcodes.DELIVERY -> Delivery.decode(from);
            case Opcodes.CANCEL_CONSUME -> CancelConsume.decode(from);
            case Opcodes.ACK -> Ack.decode(from);
            case Opcodes.ACK_RESULT -> AckResult.decode(from);
            case Opcodes.NACK -> Nack.decode(from);
            case Opcodes.NACK_RESULT -> NackResult.decode(from);
            case Opcodes.ENQUEUE_WITH -> EnqueueWith.decode(from);
            case Opcodes.ENQUEUE_WITH_RESULT -> EnqueueWithResult.decode(from);
            case Opcodes.RELEASE -> Release.decode(from);
            case Opcodes.RELEASE_RESULT -> ReleaseResult.decode(from);
            case Opcodes.LEASE_BATCH -> LeaseBatch.decode(from);
            case Opcodes.LEASE_BATCH_RESULT -> LeaseBatchResult.decode(from);
            case Opcodes.ACK_BATCH -> AckBatch.decode(from);
            case Opcodes.ACK_BATCH_RESULT -> AckBatchResult.decode(from);
            case Opcodes.EXTEND_BATCH -> ExtendBatch.decode(from);
            case Opcodes.EXTEND_BATCH_RESULT -> ExtendBatchResult.decode(from);
            case Opcodes.RELEASE_BATCH -> ReleaseBatch.decode(from);
            case Opcodes.RELEASE_BATCH_RESULT -> ReleaseBatchResult.decode(from);
            case Opcodes.LIST_BATCHES -> ListBatches.decode(from);
            case Opcodes.LIST_BATCHES_RESULT -> ListBatchesResult.decode(from);
            case Opcodes.BROWSE -> Browse.decode(from);
            case Opcodes.BROWSE_RESULT -> BrowseResult.decode(from);
            case Opcodes.BROWSE_PAGE -> BrowsePage.decode(from);
            case Opcodes.BROWSE_PAGE_RESULT -> BrowsePageResult.decode(from);
            case Opcodes.BROWSE_CLOSE -> BrowseClose.decode(from);
            case Opcodes.BROWSE_CLOSE_RESULT -> BrowseCloseResult.decode(from);
            case Opcodes.EXTEND -> Extend.decode(from);
            case Opcodes.EXTEND_RESULT -> ExtendResult.decode(from);
            case Opcodes.EXPLAIN -> Explain.decode(from);
            case Opcodes.EXPLAIN_RESULT -> ExplainResult.decode(from);
            case Opcodes.PAUSE_QUEUE -> PauseQueue.decode(from);
            case Opcodes.PAUSE_QUEUE_RESULT -> PauseQueueResult.decode(from);
            case Opcodes.RESUME_QUEUE -> ResumeQueue.decode(from);
            case Opcodes.RESUME_QUEUE_RESULT -> ResumeQueueResult.decode(from);
            case Opcodes.PAUSE_KEY -> PauseKey.decode(from);
            case Opcodes.PAUSE_KEY_RESULT -> PauseKeyResult.decode(from);
            case Opcodes.RESUME_KEY -> ResumeKey.decode(from);
            case Opcodes.RESUME_KEY_RESULT -> ResumeKeyResult.decode(from);
            case Opcodes.PURGE -> Purge.decode(from);
            case Opcodes.PURGE_RESULT -> PurgeResult.decode(from);
            case Opcodes.GET_LIMITS -> GetLimits.decode(from);
            case Opcodes.GET_LIMITS_RESULT -> GetLimitsResult.decode(from);
            case Opcodes.WHO_AM_I -> WhoAmI.decode(from);
            case Opcodes.WHO_AM_I_RESULT -> WhoAmIResult.decode(from);
            case Opcodes.LIST_BACKUPS_RESULT -> ListBackupsResult.decode(from);
            case Opcodes.LIST_BACKUPS -> ListBackups.decode(from);
            case Opcodes.CREATE_BACKUP_RESULT -> CreateBackupResult.decode(from);
            case Opcodes.CREATE_BACKUP -> CreateBackup.decode(from);
            case Opcodes.GET_RECLASSIFY_RESULT -> GetReclassifyResult.decode(from);
            case Opcodes.GET_RECLASSIFY -> GetReclassify.decode(from);
            case Opcodes.RECLASSIFY_RESULT -> ReclassifyResult.decode(from);
            case Opcodes.RECLASSIFY -> Reclassify.decode(from);
            case Opcodes.LIST_OVERRIDES_RESULT -> ListOverridesResult.decode(from);
            case Opcodes.LIST_OVERRIDES -> ListOverrides.decode(from);
            case Opcodes.SET_OVERRIDE_RESULT -> SetOverrideResult.decode(from);
            case Opcodes.SET_OVERRIDE -> SetOverride.decode(from);
            case Opcodes.LIST_VERSIONS_RESULT -> ListVersionsResult.decode(from);
            case Opcodes.LIST_VERSIONS -> ListVersions.decode(from);
            case Opcodes.GET_QUEUE_RESULT -> GetQueueResult.decode(from);
            case Opcodes.GET_QUEUE -> GetQueue.decode(from);
            case Opcodes.UPDATE_QUEUE_RESULT -> UpdateQueueResult.decode(from);
            case Opcodes.UPDATE_QUEUE -> UpdateQueue.decode(from);
            case Opcodes.GET_ACL_RESULT -> GetAclResult.decode(from);
            case Opcodes.GET_ACL -> GetAcl.decode(from);
            case Opcodes.SET_ACL_RESULT -> SetAclResult.decode(from);
            case Opcodes.SET_ACL -> SetAcl.decode(from);
            case Opcodes.LIST_API_KEYS_RESULT -> ListApiKeysResult.decode(from);
            case Opcodes.LIST_API_KEYS -> ListApiKeys.decode(from);
            case Opcodes.REVOKE_API_KEY_RESULT -> RevokeApiKeyResult.decode(from);
            case Opcodes.REVOKE_API_KEY -> RevokeApiKey.decode(from);
            case Opcodes.CREATE_API_KEY_RESULT -> CreateApiKeyResult.decode(from);
            case Opcodes.CREATE_API_KEY -> CreateApiKey.decode(from);
            case Opcodes.REDRIVE_RESULT -> RedriveResult.decode(from);
            case Opcodes.REDRIVE -> Redrive.decode(from);
            case Opcodes.LIST_CONFIG_RESULT -> ListConfigResult.decode(from);
            case Opcodes.LIST_CONFIG -> ListConfig.decode(from);
            case Opcodes.GET_CONFIG_RESULT -> GetConfigResult.decode(from);
            case Opcodes.GET_CONFIG -> GetConfig.decode(from);
            case Opcodes.SET_CONFIG_RESULT -> SetConfigResult.decode(from);
            case Opcodes.SET_CONFIG -> SetConfig.decode(from);
            case Opcodes.LIST_QUEUES_RESULT -> ListQueuesResult.decode(from);
            case Opcodes.LIST_QUEUES -> ListQueues.decode(from);
            case Opcodes.GET_STATS_RESULT -> GetStatsResult.decode(from);
            case Opcodes.GET_STATS -> GetStats.decode(from);
            case Opcodes.DELETE_QUEUE_RESULT -> DeleteQueueResult.decode(from);
            case Opcodes.DELETE_QUEUE -> DeleteQueue.decode(from);
            case Opcodes.CREATE_QUEUE_RESULT -> CreateQueueResult.decode(from);
            case Opcodes.CREATE_QUEUE -> CreateQueue.decode(from);
            case Opcodes.ERROR -> Error.decode(from);
            default -> null;
        };
    }

    public record Handshake(int version, String apiKey) implements Body {
        @Override
        public int opcode() {
            return Opcodes.HANDSHAKE;
        }

        @Override
        public void encode(Encoder to) {
            to.u16("version", version);
            to.optionalString("api_key", apiKey);
        }

        public static Handshake decode(Decoder from) {
            int version = from.u16("version");
            String apiKey = from.optionalString("api_key");
            return new Handshake(version, apiKey);
        }
    }

    public record HandshakeOk(int version, long nodeId, long maxFrameSize) implements Body {
        @Override
        public int opcode() {
            return Opcodes.HANDSHAKE_OK;
        }

        @Override
        public void encode(Encoder to) {
            to.u16("version", version);
            to.u64("node_id", nodeId);
            to.u32("max_frame_size", maxFrameSize);
        }

        public static HandshakeOk decode(Decoder from) {
            int version = from.u16("version");
            long nodeId = from.u64("node_id");
            long maxFrameSize = from.u32("max_frame_size");
            return new HandshakeOk(version, nodeId, maxFrameSize);
        }
    }

    public record Ping() implements Body {
        @Override
        public int opcode() {
            return Opcodes.PING;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static Ping decode(Decoder from) {
            return new Ping();
        }
    }

    public record Pong() implements Body {
        @Override
        public int opcode() {
            return Opcodes.PONG;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static Pong decode(Decoder from) {
            return new Pong();
        }
    }

    public record Disconnect() implements Body {
        @Override
        public int opcode() {
            return Opcodes.DISCONNECT;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static Disconnect decode(Decoder from) {
            return new Disconnect();
        }
    }

    public record Enqueue(List<EnqueueItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ENQUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static Enqueue decode(Decoder from) {
            List<EnqueueItem> messages = from.list32("messages", 8, EnqueueItem::decode);
            return new Enqueue(messages);
        }
    }

    public record EnqueueResult(List<EnqueueResultItem> results) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ENQUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("results", results);
        }

        public static EnqueueResult decode(Decoder from) {
            List<EnqueueResultItem> results = from.list32("results", 3, EnqueueResultItem::decode);
            return new EnqueueResult(results);
        }
    }

    public record Consume(String queue, Long prefetch) implements Body {
        @Override
        public int opcode() {
            return Opcodes.CONSUME;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            if (prefetch != null) {
                to.u32("prefetch", prefetch);
            }
        }

        public static Consume decode(Decoder from) {
            String queue = from.string("queue");
            Long prefetch = from.atEnd() ? null : from.u32("prefetch");
            return new Consume(queue, prefetch);
        }
    }

    public record ConsumeOk(String consumerId) implements Body {
        @Override
        public int opcode() {
            return Opcodes.CONSUME_OK;
        }

        @Override
        public void encode(Encoder to) {
            to.string("consumer_id", consumerId);
        }

        public static ConsumeOk decode(Decoder from) {
            String consumerId = from.string("consumer_id");
            return new ConsumeOk(consumerId);
        }
    }

    public record Delivery(List<DeliveryItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.DELIVERY;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static Delivery decode(Decoder from) {
            List<DeliveryItem> messages = from.list32("messages", 38, DeliveryItem::decode);
            return new Delivery(messages);
        }
    }

    public record CancelConsume() implements Body {
        @Override
        public int opcode() {
            return Opcodes.CANCEL_CONSUME;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static CancelConsume decode(Decoder from) {
            return new CancelConsume();
        }
    }

    public record Ack(List<AckItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ACK;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static Ack decode(Decoder from) {
            List<AckItem> messages = from.list32("messages", 4, AckItem::decode);
            return new Ack(messages);
        }
    }

    public record AckResult(List<CodeItem> results) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ACK_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("results", results);
        }

        public static AckResult decode(Decoder from) {
            List<CodeItem> results = from.list32("results", 1, CodeItem::decode);
            return new AckResult(results);
        }
    }

    public record Nack(List<NackItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.NACK;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static Nack decode(Decoder from) {
            List<NackItem> messages = from.list32("messages", 6, NackItem::decode);
            return new Nack(messages);
        }
    }

    public record NackResult(List<CodeItem> results) implements Body {
        @Override
        public int opcode() {
            return Opcodes.NACK_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("results", results);
        }

        public static NackResult decode(Decoder from) {
            List<CodeItem> results = from.list32("results", 1, CodeItem::decode);
            return new NackResult(results);
        }
    }

    public record EnqueueWith(List<EnqueueWithItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ENQUEUE_WITH;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static EnqueueWith decode(Decoder from) {
            List<EnqueueWithItem> messages = from.list32("messages", 26, EnqueueWithItem::decode);
            return new EnqueueWith(messages);
        }
    }

    public record EnqueueWithResult(List<EnqueueWithResultItem> results) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ENQUEUE_WITH_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("results", results);
        }

        public static EnqueueWithResult decode(Decoder from) {
            List<EnqueueWithResultItem> results = from.list32("results", 4, EnqueueWithResultItem::decode);
            return new EnqueueWithResult(results);
        }
    }

    public record Release(List<ReleaseItem> messages) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RELEASE;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("messages", messages);
        }

        public static Release decode(Decoder from) {
            List<ReleaseItem> messages = from.list32("messages", 4, ReleaseItem::decode);
            return new Release(messages);
        }
    }

    public record ReleaseResult(List<ReleaseCode> results) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RELEASE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.list32("results", results);
        }

        public static ReleaseResult decode(Decoder from) {
            List<ReleaseCode> results = from.list32("results", 1, ReleaseCode::decode);
            return new ReleaseResult(results);
        }
    }

    public record LeaseBatch(String queue, String name, long maxMessages, long maxBytes, long visibilityMs, long waitMs, boolean countAttempt, int form) implements Body {
        @Override
        public int opcode() {
            return Opcodes.LEASE_BATCH;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("name", name);
            to.u32("max_messages", maxMessages);
            to.u64("max_bytes", maxBytes);
            to.u64("visibility_ms", visibilityMs);
            to.u32("wait_ms", waitMs);
            to.bool("count_attempt", countAttempt);
            to.u8("form", form);
        }

        public static LeaseBatch decode(Decoder from) {
            String queue = from.string("queue");
            String name = from.string("name");
            long maxMessages = from.u32("max_messages");
            long maxBytes = from.u64("max_bytes");
            long visibilityMs = from.u64("visibility_ms");
            long waitMs = from.u32("wait_ms");
            boolean countAttempt = from.bool("count_attempt");
            int form = from.u8("form");
            return new LeaseBatch(queue, name, maxMessages, maxBytes, visibilityMs, waitMs, countAttempt, form);
        }
    }

    public record LeaseBatchResult(int code, boolean again, long messages, long expiresAtMs, int form, byte[] body) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LEASE_BATCH_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.bool("again", again);
            to.u32("messages", messages);
            to.u64("expires_at_ms", expiresAtMs);
            to.u8("form", form);
            to.bytes("body", body);
        }

        public static LeaseBatchResult decode(Decoder from) {
            int code = from.u8("code");
            boolean again = from.bool("again");
            long messages = from.u32("messages");
            long expiresAtMs = from.u64("expires_at_ms");
            int form = from.u8("form");
            byte[] body = from.bytes("body");
            return new LeaseBatchResult(code, again, messages, expiresAtMs, form, body);
        }
    }

    public record AckBatch(String queue, String name, Long below) implements Body {
        @Override
        public int opcode() {
            return Opcodes.ACK_BATCH;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("name", name);
            if (below != null) {
                to.u64("below", below);
            }
        }

        public static AckBatch decode(Decoder from) {
            String queue = from.string("queue");
            String name = from.string("name");
            Long below = from.atEnd() ? null : from.u64("below");
            return new AckBatch(queue, name, below);
        }
    }

    public record AckBatchResult(int code, long batches, long messages) implements Result {
        @Override
        public int opcode() {
            return Opcodes.ACK_BATCH_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("batches", batches);
            to.u64("messages", messages);
        }

        public static AckBatchResult decode(Decoder from) {
            int code = from.u8("code");
            long batches = from.u32("batches");
            long messages = from.u64("messages");
            return new AckBatchResult(code, batches, messages);
        }
    }

    public record ExtendBatch(String queue, String name, long visibilityMs, Long below) implements Body {
        @Override
        public int opcode() {
            return Opcodes.EXTEND_BATCH;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("name", name);
            to.u64("visibility_ms", visibilityMs);
            if (below != null) {
                to.u64("below", below);
            }
        }

        public static ExtendBatch decode(Decoder from) {
            String queue = from.string("queue");
            String name = from.string("name");
            long visibilityMs = from.u64("visibility_ms");
            Long below = from.atEnd() ? null : from.u64("below");
            return new ExtendBatch(queue, name, visibilityMs, below);
        }
    }

    public record ExtendBatchResult(int code, long batches, long messages) implements Result {
        @Override
        public int opcode() {
            return Opcodes.EXTEND_BATCH_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("batches", batches);
            to.u64("messages", messages);
        }

        public static ExtendBatchResult decode(Decoder from) {
            int code = from.u8("code");
            long batches = from.u32("batches");
            long messages = from.u64("messages");
            return new ExtendBatchResult(code, batches, messages);
        }
    }

    public record ReleaseBatch(String queue, String name, Long below) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RELEASE_BATCH;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("name", name);
            if (below != null) {
                to.u64("below", below);
            }
        }

        public static ReleaseBatch decode(Decoder from) {
            String queue = from.string("queue");
            String name = from.string("name");
            Long below = from.atEnd() ? null : from.u64("below");
            return new ReleaseBatch(queue, name, below);
        }
    }

    public record ReleaseBatchResult(int code, long batches, long messages) implements Result {
        @Override
        public int opcode() {
            return Opcodes.RELEASE_BATCH_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("batches", batches);
            to.u64("messages", messages);
        }

        public static ReleaseBatchResult decode(Decoder from) {
            int code = from.u8("code");
            long batches = from.u32("batches");
            long messages = from.u64("messages");
            return new ReleaseBatchResult(code, batches, messages);
        }
    }

    public record ListBatches(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_BATCHES;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static ListBatches decode(Decoder from) {
            String queue = from.string("queue");
            return new ListBatches(queue);
        }
    }

    public record ListBatchesResult(int code, List<OpenBatch> batches) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_BATCHES_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("batches", batches);
        }

        public static ListBatchesResult decode(Decoder from) {
            int code = from.u8("code");
            List<OpenBatch> batches = from.list16("batches", 22, OpenBatch::decode);
            return new ListBatchesResult(code, batches);
        }
    }

    public record Browse(String queue, String fairnessKey, int parts, long ttlMs) implements Body {
        @Override
        public int opcode() {
            return Opcodes.BROWSE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.optionalString("fairness_key", fairnessKey);
            to.u16("parts", parts);
            to.u64("ttl_ms", ttlMs);
        }

        public static Browse decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.optionalString("fairness_key");
            int parts = from.u16("parts");
            long ttlMs = from.u64("ttl_ms");
            return new Browse(queue, fairnessKey, parts, ttlMs);
        }
    }

    public record BrowseResult(int code, String snapshot, long expiresAtMs, long messages, List<BrowseRange> ranges) implements Result {
        @Override
        public int opcode() {
            return Opcodes.BROWSE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("snapshot", snapshot);
            to.u64("expires_at_ms", expiresAtMs);
            to.u64("messages", messages);
            to.list16("ranges", ranges);
        }

        public static BrowseResult decode(Decoder from) {
            int code = from.u8("code");
            String snapshot = from.string("snapshot");
            long expiresAtMs = from.u64("expires_at_ms");
            long messages = from.u64("messages");
            List<BrowseRange> ranges = from.list16("ranges", 8, BrowseRange::decode);
            return new BrowseResult(code, snapshot, expiresAtMs, messages, ranges);
        }
    }

    public record BrowsePage(String snapshot, byte[] start, byte[] end, int states, long maxMessages, long maxBytes, int form) implements Body {
        @Override
        public int opcode() {
            return Opcodes.BROWSE_PAGE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("snapshot", snapshot);
            to.bytes("start", start);
            to.bytes("end", end);
            to.u8("states", states);
            to.u32("max_messages", maxMessages);
            to.u64("max_bytes", maxBytes);
            to.u8("form", form);
        }

        public static BrowsePage decode(Decoder from) {
            String snapshot = from.string("snapshot");
            byte[] start = from.bytes("start");
            byte[] end = from.bytes("end");
            int states = from.u8("states");
            long maxMessages = from.u32("max_messages");
            long maxBytes = from.u64("max_bytes");
            int form = from.u8("form");
            return new BrowsePage(snapshot, start, end, states, maxMessages, maxBytes, form);
        }
    }

    public record BrowsePageResult(int code, long messages, byte[] next, int form, byte[] body) implements Result {
        @Override
        public int opcode() {
            return Opcodes.BROWSE_PAGE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("messages", messages);
            to.bytes("next", next);
            to.u8("form", form);
            to.bytes("body", body);
        }

        public static BrowsePageResult decode(Decoder from) {
            int code = from.u8("code");
            long messages = from.u32("messages");
            byte[] next = from.bytes("next");
            int form = from.u8("form");
            byte[] body = from.bytes("body");
            return new BrowsePageResult(code, messages, next, form, body);
        }
    }

    public record BrowseClose(String snapshot) implements Body {
        @Override
        public int opcode() {
            return Opcodes.BROWSE_CLOSE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("snapshot", snapshot);
        }

        public static BrowseClose decode(Decoder from) {
            String snapshot = from.string("snapshot");
            return new BrowseClose(snapshot);
        }
    }

    public record BrowseCloseResult(int code) implements Result {
        @Override
        public int opcode() {
            return Opcodes.BROWSE_CLOSE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static BrowseCloseResult decode(Decoder from) {
            int code = from.u8("code");
            return new BrowseCloseResult(code);
        }
    }

    public record Extend(String queue, List<String> messageIds, long visibilityMs) implements Body {
        @Override
        public int opcode() {
            return Opcodes.EXTEND;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.strings("message_ids", messageIds);
            to.u64("visibility_ms", visibilityMs);
        }

        public static Extend decode(Decoder from) {
            String queue = from.string("queue");
            List<String> messageIds = from.strings("message_ids");
            long visibilityMs = from.u64("visibility_ms");
            return new Extend(queue, messageIds, visibilityMs);
        }
    }

    public record ExtendResult(int code, long visibilityMs, List<String> missing) implements Result {
        @Override
        public int opcode() {
            return Opcodes.EXTEND_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u64("visibility_ms", visibilityMs);
            to.strings("missing", missing);
        }

        public static ExtendResult decode(Decoder from) {
            int code = from.u8("code");
            long visibilityMs = from.u64("visibility_ms");
            List<String> missing = from.strings("missing");
            return new ExtendResult(code, visibilityMs, missing);
        }
    }

    public record Explain(String queue, String fairnessKey, String messageId, long keysMax) implements Body {
        @Override
        public int opcode() {
            return Opcodes.EXPLAIN;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.optionalString("fairness_key", fairnessKey);
            to.string("message_id", messageId);
            to.u32("keys_max", keysMax);
        }

        public static Explain decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.optionalString("fairness_key");
            String messageId = from.string("message_id");
            long keysMax = from.u32("keys_max");
            return new Explain(queue, fairnessKey, messageId, keysMax);
        }
    }

    public record ExplainResult(int code, byte[] document) implements Result {
        @Override
        public int opcode() {
            return Opcodes.EXPLAIN_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.bytes("document", document);
        }

        public static ExplainResult decode(Decoder from) {
            int code = from.u8("code");
            byte[] document = from.bytes("document");
            return new ExplainResult(code, document);
        }
    }

    public record PauseQueue(String queue, String reason) implements Body {
        @Override
        public int opcode() {
            return Opcodes.PAUSE_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("reason", reason);
        }

        public static PauseQueue decode(Decoder from) {
            String queue = from.string("queue");
            String reason = from.string("reason");
            return new PauseQueue(queue, reason);
        }
    }

    public record PauseQueueResult(int code) implements Result {
        @Override
        public int opcode() {
            return Opcodes.PAUSE_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static PauseQueueResult decode(Decoder from) {
            int code = from.u8("code");
            return new PauseQueueResult(code);
        }
    }

    public record ResumeQueue(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RESUME_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static ResumeQueue decode(Decoder from) {
            String queue = from.string("queue");
            return new ResumeQueue(queue);
        }
    }

    public record ResumeQueueResult(int code) implements Result {
        @Override
        public int opcode() {
            return Opcodes.RESUME_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static ResumeQueueResult decode(Decoder from) {
            int code = from.u8("code");
            return new ResumeQueueResult(code);
        }
    }

    public record PauseKey(String queue, String fairnessKey, String reason) implements Body {
        @Override
        public int opcode() {
            return Opcodes.PAUSE_KEY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("fairness_key", fairnessKey);
            to.string("reason", reason);
        }

        public static PauseKey decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.string("fairness_key");
            String reason = from.string("reason");
            return new PauseKey(queue, fairnessKey, reason);
        }
    }

    public record PauseKeyResult(int code) implements Result {
        @Override
        public int opcode() {
            return Opcodes.PAUSE_KEY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static PauseKeyResult decode(Decoder from) {
            int code = from.u8("code");
            return new PauseKeyResult(code);
        }
    }

    public record ResumeKey(String queue, String fairnessKey) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RESUME_KEY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("fairness_key", fairnessKey);
        }

        public static ResumeKey decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.string("fairness_key");
            return new ResumeKey(queue, fairnessKey);
        }
    }

    public record ResumeKeyResult(int code) implements Result {
        @Override
        public int opcode() {
            return Opcodes.RESUME_KEY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static ResumeKeyResult decode(Decoder from) {
            int code = from.u8("code");
            return new ResumeKeyResult(code);
        }
    }

    public record Purge(String queue, String fairnessKey) implements Body {
        @Override
        public int opcode() {
            return Opcodes.PURGE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.optionalString("fairness_key", fairnessKey);
        }

        public static Purge decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.optionalString("fairness_key");
            return new Purge(queue, fairnessKey);
        }
    }

    public record PurgeResult(int code, long purged) implements Result {
        @Override
        public int opcode() {
            return Opcodes.PURGE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u64("purged", purged);
        }

        public static PurgeResult decode(Decoder from) {
            int code = from.u8("code");
            long purged = from.u64("purged");
            return new PurgeResult(code, purged);
        }
    }

    public record GetLimits() implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_LIMITS;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static GetLimits decode(Decoder from) {
            return new GetLimits();
        }
    }

    public record GetLimitsResult(int code, List<LimitUse> limits) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_LIMITS_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("limits", limits);
        }

        public static GetLimitsResult decode(Decoder from) {
            int code = from.u8("code");
            List<LimitUse> limits = from.list16("limits", 26, LimitUse::decode);
            return new GetLimitsResult(code, limits);
        }
    }

    public record WhoAmI() implements Body {
        @Override
        public int opcode() {
            return Opcodes.WHO_AM_I;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static WhoAmI decode(Decoder from) {
            return new WhoAmI();
        }
    }

    public record WhoAmIResult(int code, String version, String form, boolean auth, String keyId, String name, long expiresAtMs, boolean isSuperadmin, List<Permission> permissions) implements Result {
        @Override
        public int opcode() {
            return Opcodes.WHO_AM_I_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("version", version);
            to.string("form", form);
            to.bool("auth", auth);
            to.string("key_id", keyId);
            to.string("name", name);
            to.u64("expires_at_ms", expiresAtMs);
            to.bool("is_superadmin", isSuperadmin);
            to.list16("permissions", permissions);
        }

        public static WhoAmIResult decode(Decoder from) {
            int code = from.u8("code");
            String version = from.string("version");
            String form = from.string("form");
            boolean auth = from.bool("auth");
            String keyId = from.string("key_id");
            String name = from.string("name");
            long expiresAtMs = from.u64("expires_at_ms");
            boolean isSuperadmin = from.bool("is_superadmin");
            List<Permission> permissions = from.list16("permissions", 4, Permission::decode);
            return new WhoAmIResult(code, version, form, auth, keyId, name, expiresAtMs, isSuperadmin, permissions);
        }
    }

    public record ListBackupsResult(int code, String target, List<Backup> backups) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_BACKUPS_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("target", target);
            to.list16("backups", backups);
        }

        public static ListBackupsResult decode(Decoder from) {
            int code = from.u8("code");
            String target = from.string("target");
            List<Backup> backups = from.list16("backups", 42, Backup::decode);
            return new ListBackupsResult(code, target, backups);
        }
    }

    public record ListBackups() implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_BACKUPS;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static ListBackups decode(Decoder from) {
            return new ListBackups();
        }
    }

    public record CreateBackupResult(int code, String name) implements Result {
        @Override
        public int opcode() {
            return Opcodes.CREATE_BACKUP_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("name", name);
        }

        public static CreateBackupResult decode(Decoder from) {
            int code = from.u8("code");
            String name = from.string("name");
            return new CreateBackupResult(code, name);
        }
    }

    public record CreateBackup() implements Body {
        @Override
        public int opcode() {
            return Opcodes.CREATE_BACKUP;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static CreateBackup decode(Decoder from) {
            return new CreateBackup();
        }
    }

    public record GetReclassifyResult(int code, byte[] document, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_RECLASSIFY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.bytes("document", document);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static GetReclassifyResult decode(Decoder from) {
            int code = from.u8("code");
            byte[] document = from.bytes("document");
            String message = from.atEnd() ? null : from.string("message");
            return new GetReclassifyResult(code, document, message);
        }
    }

    public record GetReclassify(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_RECLASSIFY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static GetReclassify decode(Decoder from) {
            String queue = from.string("queue");
            return new GetReclassify(queue);
        }
    }

    public record ReclassifyResult(int code, byte[] document, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.RECLASSIFY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.bytes("document", document);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ReclassifyResult decode(Decoder from) {
            int code = from.u8("code");
            byte[] document = from.bytes("document");
            String message = from.atEnd() ? null : from.string("message");
            return new ReclassifyResult(code, document, message);
        }
    }

    public record Reclassify(String queue, long rate, boolean dryRun, boolean cancel) implements Body {
        @Override
        public int opcode() {
            return Opcodes.RECLASSIFY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.u32("rate", rate);
            to.bool("dry_run", dryRun);
            to.bool("cancel", cancel);
        }

        public static Reclassify decode(Decoder from) {
            String queue = from.string("queue");
            long rate = from.u32("rate");
            boolean dryRun = from.bool("dry_run");
            boolean cancel = from.bool("cancel");
            return new Reclassify(queue, rate, dryRun, cancel);
        }
    }

    public record ListOverridesResult(int code, byte[] document, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_OVERRIDES_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.bytes("document", document);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ListOverridesResult decode(Decoder from) {
            int code = from.u8("code");
            byte[] document = from.bytes("document");
            String message = from.atEnd() ? null : from.string("message");
            return new ListOverridesResult(code, document, message);
        }
    }

    public record ListOverrides(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_OVERRIDES;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static ListOverrides decode(Decoder from) {
            String queue = from.string("queue");
            return new ListOverrides(queue);
        }
    }

    public record SetOverrideResult(int code, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.SET_OVERRIDE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static SetOverrideResult decode(Decoder from) {
            int code = from.u8("code");
            String message = from.atEnd() ? null : from.string("message");
            return new SetOverrideResult(code, message);
        }
    }

    public record SetOverride(String queue, String fairnessKey, Map<String, String> settings, boolean clear, String note) implements Body {
        @Override
        public int opcode() {
            return Opcodes.SET_OVERRIDE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("fairness_key", fairnessKey);
            to.map("settings", settings);
            to.bool("clear", clear);
            to.string("note", note);
        }

        public static SetOverride decode(Decoder from) {
            String queue = from.string("queue");
            String fairnessKey = from.string("fairness_key");
            Map<String, String> settings = from.map("settings");
            boolean clear = from.bool("clear");
            String note = from.string("note");
            return new SetOverride(queue, fairnessKey, settings, clear, note);
        }
    }

    public record ListVersionsResult(int code, List<QueueVersion> versions, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_VERSIONS_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("versions", versions);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ListVersionsResult decode(Decoder from) {
            int code = from.u8("code");
            List<QueueVersion> versions = from.list16("versions", 18, QueueVersion::decode);
            String message = from.atEnd() ? null : from.string("message");
            return new ListVersionsResult(code, versions, message);
        }
    }

    public record ListVersions(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_VERSIONS;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static ListVersions decode(Decoder from) {
            String queue = from.string("queue");
            return new ListVersions(queue);
        }
    }

    public record GetQueueResult(int code, List<ConfigEntry> settings, long version, long atMs, String who, String note, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("settings", settings);
            to.u32("version", version);
            to.u64("at_ms", atMs);
            to.string("who", who);
            to.string("note", note);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static GetQueueResult decode(Decoder from) {
            int code = from.u8("code");
            List<ConfigEntry> settings = from.list16("settings", 4, ConfigEntry::decode);
            long version = from.u32("version");
            long atMs = from.u64("at_ms");
            String who = from.string("who");
            String note = from.string("note");
            String message = from.atEnd() ? null : from.string("message");
            return new GetQueueResult(code, settings, version, atMs, who, note, message);
        }
    }

    public record GetQueue(String queue, long version) implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.u32("version", version);
        }

        public static GetQueue decode(Decoder from) {
            String queue = from.string("queue");
            long version = from.u32("version");
            return new GetQueue(queue, version);
        }
    }

    public record UpdateQueueResult(int code, long version, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.UPDATE_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("version", version);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static UpdateQueueResult decode(Decoder from) {
            int code = from.u8("code");
            long version = from.u32("version");
            String message = from.atEnd() ? null : from.string("message");
            return new UpdateQueueResult(code, version, message);
        }
    }

    public record UpdateQueue(String queue, Map<String, String> settings, long expectedVersion, long fromVersion, String note, boolean unrehearsed) implements Body {
        @Override
        public int opcode() {
            return Opcodes.UPDATE_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.map("settings", settings);
            to.u32("expected_version", expectedVersion);
            to.u32("from_version", fromVersion);
            to.string("note", note);
            to.bool("unrehearsed", unrehearsed);
        }

        public static UpdateQueue decode(Decoder from) {
            String queue = from.string("queue");
            Map<String, String> settings = from.map("settings");
            long expectedVersion = from.u32("expected_version");
            long fromVersion = from.u32("from_version");
            String note = from.string("note");
            boolean unrehearsed = from.bool("unrehearsed");
            return new UpdateQueue(queue, settings, expectedVersion, fromVersion, note, unrehearsed);
        }
    }

    public record GetAclResult(int code, String keyId, boolean isSuperadmin, List<Permission> permissions, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_ACL_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("key_id", keyId);
            to.bool("is_superadmin", isSuperadmin);
            to.list16("permissions", permissions);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static GetAclResult decode(Decoder from) {
            int code = from.u8("code");
            String keyId = from.string("key_id");
            boolean isSuperadmin = from.bool("is_superadmin");
            List<Permission> permissions = from.list16("permissions", 4, Permission::decode);
            String message = from.atEnd() ? null : from.string("message");
            return new GetAclResult(code, keyId, isSuperadmin, permissions, message);
        }
    }

    public record GetAcl(String keyId) implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_ACL;
        }

        @Override
        public void encode(Encoder to) {
            to.string("key_id", keyId);
        }

        public static GetAcl decode(Decoder from) {
            String keyId = from.string("key_id");
            return new GetAcl(keyId);
        }
    }

    public record SetAclResult(int code, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.SET_ACL_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static SetAclResult decode(Decoder from) {
            int code = from.u8("code");
            String message = from.atEnd() ? null : from.string("message");
            return new SetAclResult(code, message);
        }
    }

    public record SetAcl(String keyId, List<Permission> permissions) implements Body {
        @Override
        public int opcode() {
            return Opcodes.SET_ACL;
        }

        @Override
        public void encode(Encoder to) {
            to.string("key_id", keyId);
            to.list16("permissions", permissions);
        }

        public static SetAcl decode(Decoder from) {
            String keyId = from.string("key_id");
            List<Permission> permissions = from.list16("permissions", 4, Permission::decode);
            return new SetAcl(keyId, permissions);
        }
    }

    public record ListApiKeysResult(int code, List<ApiKeySummary> keys, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_API_KEYS_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("keys", keys);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ListApiKeysResult decode(Decoder from) {
            int code = from.u8("code");
            List<ApiKeySummary> keys = from.list16("keys", 21, ApiKeySummary::decode);
            String message = from.atEnd() ? null : from.string("message");
            return new ListApiKeysResult(code, keys, message);
        }
    }

    public record ListApiKeys() implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_API_KEYS;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static ListApiKeys decode(Decoder from) {
            return new ListApiKeys();
        }
    }

    public record RevokeApiKeyResult(int code, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.REVOKE_API_KEY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static RevokeApiKeyResult decode(Decoder from) {
            int code = from.u8("code");
            String message = from.atEnd() ? null : from.string("message");
            return new RevokeApiKeyResult(code, message);
        }
    }

    public record RevokeApiKey(String keyId) implements Body {
        @Override
        public int opcode() {
            return Opcodes.REVOKE_API_KEY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("key_id", keyId);
        }

        public static RevokeApiKey decode(Decoder from) {
            String keyId = from.string("key_id");
            return new RevokeApiKey(keyId);
        }
    }

    public record CreateApiKeyResult(int code, String keyId, String key, boolean isSuperadmin, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.CREATE_API_KEY_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("key_id", keyId);
            to.string("key", key);
            to.bool("is_superadmin", isSuperadmin);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static CreateApiKeyResult decode(Decoder from) {
            int code = from.u8("code");
            String keyId = from.string("key_id");
            String key = from.string("key");
            boolean isSuperadmin = from.bool("is_superadmin");
            String message = from.atEnd() ? null : from.string("message");
            return new CreateApiKeyResult(code, keyId, key, isSuperadmin, message);
        }
    }

    public record CreateApiKey(String name, long expiresAtMs, boolean isSuperadmin) implements Body {
        @Override
        public int opcode() {
            return Opcodes.CREATE_API_KEY;
        }

        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.u64("expires_at_ms", expiresAtMs);
            to.bool("is_superadmin", isSuperadmin);
        }

        public static CreateApiKey decode(Decoder from) {
            String name = from.string("name");
            long expiresAtMs = from.u64("expires_at_ms");
            boolean isSuperadmin = from.bool("is_superadmin");
            return new CreateApiKey(name, expiresAtMs, isSuperadmin);
        }
    }

    public record RedriveResult(int code, long redriven) implements Result {
        @Override
        public int opcode() {
            return Opcodes.REDRIVE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u64("redriven", redriven);
        }

        public static RedriveResult decode(Decoder from) {
            int code = from.u8("code");
            long redriven = from.u64("redriven");
            return new RedriveResult(code, redriven);
        }
    }

    public record Redrive(String dlqQueue, long limit) implements Body {
        @Override
        public int opcode() {
            return Opcodes.REDRIVE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("dlq_queue", dlqQueue);
            to.u64("limit", limit);
        }

        public static Redrive decode(Decoder from) {
            String dlqQueue = from.string("dlq_queue");
            long limit = from.u64("limit");
            return new Redrive(dlqQueue, limit);
        }
    }

    public record ListConfigResult(int code, List<ConfigEntry> entries, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_CONFIG_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.list16("entries", entries);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ListConfigResult decode(Decoder from) {
            int code = from.u8("code");
            List<ConfigEntry> entries = from.list16("entries", 4, ConfigEntry::decode);
            String message = from.atEnd() ? null : from.string("message");
            return new ListConfigResult(code, entries, message);
        }
    }

    public record ListConfig(String prefix) implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_CONFIG;
        }

        @Override
        public void encode(Encoder to) {
            to.string("prefix", prefix);
        }

        public static ListConfig decode(Decoder from) {
            String prefix = from.string("prefix");
            return new ListConfig(prefix);
        }
    }

    public record GetConfigResult(int code, String value, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_CONFIG_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("value", value);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static GetConfigResult decode(Decoder from) {
            int code = from.u8("code");
            String value = from.string("value");
            String message = from.atEnd() ? null : from.string("message");
            return new GetConfigResult(code, value, message);
        }
    }

    public record GetConfig(String key) implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_CONFIG;
        }

        @Override
        public void encode(Encoder to) {
            to.string("key", key);
        }

        public static GetConfig decode(Decoder from) {
            String key = from.string("key");
            return new GetConfig(key);
        }
    }

    public record SetConfigResult(int code, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.SET_CONFIG_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static SetConfigResult decode(Decoder from) {
            int code = from.u8("code");
            String message = from.atEnd() ? null : from.string("message");
            return new SetConfigResult(code, message);
        }
    }

    public record SetConfig(String key, String value) implements Body {
        @Override
        public int opcode() {
            return Opcodes.SET_CONFIG;
        }

        @Override
        public void encode(Encoder to) {
            to.string("key", key);
            to.string("value", value);
        }

        public static SetConfig decode(Decoder from) {
            String key = from.string("key");
            String value = from.string("value");
            return new SetConfig(key, value);
        }
    }

    public record ListQueuesResult(int code, long clusterNodeCount, List<QueueSummary> queues, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.LIST_QUEUES_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u32("cluster_node_count", clusterNodeCount);
            to.list16("queues", queues);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static ListQueuesResult decode(Decoder from) {
            int code = from.u8("code");
            long clusterNodeCount = from.u32("cluster_node_count");
            List<QueueSummary> queues = from.list16("queues", 30, QueueSummary::decode);
            String message = from.atEnd() ? null : from.string("message");
            return new ListQueuesResult(code, clusterNodeCount, queues, message);
        }
    }

    public record ListQueues() implements Body {
        @Override
        public int opcode() {
            return Opcodes.LIST_QUEUES;
        }

        @Override
        public void encode(Encoder to) {
        }

        public static ListQueues decode(Decoder from) {
            return new ListQueues();
        }
    }

    public record GetStatsResult(int code, long depth, long inFlight, long activeFairnessKeys, long activeConsumers, long quantum, long leaderNodeId, long replicationCount, List<FairnessKeyStats> fairnessKeys, List<ThrottleKeyStats> throttleKeys, String cost) implements Result {
        @Override
        public int opcode() {
            return Opcodes.GET_STATS_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.u64("depth", depth);
            to.u64("in_flight", inFlight);
            to.u64("active_fairness_keys", activeFairnessKeys);
            to.u32("active_consumers", activeConsumers);
            to.u32("quantum", quantum);
            to.u64("leader_node_id", leaderNodeId);
            to.u32("replication_count", replicationCount);
            to.list16("fairness_keys", fairnessKeys);
            to.list16("throttle_keys", throttleKeys);
            if (cost != null) {
                to.string("cost", cost);
            }
        }

        public static GetStatsResult decode(Decoder from) {
            int code = from.u8("code");
            long depth = from.u64("depth");
            long inFlight = from.u64("in_flight");
            long activeFairnessKeys = from.u64("active_fairness_keys");
            long activeConsumers = from.u32("active_consumers");
            long quantum = from.u32("quantum");
            long leaderNodeId = from.u64("leader_node_id");
            long replicationCount = from.u32("replication_count");
            List<FairnessKeyStats> fairnessKeys = from.list16("fairness_keys", 22, FairnessKeyStats::decode);
            List<ThrottleKeyStats> throttleKeys = from.list16("throttle_keys", 26, ThrottleKeyStats::decode);
            String cost = from.atEnd() ? null : from.string("cost");
            return new GetStatsResult(code, depth, inFlight, activeFairnessKeys, activeConsumers, quantum, leaderNodeId, replicationCount, fairnessKeys, throttleKeys, cost);
        }
    }

    public record GetStats(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.GET_STATS;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static GetStats decode(Decoder from) {
            String queue = from.string("queue");
            return new GetStats(queue);
        }
    }

    public record DeleteQueueResult(int code, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.DELETE_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static DeleteQueueResult decode(Decoder from) {
            int code = from.u8("code");
            String message = from.atEnd() ? null : from.string("message");
            return new DeleteQueueResult(code, message);
        }
    }

    public record DeleteQueue(String queue) implements Body {
        @Override
        public int opcode() {
            return Opcodes.DELETE_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
        }

        public static DeleteQueue decode(Decoder from) {
            String queue = from.string("queue");
            return new DeleteQueue(queue);
        }
    }

    public record CreateQueueResult(int code, String queueId, String message) implements Result {
        @Override
        public int opcode() {
            return Opcodes.CREATE_QUEUE_RESULT;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("queue_id", queueId);
            if (message != null) {
                to.string("message", message);
            }
        }

        public static CreateQueueResult decode(Decoder from) {
            int code = from.u8("code");
            String queueId = from.string("queue_id");
            String message = from.atEnd() ? null : from.string("message");
            return new CreateQueueResult(code, queueId, message);
        }
    }

    public record CreateQueue(String name, String onEnqueue, String onFailure, long visibilityTimeoutMs, Long maxAttempts, String cost) implements Body {
        @Override
        public int opcode() {
            return Opcodes.CREATE_QUEUE;
        }

        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.optionalString("on_enqueue", onEnqueue);
            to.optionalString("on_failure", onFailure);
            to.u64("visibility_timeout_ms", visibilityTimeoutMs);
            if (maxAttempts != null) {
                to.u32("max_attempts", maxAttempts);
            }
            if (cost != null) {
                to.string("cost", cost);
            }
        }

        public static CreateQueue decode(Decoder from) {
            String name = from.string("name");
            String onEnqueue = from.optionalString("on_enqueue");
            String onFailure = from.optionalString("on_failure");
            long visibilityTimeoutMs = from.u64("visibility_timeout_ms");
            Long maxAttempts = from.atEnd() ? null : from.u32("max_attempts");
            String cost = from.atEnd() ? null : from.string("cost");
            return new CreateQueue(name, onEnqueue, onFailure, visibilityTimeoutMs, maxAttempts, cost);
        }
    }

    public record Error(int code, String message, Map<String, String> metadata) implements Result {
        @Override
        public int opcode() {
            return Opcodes.ERROR;
        }

        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("message", message);
            to.map("metadata", metadata);
        }

        public static Error decode(Decoder from) {
            int code = from.u8("code");
            String message = from.string("message");
            Map<String, String> metadata = from.map("metadata");
            return new Error(code, message, metadata);
        }
    }

    public record EnqueueItem(String queue, Map<String, String> headers, byte[] payload) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.map("headers", headers);
            to.bytes("payload", payload);
        }

        public static EnqueueItem decode(Decoder from) {
            String queue = from.string("queue");
            Map<String, String> headers = from.map("headers");
            byte[] payload = from.bytes("payload");
            return new EnqueueItem(queue, headers, payload);
        }
    }

    public record EnqueueResultItem(int code, String messageId) implements Part {
        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("message_id", messageId);
        }

        public static EnqueueResultItem decode(Decoder from) {
            int code = from.u8("code");
            String messageId = from.string("message_id");
            return new EnqueueResultItem(code, messageId);
        }
    }

    public record DeliveryItem(String id, String queue, Map<String, String> headers, byte[] payload, String fairnessKey, long weight, List<String> throttleKeys, long attemptCount, long enqueuedAtMs, long leasedAtMs) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("id", id);
            to.string("queue", queue);
            to.map("headers", headers);
            to.bytes("payload", payload);
            to.string("fairness_key", fairnessKey);
            to.u32("weight", weight);
            to.strings("throttle_keys", throttleKeys);
            to.u32("attempt_count", attemptCount);
            to.u64("enqueued_at_ms", enqueuedAtMs);
            to.u64("leased_at_ms", leasedAtMs);
        }

        public static DeliveryItem decode(Decoder from) {
            String id = from.string("id");
            String queue = from.string("queue");
            Map<String, String> headers = from.map("headers");
            byte[] payload = from.bytes("payload");
            String fairnessKey = from.string("fairness_key");
            long weight = from.u32("weight");
            List<String> throttleKeys = from.strings("throttle_keys");
            long attemptCount = from.u32("attempt_count");
            long enqueuedAtMs = from.u64("enqueued_at_ms");
            long leasedAtMs = from.u64("leased_at_ms");
            return new DeliveryItem(id, queue, headers, payload, fairnessKey, weight, throttleKeys, attemptCount, enqueuedAtMs, leasedAtMs);
        }
    }

    public record AckItem(String queue, String id) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("id", id);
        }

        public static AckItem decode(Decoder from) {
            String queue = from.string("queue");
            String id = from.string("id");
            return new AckItem(queue, id);
        }
    }

    public record CodeItem(int code) implements Part {
        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static CodeItem decode(Decoder from) {
            int code = from.u8("code");
            return new CodeItem(code);
        }
    }

    public record NackItem(String queue, String id, String error) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("id", id);
            to.string("error", error);
        }

        public static NackItem decode(Decoder from) {
            String queue = from.string("queue");
            String id = from.string("id");
            String error = from.string("error");
            return new NackItem(queue, id, error);
        }
    }

    public record EnqueueWithItem(String queue, Map<String, String> headers, byte[] payload, long delayMs, String idempotencyKey, String fairnessKey, long weight, List<String> throttleKeys) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.map("headers", headers);
            to.bytes("payload", payload);
            to.u64("delay_ms", delayMs);
            to.string("idempotency_key", idempotencyKey);
            to.string("fairness_key", fairnessKey);
            to.u32("weight", weight);
            to.strings("throttle_keys", throttleKeys);
        }

        public static EnqueueWithItem decode(Decoder from) {
            String queue = from.string("queue");
            Map<String, String> headers = from.map("headers");
            byte[] payload = from.bytes("payload");
            long delayMs = from.u64("delay_ms");
            String idempotencyKey = from.string("idempotency_key");
            String fairnessKey = from.string("fairness_key");
            long weight = from.u32("weight");
            List<String> throttleKeys = from.strings("throttle_keys");
            return new EnqueueWithItem(queue, headers, payload, delayMs, idempotencyKey, fairnessKey, weight, throttleKeys);
        }
    }

    public record EnqueueWithResultItem(int code, String messageId, boolean duplicate) implements Part {
        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
            to.string("message_id", messageId);
            to.bool("duplicate", duplicate);
        }

        public static EnqueueWithResultItem decode(Decoder from) {
            int code = from.u8("code");
            String messageId = from.string("message_id");
            boolean duplicate = from.bool("duplicate");
            return new EnqueueWithResultItem(code, messageId, duplicate);
        }
    }

    public record ReleaseItem(String queue, String id) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("queue", queue);
            to.string("id", id);
        }

        public static ReleaseItem decode(Decoder from) {
            String queue = from.string("queue");
            String id = from.string("id");
            return new ReleaseItem(queue, id);
        }
    }

    public record ReleaseCode(int code) implements Part {
        @Override
        public void encode(Encoder to) {
            to.u8("code", code);
        }

        public static ReleaseCode decode(Decoder from) {
            int code = from.u8("code");
            return new ReleaseCode(code);
        }
    }

    public record OpenBatch(String name, long messages, long leasedAtMs, long expiresAtMs) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.u32("messages", messages);
            to.u64("leased_at_ms", leasedAtMs);
            to.u64("expires_at_ms", expiresAtMs);
        }

        public static OpenBatch decode(Decoder from) {
            String name = from.string("name");
            long messages = from.u32("messages");
            long leasedAtMs = from.u64("leased_at_ms");
            long expiresAtMs = from.u64("expires_at_ms");
            return new OpenBatch(name, messages, leasedAtMs, expiresAtMs);
        }
    }

    public record BrowseRange(byte[] start, byte[] end) implements Part {
        @Override
        public void encode(Encoder to) {
            to.bytes("start", start);
            to.bytes("end", end);
        }

        public static BrowseRange decode(Decoder from) {
            byte[] start = from.bytes("start");
            byte[] end = from.bytes("end");
            return new BrowseRange(start, end);
        }
    }

    public record FairnessKeyStats(String key, long pending, long deficit, long weight) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("key", key);
            to.u64("pending", pending);
            to.i64("deficit", deficit);
            to.u32("weight", weight);
        }

        public static FairnessKeyStats decode(Decoder from) {
            String key = from.string("key");
            long pending = from.u64("pending");
            long deficit = from.i64("deficit");
            long weight = from.u32("weight");
            return new FairnessKeyStats(key, pending, deficit, weight);
        }
    }

    public record ThrottleKeyStats(String key, double tokens, double ratePerSecond, double burst) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("key", key);
            to.f64("tokens", tokens);
            to.f64("rate_per_second", ratePerSecond);
            to.f64("burst", burst);
        }

        public static ThrottleKeyStats decode(Decoder from) {
            String key = from.string("key");
            double tokens = from.f64("tokens");
            double ratePerSecond = from.f64("rate_per_second");
            double burst = from.f64("burst");
            return new ThrottleKeyStats(key, tokens, ratePerSecond, burst);
        }
    }

    public record QueueSummary(String name, long depth, long inFlight, long activeConsumers, long leaderNodeId) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.u64("depth", depth);
            to.u64("in_flight", inFlight);
            to.u32("active_consumers", activeConsumers);
            to.u64("leader_node_id", leaderNodeId);
        }

        public static QueueSummary decode(Decoder from) {
            String name = from.string("name");
            long depth = from.u64("depth");
            long inFlight = from.u64("in_flight");
            long activeConsumers = from.u32("active_consumers");
            long leaderNodeId = from.u64("leader_node_id");
            return new QueueSummary(name, depth, inFlight, activeConsumers, leaderNodeId);
        }
    }

    public record ConfigEntry(String key, String value) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("key", key);
            to.string("value", value);
        }

        public static ConfigEntry decode(Decoder from) {
            String key = from.string("key");
            String value = from.string("value");
            return new ConfigEntry(key, value);
        }
    }

    public record ApiKeySummary(String keyId, String name, long createdAtMs, long expiresAtMs, boolean isSuperadmin) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("key_id", keyId);
            to.string("name", name);
            to.u64("created_at_ms", createdAtMs);
            to.u64("expires_at_ms", expiresAtMs);
            to.bool("is_superadmin", isSuperadmin);
        }

        public static ApiKeySummary decode(Decoder from) {
            String keyId = from.string("key_id");
            String name = from.string("name");
            long createdAtMs = from.u64("created_at_ms");
            long expiresAtMs = from.u64("expires_at_ms");
            boolean isSuperadmin = from.bool("is_superadmin");
            return new ApiKeySummary(keyId, name, createdAtMs, expiresAtMs, isSuperadmin);
        }
    }

    public record Permission(String kind, String pattern) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("kind", kind);
            to.string("pattern", pattern);
        }

        public static Permission decode(Decoder from) {
            String kind = from.string("kind");
            String pattern = from.string("pattern");
            return new Permission(kind, pattern);
        }
    }

    public record QueueVersion(long version, long atMs, String who, String note, List<String> changed) implements Part {
        @Override
        public void encode(Encoder to) {
            to.u32("version", version);
            to.u64("at_ms", atMs);
            to.string("who", who);
            to.string("note", note);
            to.strings("changed", changed);
        }

        public static QueueVersion decode(Decoder from) {
            long version = from.u32("version");
            long atMs = from.u64("at_ms");
            String who = from.string("who");
            String note = from.string("note");
            List<String> changed = from.strings("changed");
            return new QueueVersion(version, atMs, who, note, changed);
        }
    }

    public record Backup(String name, String state, long atMs, long files, long bytes, long newBytes, long doneBytes, String error) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.string("state", state);
            to.u64("at_ms", atMs);
            to.u32("files", files);
            to.u64("bytes", bytes);
            to.u64("new_bytes", newBytes);
            to.u64("done_bytes", doneBytes);
            to.string("error", error);
        }

        public static Backup decode(Decoder from) {
            String name = from.string("name");
            String state = from.string("state");
            long atMs = from.u64("at_ms");
            long files = from.u32("files");
            long bytes = from.u64("bytes");
            long newBytes = from.u64("new_bytes");
            long doneBytes = from.u64("done_bytes");
            String error = from.string("error");
            return new Backup(name, state, atMs, files, bytes, newBytes, doneBytes, error);
        }
    }

    public record LimitUse(String name, long used, long max, long reached) implements Part {
        @Override
        public void encode(Encoder to) {
            to.string("name", name);
            to.u64("used", used);
            to.u64("max", max);
            to.u64("reached", reached);
        }

        public static LimitUse decode(Decoder from) {
            String name = from.string("name");
            long used = from.u64("used");
            long max = from.u64("max");
            long reached = from.u64("reached");
            return new LimitUse(name, used, max, reached);
        }
    }
}
