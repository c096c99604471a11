package dev.faisca.fila;

import dev.faisca.fila.internal.Queries;
import dev.faisca.fila.internal.Query;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Queues, settings, API keys: the calls of operators. Each waits for the broker's answer. */
public abstract sealed class AdminOperations permits BulkOperations {
    private static final int EXPLAIN_KEYS = 20;

    final ClientCore core;

    AdminOperations(ClientCore core) {
        this.core = core;
    }

    /**
     * Makes a queue with its dead letter queue {@code name.dlq}, without hooks.
     *
     * @param name the queue's name
     * @return the queue's id
     * @throws QueueAlreadyExistsException if there is one
     */
    public String createQueue(String name) {
        return ask(Queries.createQueue(name, QueueOptions.defaults()));
    }

    /**
     * Makes a queue with its dead letter queue {@code name.dlq}.
     *
     * @param name the queue's name
     * @param options hooks and visibility timeout
     * @return the queue's id
     * @throws LuaCompilationException if a hook does not compile
     */
    public String createQueue(String name, QueueOptions options) {
        return ask(Queries.createQueue(name, options));
    }

    /**
     * Changes a queue while it works: all of the update is made, or none of it.
     *
     * @param queue the queue's name
     * @param update what changes
     * @return the version that holds then
     * @throws VersionConflictException if it has another version than the one that is expected
     */
    public long updateQueue(String queue, QueueUpdate update) {
        return ask(Queries.updateQueue(queue, update));
    }

    /**
     * Tells a queue's settings.
     *
     * @param queue the queue's name
     * @param version an older version; 0 for the one that holds
     * @return its settings in that version
     */
    public QueueSettings getQueue(String queue, long version) {
        return ask(Queries.getQueue(queue, version));
    }

    /**
     * Lists the versions of a queue's settings that are kept.
     *
     * @param queue the queue's name
     * @return the newest first
     */
    public List<QueueVersion> listVersions(String queue) {
        return ask(Queries.listVersions(queue));
    }

    /**
     * Deletes a queue with everything in it; its consumers end with {@link QueueNotFoundException}.
     *
     * @param queue the queue's name
     * @throws QueueNotFoundException if there is none
     */
    public void deleteQueue(String queue) {
        ask(Queries.deleteQueue(queue));
    }

    /**
     * Lists the queues.
     *
     * @return the queues this client may see
     */
    public List<QueueSummary> listQueues() {
        return ask(Queries.listQueues());
    }

    /**
     * Says what a queue is doing.
     *
     * @param queue the queue's name
     * @return the figures
     * @throws QueueNotFoundException if there is none
     */
    public QueueStats getStats(String queue) {
        return ask(Queries.getStats(queue));
    }

    /**
     * Sets a run-time setting.
     *
     * @param key the key, for example {@code throttle.provider:stripe}
     * @param value the value; empty removes the key
     * @throws InvalidConfigValueException if the broker refuses the value
     */
    public void setConfig(String key, String value) {
        ask(Queries.setConfig(key, value));
    }

    /**
     * Reads a run-time setting.
     *
     * @param key the key
     * @return empty if it is not set
     */
    public Optional<String> getConfig(String key) {
        return ask(Queries.getConfig(key));
    }

    /**
     * Lists run-time settings.
     *
     * @param prefix what the keys begin with; empty for all
     * @return keys and values
     */
    public Map<String, String> listConfig(String prefix) {
        return ask(Queries.listConfig(prefix));
    }

    /**
     * Moves dead letters back to their queue.
     *
     * @param dlqQueue the dead letter queue
     * @param limit the most to move; 0 for all
     * @return how many were moved
     * @throws NotADLQException if it is no dead letter queue
     */
    public long redrive(String dlqQueue, long limit) {
        return ask(Queries.redrive(dlqQueue, limit));
    }

    /**
     * Says why messages of a queue wait.
     *
     * @param queue the queue; empty for all queues in short
     * @return a JSON document, see spec/explain.md
     * @throws QueueNotFoundException if there is none
     */
    public String explain(String queue) {
        return ask(Queries.explain(queue, null, null, EXPLAIN_KEYS));
    }

    /**
     * Says why the next message of a fairness key waits.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @return a JSON document, see spec/explain.md
     */
    public String explainKey(String queue, String fairnessKey) {
        return ask(Queries.explain(queue, fairnessKey, null, EXPLAIN_KEYS));
    }

    /**
     * Says why a message waits.
     *
     * @param queue the queue
     * @param messageId the message
     * @return a JSON document, see spec/explain.md
     */
    public String explainMessage(String queue, String messageId) {
        return ask(Queries.explain(queue, null, messageId, EXPLAIN_KEYS));
    }

    /**
     * Stops deliveries of a queue until it is resumed; messages are still taken in.
     *
     * @param queue the queue
     * @param reason why, for people
     */
    public void pauseQueue(String queue, String reason) {
        ask(Queries.pauseQueue(queue, reason));
    }

    /**
     * Lets a paused queue deliver again.
     *
     * @param queue the queue
     */
    public void resumeQueue(String queue) {
        ask(Queries.resumeQueue(queue));
    }

    /**
     * Stops deliveries of one fairness key until it is resumed.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @param reason why, for people
     */
    public void pauseKey(String queue, String fairnessKey, String reason) {
        ask(Queries.pauseKey(queue, fairnessKey, reason));
    }

    /**
     * Lets a paused fairness key deliver again.
     *
     * @param queue the queue
     * @param fairnessKey the key
     */
    public void resumeKey(String queue, String fairnessKey) {
        ask(Queries.resumeKey(queue, fairnessKey));
    }

    /**
     * Drops what is pending in a queue; what is leased stays.
     *
     * @param queue the queue
     * @return how many messages were dropped
     */
    public long purge(String queue) {
        return ask(Queries.purge(queue, null));
    }

    /**
     * Drops what is pending of one fairness key; what is leased stays.
     *
     * @param queue the queue
     * @param fairnessKey the key
     * @return how many messages were dropped
     */
    public long purgeKey(String queue, String fairnessKey) {
        return ask(Queries.purge(queue, fairnessKey));
    }

    /**
     * Makes an API key that never expires and may do nothing yet.
     *
     * @param name a name for people
     * @return the key; its secret is shown only now
     */
    public ApiKey createApiKey(String name) {
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
    public ApiKey createApiKey(String name, Instant expiresAt, boolean superadmin) {
        return ask(Queries.createApiKey(name, expiresAt, superadmin));
    }

    /**
     * Ends an API key; clients that use it are cut off.
     *
     * @param keyId the key's id
     * @throws ApiKeyNotFoundException if there is none
     */
    public void revokeApiKey(String keyId) {
        ask(Queries.revokeApiKey(keyId));
    }

    /**
     * Lists the API keys.
     *
     * @return the keys, without their secrets
     */
    public List<ApiKeySummary> listApiKeys() {
        return ask(Queries.listApiKeys());
    }

    /**
     * Replaces what an API key may do.
     *
     * @param keyId the key's id
     * @param permissions what it may do from now on
     * @throws ApiKeyNotFoundException if there is none
     */
    public void setAcl(String keyId, List<Permission> permissions) {
        ask(Queries.setAcl(keyId, permissions));
    }

    /**
     * Says what an API key may do.
     *
     * @param keyId the key's id
     * @return its permissions
     * @throws ApiKeyNotFoundException if there is none
     */
    public Acl getAcl(String keyId) {
        return ask(Queries.getAcl(keyId));
    }

    final <T> T ask(Query<T> query) {
        return core.engine().ask(query).await(core.deadlineAfter(query.waitTime()));
    }
}
