package dev.faisca.fila;

import dev.faisca.fila.internal.Deadline;
import dev.faisca.fila.internal.Delivered;
import dev.faisca.fila.internal.Errors;
import dev.faisca.fila.internal.Stream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;

/**
 * A subscription that is read by its user: message by message, in batches, or in a {@code for} loop. It
 * subscribes again by itself after a lost connection. Several threads may receive from one consumer.
 *
 * <p>When the subscription fails, whoever reads gets the exception. When the user ends it, by closing it or by
 * draining or closing the client, reading ends without one: loops finish and {@link #receive()} is empty.
 */
public final class FilaConsumer implements Iterable<Message>, AutoCloseable {
    private final ClientCore core;
    private final Stream stream;

    FilaConsumer(ClientCore core, Stream stream) {
        this.core = core;
        this.stream = stream;
    }

    /**
     * The queue.
     *
     * @return its name
     */
    public String queue() {
        return stream.queue;
    }

    /**
     * Waits for the next message, as long as it takes.
     *
     * @return empty only when the consumer was ended by its user
     * @throws FilaException why the subscription failed
     */
    public Optional<Message> receive() {
        return Optional.ofNullable(next(Deadline.after(null)));
    }

    /**
     * Waits for the next message for a while.
     *
     * @param timeout how long; zero does not wait
     * @return empty when none came in time, or when the consumer was ended by its user: see {@link
     *     #isClosed()}
     * @throws FilaException why the subscription failed
     */
    public Optional<Message> receive(Duration timeout) {
        return Optional.ofNullable(next(Deadline.after(timeout)));
    }

    /**
     * Waits for a message and adds what else is here already: the fast form for those who settle in batches.
     *
     * @param limit the most to return
     * @param timeout how long to wait for the first
     * @return empty when none came in time, or when the consumer was ended by its user
     * @throws FilaException why the subscription failed
     */
    public List<Message> receiveMany(int limit, Duration timeout) {
        if (limit < 1) {
            throw new IllegalArgumentException("limit must be positive, not " + limit);
        }
        List<Message> messages = new ArrayList<>(Math.min(limit, stream.prefetch));
        Message first = next(Deadline.after(timeout));
        if (first != null) {
            messages.add(first);
            while (messages.size() < limit) {
                Delivered more = stream.poll();
                if (more == null) {
                    break;
                }
                messages.add(wrap(more));
            }
        }
        return messages;
    }

    /**
     * Messages as they come, for {@code for} loops. {@code hasNext} waits; it throws what ended the
     * subscription, and is false when the user ended it.
     *
     * @return an iterator that shares the consumer's messages with every other
     */
    @Override
    public Iterator<Message> iterator() {
        return new Iterator<>() {
            private Message ahead;

            @Override
            public boolean hasNext() {
                if (ahead == null) {
                    ahead = FilaConsumer.this.next(Deadline.after(null));
                }
                return ahead != null;
            }

            @Override
            public Message next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("the consumer is closed");
                }
                Message message = ahead;
                ahead = null;
                return message;
            }
        };
    }

    /**
     * Whether no message will come any more.
     *
     * @return true after the end, whatever it was
     */
    public boolean isClosed() {
        return stream.isOver();
    }

    /**
     * Ends the subscription and hands back what was fetched and not received, without a counted attempt.
     * Messages received before can still be settled. May be called again.
     */
    @Override
    public void close() {
        stream.close();
    }

    private Message next(Deadline deadline) {
        try {
            Delivered delivered = stream.poll(deadline);
            if (delivered != null) {
                return wrap(delivered);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallInterruptedException("receive: interrupted while it waited for a message", e);
        }
        FilaException failure = stream.failure();
        if (failure != null) {
            throw Errors.again(failure);
        }
        return null;
    }

    private Message wrap(Delivered delivered) {
        return new Message(core, stream.queue, delivered);
    }
}
