package dev.faisca.fila.conformance;

import dev.faisca.fila.FilaAsyncClient;
import dev.faisca.fila.Permission;
import dev.faisca.fila.QueueOptions;
import dev.faisca.fila.QueueStats;
import dev.faisca.fila.support.Json;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The administrative calls. */
final class Administration {
    private Administration() {}

    static CompletableFuture<?> run(FilaAsyncClient client, String op, Map<String, Object> request) {
        String queue = (String) request.get("queue");
        String key = (String) request.get("fairness_key");
        String keyId = (String) request.get("key_id");
        String reason = (String) request.getOrDefault("reason", "");
        return switch (op) {
            case "create_queue" -> client.createQueue(queue, options(request)).thenApply(id -> Map.of("queue_id", id));
            case "delete_queue" -> nothing(client.deleteQueue(queue));
            case "list_queues" -> client.listQueues().thenApply(queues -> Map.of("queues", queues.stream()
                    .map(one -> Map.of(
                            "name", one.name(),
                            "depth", one.depth(),
                            "in_flight", one.inFlight(),
                            "active_consumers", one.activeConsumers()))
                    .toList()));
            case "get_stats" -> client.getStats(queue).thenApply(Administration::stats);
            case "set_config" -> nothing(client.setConfig((String) request.get("key"), (String) request.get("value")));
            case "get_config" -> client.getConfig((String) request.get("key"))
                    .thenApply(value -> Map.of("value", value.orElse("")));
            case "list_config" -> client.listConfig((String) request.getOrDefault("prefix", ""))
                    .thenApply(entries -> Map.of("entries", entries));
            case "redrive" -> client.redrive(queue, (Long) request.getOrDefault("limit", 0L))
                    .thenApply(count -> Map.of("redriven", count));
            case "explain" -> {
                String messageId = (String) request.get("message_id");
                CompletableFuture<String> document = key != null
                        ? client.explainKey(queue, key)
                        : messageId != null ? client.explainMessage(queue, messageId) : client.explain(queue);
                yield document.thenApply(text -> Map.of("document", Json.parse(text)));
            }
            case "pause_queue" -> nothing(client.pauseQueue(queue, reason));
            case "resume_queue" -> nothing(client.resumeQueue(queue));
            case "pause_key" -> nothing(client.pauseKey(queue, key, reason));
            case "resume_key" -> nothing(client.resumeKey(queue, key));
            case "purge" -> (key == null ? client.purge(queue) : client.purgeKey(queue, key))
                    .thenApply(count -> Map.of("purged", count));
            case "create_api_key" -> client.createApiKey(
                            (String) request.get("name"), expiry(request), Boolean.TRUE.equals(request.get("is_superadmin")))
                    .thenApply(made -> Map.of("key_id", made.keyId(), "key", made.key()));
            case "revoke_api_key" -> nothing(client.revokeApiKey(keyId));
            case "list_api_keys" -> client.listApiKeys().thenApply(keys -> Map.of("keys", keys.stream()
                    .map(one -> Map.of("key_id", one.keyId(), "name", one.name(), "is_superadmin", one.superadmin()))
                    .toList()));
            case "set_acl" -> nothing(client.setAcl(keyId, permissions(request)));
            case "get_acl" -> client.getAcl(keyId).thenApply(acl -> Map.of(
                    "permissions", acl.permissions().stream().map(p -> List.of(p.kind(), p.pattern())).toList(),
                    "is_superadmin", acl.superadmin()));
            default -> throw new Operations.UnknownOperation(op);
        };
    }

    private static CompletableFuture<Map<String, Object>> nothing(CompletableFuture<Void> done) {
        return done.thenApply(ignored -> Map.of());
    }

    private static QueueOptions options(Map<String, Object> request) {
        long visibility = (Long) request.getOrDefault("visibility_timeout_ms", 0L);
        return new QueueOptions(
                (String) request.get("on_enqueue"), (String) request.get("on_failure"), Duration.ofMillis(visibility));
    }

    private static Instant expiry(Map<String, Object> request) {
        long at = (Long) request.getOrDefault("expires_at_ms", 0L);
        return at == 0 ? null : Instant.ofEpochMilli(at);
    }

    private static List<Permission> permissions(Map<String, Object> request) {
        List<Permission> permissions = new ArrayList<>();
        for (Object pair : (List<?>) request.get("permissions")) {
            permissions.add(new Permission((String) ((List<?>) pair).get(0), (String) ((List<?>) pair).get(1)));
        }
        return permissions;
    }

    private static Map<String, Object> stats(QueueStats stats) {
        return Map.of(
                "depth", stats.depth(),
                "in_flight", stats.inFlight(),
                "active_consumers", stats.activeConsumers(),
                "fairness_keys", stats.fairnessKeys().stream()
                        .map(one -> Map.of("key", one.key(), "pending", one.pending(), "weight", one.weight()))
                        .toList(),
                "throttle_keys", stats.throttleKeys().stream()
                        .map(one -> Map.of(
                                "key", one.key(), "rate_per_second", one.ratePerSecond(), "burst", one.burst()))
                        .toList());
    }
}
