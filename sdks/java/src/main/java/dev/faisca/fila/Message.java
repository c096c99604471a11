package dev.faisca.fila;

import dev.faisca.fila.internal.BulkQueries;
import dev.faisca.fila.internal.Delivered;
import dev.faisca.fila.internal.Kind;
import dev.faisca.fila.internal.Ticket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A delivered message. Its lease lasts for the queue's visibility timeout: settle it before that with {@link
 * #ack()}, {@link #nack(String)} or {@link #release()}, or it is delivered again.
 *
 * <p>Fields are decoded when they are asked for. A message keeps the frame it came in alive, so copy what is to
 * be kept for long.
 */
public final class Message {
    private static final String TRACEPARENT = "traceparent";

    private final ClientCore core;
    private final Delivered delivered;
    private final String queue;
    private final AtomicBoolean settled = new AtomicBoolean();
    private volatile byte[] payload;
    private volatile Map<String, String> headers;

    Message(ClientCore core, String queue, Delivered delivered) {
        this.core = core;
        this.queue = queue;
        this.delivered = delivered;
    }

    /**
     * The message's id: unique and increasing, a good key for deduplication.
     *
     * @return a UUID as text
     */
    public String id() {
        return delivered.id();
    }

    /**
     * The queue it was delivered from.
     *
     * @return the queue's name
     */
    public String queue() {
        return queue;
    }

    /**
     * The headers.
     *
     * @return text pairs, unmodifiable
     */
    public Map<String, String> headers() {
        Map<String, String> known = headers;
        if (known == null) {
            known = Collections.unmodifiableMap(delivered.headers());
            headers = known;
        }
        return known;
    }

    /**
     * The payload.
     *
     * @return the same array at every call
     */
    public byte[] payload() {
        byte[] known = payload;
        if (known == null) {
            known = delivered.payload();
            payload = known;
        }
        return known;
    }

    /**
     * The payload without a copy.
     *
     * @return a read-only view
     */
    public ByteBuffer payloadBuffer() {
        return delivered.payloadBuffer();
    }

    /**
     * Whose message it is.
     *
     * @return the fairness key
     */
    public String fairnessKey() {
        return delivered.fairnessKey();
    }

    /**
     * The fairness key's share.
     *
     * @return the weight
     */
    public long weight() {
        return delivered.weight();
    }

    /**
     * Names under which the message is rate limited.
     *
     * @return the throttle keys
     */
    public List<String> throttleKeys() {
        return delivered.throttleKeys();
    }

    /**
     * How often the message failed before.
     *
     * @return 0 at the first delivery
     */
    public long attemptCount() {
        return delivered.attemptCount;
    }

    /**
     * When the broker stored the message.
     *
     * @return to the millisecond
     */
    public Instant enqueuedAt() {
        return Instant.ofEpochMilli(delivered.enqueuedAtMs);
    }

    /**
     * When the message was leased to this consumer.
     *
     * @return to the millisecond
     */
    public Instant leasedAt() {
        return Instant.ofEpochMilli(delivered.leasedAtMs);
    }

    /**
     * The trace context the producer sent along.
     *
     * @return the {@code traceparent} header, empty if there is none
     */
    public Optional<String> traceparent() {
        return Optional.ofNullable(headers().get(TRACEPARENT));
    }

    /**
     * Acknowledges the message: it is done and gone. Waits for the broker's answer.
     *
     * @throws MessageNotFoundException if the message is not leased here any more
     */
    public void ack() {
        settle(Kind.ACK, null).await(core.deadline());
    }

    /**
     * Rejects the message; the queue's {@code on_failure} hook decides what follows.
     *
     * @param error what went wrong; the hook sees it, 4,096 characters of it at most
     * @throws MessageNotFoundException if the message is not leased here any more
     */
    public void nack(String error) {
        settle(Kind.NACK, error).await(core.deadline());
    }

    /**
     * Hands the message back at once, to its old place in line and without a counted attempt.
     *
     * @throws MessageNotFoundException if the message is not leased here any more
     */
    public void release() {
        settle(Kind.RELEASE, null).await(core.deadline());
    }

    /**
     * Lets the lease end later, or sooner.
     *
     * @param visibility from now; zero for the queue's visibility timeout
     * @throws MessageNotFoundException if the message is not leased here any more
     */
    public void extend(Duration visibility) {
        SettleResult result = core.engine()
                .ask(BulkQueries.extend(queue, List.of(id()), visibility))
                .await(core.deadline())
                .get(0);
        if (result.exception() != null) {
            throw result.exception();
        }
    }

    /**
     * Acknowledges without waiting in this thread.
     *
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> ackAsync() {
        return later(Kind.ACK, null);
    }

    /**
     * Rejects without waiting in this thread.
     *
     * @param error what went wrong
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> nackAsync(String error) {
        return later(Kind.NACK, error);
    }

    /**
     * Hands back without waiting in this thread.
     *
     * @return done when the broker has answered
     */
    public CompletableFuture<Void> releaseAsync() {
        return later(Kind.RELEASE, null);
    }

    /** Whether one of the settling methods was called. */
    boolean isSettled() {
        return settled.get();
    }

    private CompletableFuture<Void> later(Kind kind, String reason) {
        try {
            return settle(kind, reason).future(core.deadline());
        } catch (FilaException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private Ticket<Void> settle(Kind kind, String reason) {
        Ticket<Void> ticket = core.settle(kind, queue, id(), reason);
        settled.set(true);
        return ticket;
    }

    /** No payload and no header values: messages end up in logs. */
    @Override
    public String toString() {
        return "Message[id=" + id() + ", queue=" + queue + ", fairnessKey=" + fairnessKey() + ", attemptCount="
                + attemptCount() + ", payloadBytes=" + delivered.payloadBytes() + "]";
    }
}
