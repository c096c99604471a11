package dev.faisca.fila;

import dev.faisca.fila.internal.Queries;
import dev.faisca.fila.internal.Query;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** Queues, settings, API keys: the calls of operators. */
public abstract sealed class AsyncAdminOperations permits AsyncBulkOperations {
    private static final int EXPLAIN_KEYS = 20;

    final ClientCore core;

    AsyncAdminOperations(ClientCore core) {
        this.core = core;
    }

    /**
     * Makes a queue with its dead letter queue {@code name.dlq}, without hooks.
     *
     * @param name the queue's name
     * @return the queue's id; fails with {@link QueueAlreadyExistsException} if there is one
     */
    public CompletableFuture<String> createQueue(String name) {
        return ask(Queries.createQueue(name, QueueOptions.defaults()));
    }

    /**
     * Makes a queue with its dead letter queue {@code name.dlq}.
     *
     * @param name the queue's name
     * @param options hooks and visibility timeout
     * @return the queue's id; fails with {@link LuaCompilationException} if a hook does not compile
     */
    public CompletableFuture<String> createQueue(String name, QueueOptions options) {
        return ask(Queries.createQueue(name, options));
    }

    /**
     * Changes a queue while it works: all of the update is made, or none of it.
     *
     * @param queue the queue's name
     * @param update what changes
     * @return the version that holds then; fails with {@link VersionConflictException} if it has another
     *     than the one that is expected
     */
    public CompletableFuture<Long> updateQueue(String queue, QueueUpdate update) {
        return ask(Queries.updateQueue(queue, update));
    }

    /**
     * Tells a queue's settings.
     *
     * @param queue the queue's name
     * @param version an older version; 0 for the one that holds
     * @return its settings in that version
     */
    public CompletableFuture<QueueSettings> getQueue(String queue, long version) {
        return ask(Queries.getQueue(queue, version));
    }

    /**
     * Lists the versions of a queue's settings that are kept.
     *
     * @param queue the queue's name
     * @return the newest first
     */
    public CompletableFuture<List<QueueVersion>> listVersions(String queue) {
        return ask(Queries.listVersions(queue));
    }

    /**
     * Deletes a queue with everything in it; its consumers end with {@link QueueNotFoundException}.
     *
     * @param queue the queue's name
     * @return done when the broker has answered; fails with {@link QueueNotFoundException} if there is none
     */
    public CompletableFuture<Void> deleteQueue(String queue) {
        return ask(Queries.deleteQueue(queue));
    }

    /**
     * Lists the queues.
     *
     * @return the queues this client may see
     */
    public CompletableFuture<List<QueueSummary>> listQueues() {
        return ask(Queries.listQueues());
    }

    /**
     * Says what a queue is doing.
     *
     * @param queue the queue's name
     * @return the figures; fails with {@link QueueNotFoundException} if there is none
     */
    public CompletableFuture<QueueStats> getStats(String queue) {
        return ask(Queries.getStats(queue));
    }

    /**
     * Sets a run-time setting.
     *
     * @param key the key, for example {@code throttle.provider:stripe}
     * @param value the value; empty removes the key
     * @return done when the broker has answered; fails with {@link InvalidConfigValueException} if the broker refuses the value
     */
    public CompletableFuture<Void> setConfig(String key, String value) {
        return ask(Queries.setConfig(key, value));
    }

    /**
     * Reads a run-time setting.
     *
     * @param key the key
     * @return empty if it is not set
     */
    public CompletableFuture<Optional<String>> getConfig(String key) {
        return ask(Queries.getConfig(key));
    }

    /**
     * Lists run-time settings.
     *
     * @param prefix what the keys begin with; empty for all
     * @return keys and values
     */
    public CompletableFuture<Map<String, String>> listConfig(String prefix) {
        return ask(Queries.listConfig(prefix));
    }

    /**
     * Moves dead letters back to their queue.
     *
     * @param dlqQueue the dead letter queue
     * @param limit the most to move; 0 for all
     * @return how many were moved; fails with {@link NotADLQException} if it is no dead letter queue
     */
    public CompletableFuture<Long> redrive(String dlqQueue, long limit) {
        return ask(Queries.redrive(dlqQueue, limit));
    }

    /**
     * Says why messages of a queue wait.
     *
     * @param queue the queue; empty for all queues in short
     * @return a JSON document, see spec/explain.md; fails with {@link QueueNotFoundException} if there is none
     */
    public CompletableFuture<String> explain(String queue) {
        return ask(Queries.explain(queue, null, null, EXPLAIN_KEYS));
    }

    /**
     * Says why the next message of a fairness key waits.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @return a JSON document, see spec/explain.md
     */
    public CompletableFuture<String> explainKey(String queue, String fairnessKey) {
        return ask(Queries.explain(queue, fairnessKey, null, EXPLAIN_KEYS));
    }

    /**
     * Says why a message waits.
     *
     * @param queue the queue
     * @param messageId the message
     * @return a JSON document, see spec/explain.md
     */
    public CompletableFuture<String> explainMessage(String queue, String messageId) {
        return ask(Queries.explain(queue, null, messageId, EXPLAIN_KEYS));
    }

    /**
     * Stops deliveries of a queue until it is resumed; messages are still taken in.
     *
     * @param queue the queue
     * @param reason why, for people
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> pauseQueue(String queue, String reason) {
        return ask(Queries.pauseQueue(queue, reason));
    }

    /**
     * Lets a paused queue deliver again.
     *
     * @param queue the queue
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> resumeQueue(String queue) {
        return ask(Queries.resumeQueue(queue));
    }

    /**
     * Stops deliveries of one fairness key until it is resumed.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @param reason why, for people
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> pauseKey(String queue, String fairnessKey, String reason) {
        return ask(Queries.pauseKey(queue, fairnessKey, reason));
    }

    /**
     * Lets a paused fairness key deliver again.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> resumeKey(String queue, String fairnessKey) {
        return ask(Queries.resumeKey(queue, fairnessKey));
    }

    /**
     * Drops what is pending in a queue; what is leased stays.
     *
     * @param queue the queue
     * @return how many messages were dropped
     */
    public CompletableFuture<Long> purge(String queue) {
        return ask(Queries.purge(queue, null));
    }

    /**
     * Drops what is pending of one fairness key; what is leased stays.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @return how many messages were dropped
     */
    public CompletableFuture<Long> purgeKey(String queue, String fairnessKey) {
        return ask(Queries.purge(queue, fairnessKey));
    }

    /**
     * Makes an API key that never expires and may do nothing yet.
     *
     * @param name a name for people
     * @return the key; its secret is shown only now
     */
    public CompletableFuture<ApiKey> createApiKey(String name) {
        return ask(Queries.createApiKey(name, null, false));
    }

    /**
     * Makes an API key.
     *
     * @param name a name for people
     * @param expiresAt when it ends; null for never
     * @param superadmin whether it may do everything
     * @return the key; its secret is shown only now
     */
    public CompletableFuture<ApiKey> createApiKey(String name, Instant expiresAt, boolean superadmin) {
        return ask(Queries.createApiKey(name, expiresAt, superadmin));
    }

    /**
     * Ends an API key; clients that use it are cut off.
     *
     * @param keyId the key's id
     * @return done when the broker has answered; fails with {@link ApiKeyNotFoundException} if there is none
     */
    public CompletableFuture<Void> revokeApiKey(String keyId) {
        return ask(Queries.revokeApiKey(keyId));
    }

    /**
     * Lists the API keys.
     *
     * @return the keys, without their secrets
     */
    public CompletableFuture<List<ApiKeySummary>> listApiKeys() {
        return ask(Queries.listApiKeys());
    }

    /**
     * Replaces what an API key may do.
     *
     * @param keyId the key's id
     * @param permissions what it may do from now on
     * @return done when the broker has answered; fails with {@link ApiKeyNotFoundException} if there is none
     */
    public CompletableFuture<Void> setAcl(String keyId, List<Permission> permissions) {
        return ask(Queries.setAcl(keyId, permissions));
    }

    /**
     * Says what an API key may do.
     *
     * @param keyId the key's id
     * @return its permissions; fails with {@link ApiKeyNotFoundException} if there is none
     */
    public CompletableFuture<Acl> getAcl(String keyId) {
        return ask(Queries.getAcl(keyId));
    }

    final <T> CompletableFuture<T> ask(Query<T> query) {
        try {
            return core.engine().ask(query).future(core.deadlineAfter(query.waitTime()));
        } catch (FilaException e) {
            return CompletableFuture.failedFuture(e);
        }
    }
}
