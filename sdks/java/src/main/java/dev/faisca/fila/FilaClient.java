package dev.faisca.fila;

import dev.faisca.fila.internal.BulkQueries;
import dev.faisca.fila.internal.Deadline;
import dev.faisca.fila.internal.Kind;
import dev.faisca.fila.internal.Stream;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Flow;

/**
 * A client of a Fila broker. It may be shared by threads, and sharing one makes batching work best.
 *
 * <pre>{@code
 * try (FilaClient client = FilaClient.builder("localhost:5555").build()) {
 *     client.createQueue("orders");
 *     client.enqueue("orders", Map.of("tenant", "acme"), "hello".getBytes());
 *     try (FilaConsumer consumer = client.consume("orders")) {
 *         for (Message message : consumer) {
 *             System.out.println(new String(message.payload()));
 *             message.ack();
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>The methods here wait for the broker's answer, for as long as the client's timeout allows ({@link
 * #withTimeout}); {@link #async()} has the same calls with futures. A thread that is interrupted meanwhile gets a
 * {@link CallInterruptedException}.
 *
 * <p>After a lost connection the client comes back by itself and consumers go on. A call that was not sent yet
 * waits for the new connection; one that was sent and not answered fails with {@link ConnectionLostException},
 * except for reads and for enqueues with an idempotency key, which are sent again.
 */
public final class FilaClient extends BulkOperations implements AutoCloseable {
    FilaClient(ClientCore core) {
        super(core);
    }

    /**
     * Begins a client.
     *
     * @param address {@code host:port}, {@code host} (port 5555) or {@code [ipv6]:port}; a leading https://
     *     switches TLS on
     * @return a builder
     */
    public static FilaClientBuilder builder(String address) {
        return new FilaClientBuilder(address);
    }

    /**
     * Connects with every option at its default.
     *
     * @param address see {@link #builder}
     * @return a connected client
     * @throws ConnectFailedException if the broker cannot be reached
     */
    public static FilaClient connect(String address) {
        return builder(address).build();
    }

    /**
     * The same client with futures.
     *
     * @return a view of this client; closing this one ends both
     */
    public FilaAsyncClient async() {
        return new FilaAsyncClient(core);
    }

    /**
     * The same client with another timeout for its calls.
     *
     * @param timeout for every call that is made through the returned view
     * @return a view of this client; closing one ends both
     */
    public FilaClient withTimeout(Duration timeout) {
        return new FilaClient(core.withTimeout(timeout));
    }

    /**
     * Stores a message.
     *
     * @param queue the queue's name
     * @param headers text pairs
     * @param payload the message's bytes
     * @return the message's id, once the broker has stored it
     * @throws QueueNotFoundException if there is no such queue
     */
    public String enqueue(String queue, Map<String, String> headers, byte[] payload) {
        return enqueue(new EnqueueMessage(queue, headers, payload));
    }

    /**
     * Stores a message with options.
     *
     * @param message the message
     * @return the message's id, once the broker has stored it
     * @throws QueueNotFoundException if there is no such queue
     */
    public String enqueue(EnqueueMessage message) {
        Deadline deadline = core.deadline();
        return core.producer().enqueue(message, deadline).await(deadline);
    }

    /**
     * Stores messages, of one queue or of several. A refused message costs only itself.
     *
     * @param messages the messages
     * @return one result for each, in order; look at every one, or let {@link
     *     EnqueueResult#messageIdOrThrow()} do it
     * @throws RequestTimeoutException if not all were answered in time; some may be stored
     */
    public List<EnqueueResult> enqueueMany(List<EnqueueMessage> messages) {
        Deadline deadline = core.deadline();
        return core.producer().enqueueMany(messages, deadline).await(deadline);
    }

    /**
     * Subscribes to a queue, with the default options.
     *
     * @param queue the queue's name
     * @return a consumer to read from
     * @throws QueueNotFoundException if there is no such queue
     */
    public FilaConsumer consume(String queue) {
        return consume(queue, ConsumeOptions.defaults());
    }

    /**
     * Subscribes to a queue. One client may have many consumers, also of one queue.
     *
     * @param queue the queue's name
     * @param options how to consume
     * @return a consumer to read from
     * @throws QueueNotFoundException if there is no such queue
     */
    public FilaConsumer consume(String queue, ConsumeOptions options) {
        Stream stream = core.engine().subscribe(queue, options.prefetch(), options.heartbeat(), () -> {});
        core.engine().awaitOpen(stream, core.deadline());
        return new FilaConsumer(core, stream);
    }

    /**
     * Subscribes to a queue and has a handler called for every message, with the default options: one at a
     * time, and the handler settles.
     *
     * @param queue the queue's name
     * @param handler what to do with a message
     * @return a handle to end it, and to learn why it ended
     * @throws QueueNotFoundException if there is no such queue
     */
    public ConsumerHandle consume(String queue, MessageHandler handler) {
        return consume(queue, ConsumeOptions.defaults(), handler);
    }

    /**
     * Subscribes to a queue and has a handler called for every message, on the client's executor.
     *
     * @param queue the queue's name
     * @param options how to consume
     * @param handler what to do with a message
     * @return a handle to end it, and to learn why it ended: {@link ConsumerHandle#done()}
     * @throws QueueNotFoundException if there is no such queue
     */
    public ConsumerHandle consume(String queue, ConsumeOptions options, MessageHandler handler) {
        ConsumerHandle handle = new ConsumerHandle(core, options, handler);
        handle.start(queue);
        return handle;
    }

    /**
     * A queue as a publisher of reactive streams. Every subscriber subscribes at the broker, gets as many
     * messages as it requests, and is told of a failure by {@code onError}; when the client is closed or
     * drained, by {@code onComplete}.
     *
     * @param queue the queue's name
     * @param options how to consume; the prefetch bounds what is here and not requested yet
     * @return the publisher
     */
    public Flow.Publisher<Message> publisher(String queue, ConsumeOptions options) {
        return new MessagePublisher(core, queue, options);
    }

    /**
     * A queue as a publisher of reactive streams, with the default options.
     *
     * @param queue the queue's name
     * @return the publisher
     */
    public Flow.Publisher<Message> publisher(String queue) {
        return publisher(queue, ConsumeOptions.defaults());
    }

    /**
     * Acknowledges a message.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @throws MessageNotFoundException if it is not leased here
     */
    public void ack(String queue, String messageId) {
        core.settle(Kind.ACK, queue, messageId, null).await(core.deadline());
    }

    /**
     * Rejects a message; the queue's {@code on_failure} hook decides what follows.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @param error what went wrong; the hook sees it
     * @throws MessageNotFoundException if it is not leased here
     */
    public void nack(String queue, String messageId, String error) {
        core.settle(Kind.NACK, queue, messageId, error).await(core.deadline());
    }

    /**
     * Hands a message back at once, to its old place in line and without a counted attempt.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @throws MessageNotFoundException if it is not leased here
     */
    public void release(String queue, String messageId) {
        core.settle(Kind.RELEASE, queue, messageId, null).await(core.deadline());
    }

    /**
     * Acknowledges many messages in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @return one result for each, in order
     */
    public List<SettleResult> ackMany(String queue, List<String> messageIds) {
        return core.settleMany(Kind.ACK, queue, messageIds, null).await(core.deadline());
    }

    /**
     * Rejects many messages in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @param error what went wrong
     * @return one result for each, in order
     */
    public List<SettleResult> nackMany(String queue, List<String> messageIds, String error) {
        return core.settleMany(Kind.NACK, queue, messageIds, error).await(core.deadline());
    }

    /**
     * Hands many messages back in one round trip.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @return one result for each, in order
     */
    public List<SettleResult> releaseMany(String queue, List<String> messageIds) {
        return core.settleMany(Kind.RELEASE, queue, messageIds, null).await(core.deadline());
    }

    /**
     * Leases messages under a name: whoever asks again with it gets the same ones, until the batch is
     * acknowledged, released or its time is up.
     *
     * @param queue the queue
     * @param name the batch's name, for example {@code job/7}
     * @param options how many, for how long
     * @return the batch
     */
    public LeasedBatch leaseBatch(String queue, String name, LeaseOptions options) {
        return leased(core, queue, name, ask(BulkQueries.leaseBatch(queue, name, options)));
    }

    /**
     * Reads a queue without taking anything: every message that was in it when the call was made. Close the
     * stream, best by try-with-resources: the broker keeps few snapshots at a time.
     *
     * @param queue the queue
     * @return the messages, in delivery order within one fairness key
     */
    public java.util.stream.Stream<BrowsedMessage> browse(String queue) {
        return Browsing.open(this, queue, EnumSet.allOf(BrowsedMessage.State.class));
    }

    static LeasedBatch leased(ClientCore core, String queue, String name, BulkQueries.Leased batch) {
        List<Message> messages =
                batch.messages().stream().map(one -> new Message(core, queue, one)).toList();
        return new LeasedBatch(name, batch.again(), batch.expiresAt(), batch.count(), messages, batch.arrow());
    }

    /**
     * Ends the client in order: consumers stop and hand back what nobody has read, message handlers finish
     * what they are at, calls under way get their answers; then it closes. New calls other than settling are
     * refused with {@link ClientClosedException}. Not to be called from a message handler, for which it would
     * wait.
     *
     * @param timeout how long to wait for all of it; the client is closed in any case
     * @throws RequestTimeoutException if something was not answered in time
     */
    public void drain(Duration timeout) {
        try {
            core.engine().drain(Deadline.after(timeout));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallInterruptedException("drain: interrupted; the client is closed", e);
        }
    }

    /**
     * Ends the client at once: it says goodbye, which hands every leased message back without a counted
     * attempt, and fails what is under way with {@link ClientClosedException}. Consumers end without an error.
     * See {@link #drain} for an end that finishes what is under way. May be called again.
     */
    @Override
    public void close() {
        core.engine().close();
    }
}
