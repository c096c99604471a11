package dev.faisca.fila.internal;

import dev.faisca.fila.ClientClosedException;
import dev.faisca.fila.FilaException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A subscription: what was delivered and not yet read. It outlives connections: a link subscribes it again
 * after a reconnect, and another link takes it when another node leads.
 *
 * <p>Its lock may be taken under a link's, never the other way round.
 */
public final class Stream {
    /** Waits for the broker to accept the subscription. */
    public final class Opening extends Ticket<Void> {
        Opening() {
            super(Stream.this.engine, "consume queue \"" + queue + "\"");
        }

        @Override
        Void value() {
            return null;
        }

        @Override
        String queue() {
            return queue;
        }

        Stream stream() {
            return Stream.this;
        }
    }

    public final String queue;
    public final int prefetch;
    final Engine engine;
    final Opening opening;
    int requestId; // of its Consume on the present connection, 0 if none; the link's lock guards it
    final List<Delivered> late = new ArrayList<>(); // came after the end and before the cancel; the link's lock guards it
    private final Runnable listener; // called without locks when there is something to read, or the end
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition stirred = lock.newCondition();
    private final ArrayDeque<Delivered> buffer = new ArrayDeque<>();
    private final Map<String, Integer> again = new HashMap<>(); // messages in the buffer that came before, by id
    private final Map<String, Long> held; // with a heart-beat: ids of what is not settled, each with the beat before its delivery; else null
    private long beats;
    private boolean atWork; // handlers finish what they have when the subscription ends
    private Link link;
    private boolean accepted;
    private boolean over;
    private FilaException failure;
    private int hops; // to other nodes since it was last accepted

    Stream(Engine engine, String queue, int prefetch, boolean heartbeat, Runnable listener) {
        held = heartbeat ? new LinkedHashMap<>() : null;
        this.engine = engine;
        this.queue = queue;
        this.prefetch = prefetch;
        this.listener = listener;
        opening = new Opening();
    }

    // The reader's part.

    /** A message that is here, null if there is none. */
    public Delivered poll() {
        lock.lock();
        try {
            return take();
        } finally {
            lock.unlock();
        }
    }

    /** Waits for a message; null when the time is up or the stream is over. */
    public Delivered poll(Deadline deadline) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (buffer.isEmpty() && !over) {
                long left = deadline.leftNanos();
                if (left <= 0) {
                    return null;
                }
                stirred.await(left, TimeUnit.NANOSECONDS);
            }
            return take();
        } finally {
            lock.unlock();
        }
    }

    public boolean hasNext() {
        lock.lock();
        try {
            return !buffer.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /** Whether no message will come any more. */
    public boolean isOver() {
        lock.lock();
        try {
            return over && buffer.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /** Why it ended; null while it lives, and if its user ended it. */
    public FilaException failure() {
        lock.lock();
        try {
            return failure;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the subscription and hands back what nobody has read. */
    public void close() {
        List<Delivered> unread = end(null);
        Link holder;
        lock.lock();
        try {
            holder = link;
        } finally {
            lock.unlock();
        }
        if (holder != null) {
            holder.unsubscribe(this, unread);
        }
        opening.finish(new ClientClosedException("the consumer of queue \"" + queue + "\" is closed", null));
        engine.completions.flush();
        listener.run();
    }

    // The link's part.

    /** Takes deliveries; false if the stream is over. */
    boolean push(List<Delivered> messages) {
        lock.lock();
        try {
            if (over) {
                return false;
            }
            buffer.addAll(messages);
            for (Delivered message : messages) {
                if (held != null) {
                    held.put(message.id(), beats);
                }
                if (message.attemptCount > 0) {
                    again.merge(message.id(), 1, Integer::sum);
                }
            }
            // The broker sends more than the credit only when leases ran out, and the oldest unread messages
            // are those: they belong to somebody else by now.
            while (buffer.size() > prefetch) {
                take();
            }
            stirred.signalAll();
        } finally {
            lock.unlock();
        }
        listener.run();
        return true;
    }

    /**
     * The broker has settled a message. If its lease had run out before, it may have been delivered a second
     * time and lie here unread: that copy is nobody's now.
     */
    void settled(String messageId) {
        lock.lock();
        try {
            if (held != null) {
                held.remove(messageId);
            }
            if (again.remove(messageId) != null) {
                buffer.removeIf(message -> message.id().equals(messageId));
            }
        } finally {
            lock.unlock();
        }
    }

    /** Makes a link the stream's; false if it is over. */
    boolean joins(Link next) {
        lock.lock();
        try {
            link = next;
            return !over;
        } finally {
            lock.unlock();
        }
    }

    /** The broker accepted the Consume. */
    void accepted() {
        lock.lock();
        try {
            accepted = true;
            hops = 0;
        } finally {
            lock.unlock();
        }
        opening.finish(null);
    }

    boolean wasAccepted() {
        lock.lock();
        try {
            return accepted;
        } finally {
            lock.unlock();
        }
    }

    /**
     * What was delivered over the old connection cannot be settled over a new one that consumes the same
     * queue, so it waits for its redelivery.
     */
    void disconnected() {
        requestId = 0;
        late.clear();
        lock.lock();
        try {
            buffer.clear();
            again.clear();
            if (held != null) {
                held.clear();
            }
        } finally {
            lock.unlock();
        }
    }

    // The heart-beat's part.

    /** Whether there is something to extend, now or later. */
    boolean isAlive() {
        lock.lock();
        try {
            return !over || (atWork && !held.isEmpty());
        } finally {
            lock.unlock();
        }
    }

    /** Whether handlers are given the messages, who finish what they have when the subscription ends. */
    public void atWork(boolean on) {
        lock.lock();
        try {
            atWork = on;
        } finally {
            lock.unlock();
        }
    }

    /** Begins a beat. Ids of what is not settled, read or not. */
    List<String> held() {
        lock.lock();
        try {
            beats++;
            return List.copyOf(held.keySet());
        } finally {
            lock.unlock();
        }
    }

    /** These were not leased here when this beat's question was answered. What was delivered since is. */
    void forget(List<String> ids) {
        lock.lock();
        try {
            for (String id : ids) {
                held.computeIfPresent(id, (one, delivered) -> delivered < beats ? null : delivered);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Ends it with an error its reader sees, and tells the broker. Not to be called under locks. */
    void doom(FilaException why) {
        List<Delivered> unread = end(why);
        Link holder;
        lock.lock();
        try {
            holder = link;
        } finally {
            lock.unlock();
        }
        if (holder != null) {
            holder.unsubscribe(this, unread);
        }
        engine.completions.flush();
        listener.run();
    }

    boolean hop(int most) {
        lock.lock();
        try {
            return ++hops <= most;
        } finally {
            lock.unlock();
        }
    }

    int hops() {
        lock.lock();
        try {
            return hops;
        } finally {
            lock.unlock();
        }
    }

    /** Subscribes again after a pause, unless a new connection has done so before. */
    void later(long millis) {
        engine.timer.schedule(
                () -> {
                    Link holder;
                    lock.lock();
                    try {
                        holder = link;
                    } finally {
                        lock.unlock();
                    }
                    holder.resubscribe(this);
                },
                Backoff.shortened(TimeUnit.MILLISECONDS.toNanos(millis)),
                TimeUnit.NANOSECONDS);
    }

    /** Ends it with an error its reader sees. The client's own end is not one. Not to be called under locks. */
    void fail(FilaException why) {
        end(why instanceof ClientClosedException ? null : why);
        opening.finish(why);
        engine.completions.flush();
        listener.run();
    }

    private Delivered take() {
        Delivered message = buffer.poll();
        if (message != null && message.attemptCount > 0) {
            again.computeIfPresent(message.id(), (id, count) -> count > 1 ? count - 1 : null);
        }
        return message;
    }

    private List<Delivered> end(FilaException why) {
        lock.lock();
        try {
            if (over) {
                return List.of();
            }
            over = true;
            failure = why;
            List<Delivered> unread = new ArrayList<>(buffer);
            buffer.clear();
            again.clear();
            if (held != null) {
                unread.forEach(message -> held.remove(message.id()));
            }
            stirred.signalAll();
            engine.left(this);
            return unread;
        } finally {
            lock.unlock();
        }
    }

    /** A stream that was closed while deliveries may be on their way to it. */
    record Leaving(String queue, int consumeId) {}
}
