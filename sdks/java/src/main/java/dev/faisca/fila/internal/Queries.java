package dev.faisca.fila.internal;

import dev.faisca.fila.Acl;
import dev.faisca.fila.ApiKey;
import dev.faisca.fila.ApiKeySummary;
import dev.faisca.fila.Permission;
import dev.faisca.fila.QueueOptions;
import dev.faisca.fila.QueueSettings;
import dev.faisca.fila.QueueStats;
import dev.faisca.fila.QueueSummary;
import dev.faisca.fila.QueueUpdate;
import dev.faisca.fila.QueueVersion;
import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Body;
import dev.faisca.fila.internal.wire.Result;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** The administrative calls: what is sent, what comes back. Shared by the blocking and the async client. */
public final class Queries {
    private Queries() {}

    public static Query<String> createQueue(String name, QueueOptions options) {
        boolean plain = options.cost().equals("messages");
        Body body = new Bodies.CreateQueue(
                name,
                options.onEnqueue(),
                options.onFailure(),
                millis(options.visibilityTimeout()),
                plain && options.maxAttempts() == 0 ? null : (long) options.maxAttempts(),
                plain ? null : options.cost());
        return onQueue("create", name, false, body, r -> ((Bodies.CreateQueueResult) r).queueId());
    }

    public static Query<Long> updateQueue(String queue, QueueUpdate update) {
        Body body = new Bodies.UpdateQueue(
                queue,
                update.settings(),
                update.expectedVersion(),
                update.fromVersion(),
                update.note(),
                update.unrehearsed());
        return onQueue("update", queue, false, body, r -> ((Bodies.UpdateQueueResult) r).version());
    }

    public static Query<QueueSettings> getQueue(String queue, long version) {
        return onQueue("settings of", queue, true, new Bodies.GetQueue(queue, version), r -> {
            Bodies.GetQueueResult found = (Bodies.GetQueueResult) r;
            Map<String, String> settings = new LinkedHashMap<>();
            found.settings().forEach(one -> settings.put(one.key(), one.value()));
            return new QueueSettings(
                    settings, found.version(), Instant.ofEpochMilli(found.atMs()), found.who(), found.note());
        });
    }

    public static Query<List<QueueVersion>> listVersions(String queue) {
        return onQueue("versions of", queue, true, new Bodies.ListVersions(queue),
                r -> ((Bodies.ListVersionsResult) r).versions().stream()
                        .map(one -> new QueueVersion(
                                one.version(),
                                Instant.ofEpochMilli(one.atMs()),
                                one.who(),
                                one.note(),
                                one.changed()))
                        .toList());
    }

    public static Query<Void> deleteQueue(String queue) {
        return onQueue("delete", queue, false, new Bodies.DeleteQueue(queue), r -> null);
    }

    public static Query<List<QueueSummary>> listQueues() {
        return new Query<>("list queues", "", "", true, new Bodies.ListQueues(),
                r -> ((Bodies.ListQueuesResult) r).queues().stream()
                        .map(q -> new QueueSummary(
                                q.name(), q.depth(), q.inFlight(), q.activeConsumers(), q.leaderNodeId()))
                        .toList());
    }

    public static Query<QueueStats> getStats(String queue) {
        return onQueue("stats of", queue, true, new Bodies.GetStats(queue), r -> {
            Bodies.GetStatsResult stats = (Bodies.GetStatsResult) r;
            return new QueueStats(
                    stats.depth(),
                    stats.inFlight(),
                    stats.activeFairnessKeys(),
                    stats.activeConsumers(),
                    stats.quantum(),
                    stats.leaderNodeId(),
                    stats.replicationCount(),
                    stats.fairnessKeys().stream()
                            .map(k -> new QueueStats.FairnessKey(k.key(), k.pending(), k.deficit(), k.weight()))
                            .toList(),
                    stats.throttleKeys().stream()
                            .map(k -> new QueueStats.ThrottleKey(k.key(), k.tokens(), k.ratePerSecond(), k.burst()))
                            .toList());
        });
    }

    public static Query<Void> setConfig(String key, String value) {
        return new Query<>("set config \"" + key + "\"", "", "config key \"" + key + "\"", false,
                new Bodies.SetConfig(key, value), r -> null);
    }

    public static Query<Optional<String>> getConfig(String key) {
        return new Query<>("get config \"" + key + "\"", "", "config key \"" + key + "\"", true,
                new Bodies.GetConfig(key),
                r -> Optional.of(((Bodies.GetConfigResult) r).value()).filter(value -> !value.isEmpty()));
    }

    public static Query<Map<String, String>> listConfig(String prefix) {
        return new Query<>("list config", "", "", true, new Bodies.ListConfig(prefix), r -> {
            Map<String, String> entries = new LinkedHashMap<>();
            ((Bodies.ListConfigResult) r).entries().forEach(entry -> entries.put(entry.key(), entry.value()));
            return entries;
        });
    }

    public static Query<Long> redrive(String dlqQueue, long limit) {
        return onQueue("redrive", dlqQueue, false, new Bodies.Redrive(dlqQueue, limit),
                r -> ((Bodies.RedriveResult) r).redriven());
    }

    /** Null: the queue's keys that wait longest, instead of one key or message. */
    public static Query<String> explain(String queue, String fairnessKey, String messageId, long keysMax) {
        Body body = new Bodies.Explain(queue, fairnessKey, messageId == null ? "" : messageId, keysMax);
        return onQueue("explain", queue, true, body,
                r -> new String(((Bodies.ExplainResult) r).document(), StandardCharsets.UTF_8));
    }

    public static Query<Void> pauseQueue(String queue, String reason) {
        return onQueue("pause", queue, false, new Bodies.PauseQueue(queue, reason), r -> null);
    }

    public static Query<Void> resumeQueue(String queue) {
        return onQueue("resume", queue, false, new Bodies.ResumeQueue(queue), r -> null);
    }

    public static Query<Void> pauseKey(String queue, String fairnessKey, String reason) {
        return onQueue("pause key \"" + fairnessKey + "\" of", queue, false,
                new Bodies.PauseKey(queue, fairnessKey, reason), r -> null);
    }

    public static Query<Void> resumeKey(String queue, String fairnessKey) {
        return onQueue("resume key \"" + fairnessKey + "\" of", queue, false,
                new Bodies.ResumeKey(queue, fairnessKey), r -> null);
    }

    public static Query<Long> purge(String queue, String fairnessKey) {
        return onQueue("purge", queue, false, new Bodies.Purge(queue, fairnessKey),
                r -> ((Bodies.PurgeResult) r).purged());
    }

    public static Query<ApiKey> createApiKey(String name, Instant expiresAt, boolean superadmin) {
        long expires = expiresAt == null ? 0 : expiresAt.toEpochMilli();
        return onKey("create", name, false, new Bodies.CreateApiKey(name, expires, superadmin), r -> {
            Bodies.CreateApiKeyResult key = (Bodies.CreateApiKeyResult) r;
            return new ApiKey(key.keyId(), key.key(), key.isSuperadmin());
        });
    }

    public static Query<Void> revokeApiKey(String keyId) {
        return onKey("revoke", keyId, false, new Bodies.RevokeApiKey(keyId), r -> null);
    }

    public static Query<List<ApiKeySummary>> listApiKeys() {
        return new Query<>("list API keys", "", "", true, new Bodies.ListApiKeys(),
                r -> ((Bodies.ListApiKeysResult) r).keys().stream()
                        .map(key -> new ApiKeySummary(
                                key.keyId(),
                                key.name(),
                                Instant.ofEpochMilli(key.createdAtMs()),
                                key.expiresAtMs() == 0
                                        ? Optional.empty()
                                        : Optional.of(Instant.ofEpochMilli(key.expiresAtMs())),
                                key.isSuperadmin()))
                        .toList());
    }

    public static Query<Void> setAcl(String keyId, List<Permission> permissions) {
        List<Bodies.Permission> granted =
                permissions.stream().map(p -> new Bodies.Permission(p.kind(), p.pattern())).toList();
        return onKey("set ACL of", keyId, false, new Bodies.SetAcl(keyId, granted), r -> null);
    }

    public static Query<Acl> getAcl(String keyId) {
        return onKey("ACL of", keyId, true, new Bodies.GetAcl(keyId), r -> {
            Bodies.GetAclResult acl = (Bodies.GetAclResult) r;
            return new Acl(acl.keyId(), acl.isSuperadmin(), acl.permissions().stream()
                    .map(p -> new Permission(p.kind(), p.pattern()))
                    .toList());
        });
    }

    /** Rounded up, so that a short time does not become "not given". */
    static long millis(Duration time) {
        return time.plusNanos(999_999).toMillis();
    }

    static <T> Query<T> onQueue(String verb, String queue, boolean read, Body body, Function<Result, T> parse) {
        return new Query<>(verb + " queue \"" + queue + "\"", queue, "queue \"" + queue + "\"", read, body, parse);
    }

    private static <T> Query<T> onKey(String verb, String key, boolean read, Body body, Function<Result, T> parse) {
        return new Query<>(verb + " API key \"" + key + "\"", "", "API key \"" + key + "\"", read, body, parse);
    }
}
