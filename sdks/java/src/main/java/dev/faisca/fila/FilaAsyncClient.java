package dev.faisca.fila;

import dev.faisca.fila.internal.BulkQueries;
import dev.faisca.fila.internal.Deadline;
import dev.faisca.fila.internal.Kind;
import dev.faisca.fila.internal.Ticket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * The calls of {@link FilaClient} with futures. A future fails with a {@link FilaException}, at the latest when
 * the client's timeout is over; what follows it runs on the client's executor. To cancel a future gives its call
 * up: what was not sent yet never will be, and no other call is harmed.
 *
 * <p>One thing is waited for in the calling thread: room. While {@linkplain
 * FilaClientBuilder#withInFlightBytesMax more bytes} are under way without an answer than the client may have,
 * {@code enqueue} waits until some were answered, so that a fast producer cannot fill the memory.
 */
public final class FilaAsyncClient extends AsyncBulkOperations {
    FilaAsyncClient(ClientCore core) {
        super(core);
    }

    /**
     * The same client with another timeout for its calls.
     *
     * @param timeout for every call that is made through the returned view
     * @return a view of this client
     */
    public FilaAsyncClient withTimeout(Duration timeout) {
        return new FilaAsyncClient(core.withTimeout(timeout));
    }

    /**
     * Stores a message.
     *
     * @param queue the queue's name
     * @param headers text pairs
     * @param payload the message's bytes; not to be changed before the future is done
     * @return the message's id, once the broker has stored it
     */
    public CompletableFuture<String> enqueue(String queue, Map<String, String> headers, byte[] payload) {
        return enqueue(new EnqueueMessage(queue, headers, payload));
    }

    /**
     * Stores a message with options.
     *
     * @param message the message
     * @return the message's id, once the broker has stored it
     */
    public CompletableFuture<String> enqueue(EnqueueMessage message) {
        Deadline deadline = core.deadline();
        return future(() -> core.producer().enqueue(message, deadline), deadline);
    }

    /**
     * Stores messages, of one queue or of several. A refused message costs only itself.
     *
     * @param messages the messages
     * @return one result for each, in order
     */
    public CompletableFuture<List<EnqueueResult>> enqueueMany(List<EnqueueMessage> messages) {
        Deadline deadline = core.deadline();
        return future(() -> core.producer().enqueueMany(messages, deadline), deadline);
    }

    /**
     * Acknowledges a message.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> ack(String queue, String messageId) {
        return future(() -> core.settle(Kind.ACK, queue, messageId, null), core.deadline());
    }

    /**
     * Rejects a message.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @param error what went wrong
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> nack(String queue, String messageId, String error) {
        return future(() -> core.settle(Kind.NACK, queue, messageId, error), core.deadline());
    }

    /**
     * Hands a message back at once, without a counted attempt.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> release(String queue, String messageId) {
        return future(() -> core.settle(Kind.RELEASE, queue, messageId, null), core.deadline());
    }

    /**
     * Acknowledges many messages in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @return one result for each, in order
     */
    public CompletableFuture<List<SettleResult>> ackMany(String queue, List<String> messageIds) {
        return future(() -> core.settleMany(Kind.ACK, queue, messageIds, null), core.deadline());
    }

    /**
     * Rejects many messages in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @param error what went wrong
     * @return one result for each, in order
     */
    public CompletableFuture<List<SettleResult>> nackMany(String queue, List<String> messageIds, String error) {
        return future(() -> core.settleMany(Kind.NACK, queue, messageIds, error), core.deadline());
    }

    /**
     * Hands many messages back in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @return one result for each, in order
     */
    public CompletableFuture<List<SettleResult>> releaseMany(String queue, List<String> messageIds) {
        return future(() -> core.settleMany(Kind.RELEASE, queue, messageIds, null), core.deadline());
    }

    /**
     * Leases messages under a name, see {@link FilaClient#leaseBatch}.
     *
     * @param queue the queue
     * @param name the batch's name
     * @param options how many, for how long
     * @return the batch
     */
    public CompletableFuture<LeasedBatch> leaseBatch(String queue, String name, LeaseOptions options) {
        return ask(BulkQueries.leaseBatch(queue, name, options))
                .thenApply(batch -> FilaClient.leased(core, queue, name, batch));
    }

    private static <T> CompletableFuture<T> future(Supplier<Ticket<T>> call, Deadline deadline) {
        try {
            return call.get().future(deadline);
        } catch (FilaException e) {
            return CompletableFuture.failedFuture(e);
        }
    }
}
