package dev.faisca.fila.internal;

import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.FrameBuffer;
import dev.faisca.fila.internal.wire.Opcodes;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A link's side of one connection: request ids, what is owed an answer, and the frames to be written. The
 * link's lock guards all of it; only the writing itself happens without.
 */
final class Session {
    private static final int COMPOSE_BYTES = 1024 * 1024; // frames written together
    private static final byte[] EMPTY = {};

    final Link link;
    final Connection connection;
    FilaException complaint; // an Error that belongs to no request: why the connection is about to end
    private final Map<Integer, Object> pending = new HashMap<>(); // InFlight, Request, Stream or Leaving
    private FrameBuffer out = new FrameBuffer(64 * 1024);
    private FrameBuffer spare = new FrameBuffer(64 * 1024);
    private int lastId;
    private boolean open = true;

    Session(Link link, Connection connection) {
        this.link = link;
        this.connection = connection;
    }

    // Writing.

    /** Sends what is due, many frames in one write, until the connection ends. */
    void writeLoop() {
        link.lock.lock();
        try {
            while (awaitWork()) {
                compose();
                FrameBuffer ready = out;
                out = spare;
                spare = ready;
                link.unlock();
                boolean written = write(ready);
                link.lock.lock();
                if (!written) {
                    return;
                }
                ready.clear();
                if (ready.capacity() > 4 * COMPOSE_BYTES) {
                    spare = new FrameBuffer(64 * 1024); // one large message must not cost its memory for ever
                }
            }
        } catch (InterruptedException e) {
            connection.drop(Errors.lost("the writing thread was interrupted", e));
        } catch (RuntimeException | Error e) {
            connection.drop(Errors.lost("the client failed unexpectedly: " + e, e)); // nobody else would write
            throw e;
        } finally {
            link.unlock();
        }
    }

    private boolean write(FrameBuffer ready) {
        try {
            connection.write(ready.array(), ready.size());
            return true;
        } catch (IOException e) {
            connection.drop(Errors.lost("writing to " + link.address + ": " + e.getMessage(), e));
            return false;
        }
    }

    /** Waits until something is to be written; false when the connection has ended. */
    private boolean awaitWork() throws InterruptedException {
        while (open && out.isEmpty()) {
            long linger = Long.MAX_VALUE;
            for (Collector collector : link.collectors.values()) {
                if (collector.due()) {
                    return true;
                }
                linger = Math.min(linger, collector.lingerNanos());
            }
            if (linger == Long.MAX_VALUE) {
                link.wake.await();
            } else {
                link.wake.await(linger, TimeUnit.NANOSECONDS);
            }
        }
        return open;
    }

    /** Makes frames of what is due, up to about a MiB of them. */
    private void compose() {
        link.collectors.forEach((kind, collector) -> {
            while (out.size() < COMPOSE_BYTES && collector.due()) {
                sendChunks(kind, collector.take());
            }
        });
    }

    /** One frame. What belongs to callers that have gone is left out. */
    void sendChunks(Kind kind, List<Chunk> chunks) {
        List<Chunk> wanted = new ArrayList<>(chunks.size());
        long freed = 0;
        int items = 0;
        int bytes = 4;
        for (Chunk chunk : chunks) {
            if (chunk.call.isDone()) {
                freed += chunk.size();
                continue;
            }
            wanted.add(chunk);
            items += chunk.count();
            bytes += chunk.size();
        }
        if (kind.enqueues()) {
            link.engine.gate.leave(freed);
        }
        if (wanted.isEmpty()) {
            return;
        }
        int id = nextId();
        out.begin(kind.opcode, id, bytes, connection.frameBytesMax);
        out.putInt(items);
        for (Chunk chunk : wanted) {
            out.put(chunk.bytes, chunk.start(), chunk.size());
        }
        pending.put(id, new InFlight(kind, wanted));
        link.collectors.get(kind).sent();
    }

    void send(Request<?> request) {
        int id = nextId();
        pending.put(id, request);
        send(request.opcode, id, request.body);
    }

    void consume(Stream stream) {
        stream.requestId = nextId();
        pending.put(stream.requestId, stream);
        byte[] body = new Bodies.Consume(stream.queue, (long) stream.prefetch).encoded();
        send(Opcodes.CONSUME, stream.requestId, body);
    }

    /** Ends a stream at the broker, and nothing else. */
    void cancel(int consumeId) {
        send(Opcodes.CANCEL_CONSUME, consumeId, EMPTY);
    }

    /** Ends a stream and hands back what nobody has read. */
    void cancel(Stream stream, List<Delivered> unread) {
        if (stream.requestId == 0) {
            return;
        }
        cancel(stream.requestId);
        Stream.Leaving leaving = new Stream.Leaving(stream.queue, stream.requestId);
        pending.put(stream.requestId, leaving);
        stream.requestId = 0;
        List<Delivered> all = new ArrayList<>(unread);
        all.addAll(stream.late);
        stream.late.clear();
        release(leaving, all);
    }

    /**
     * Hands back what a closed consumer was sent and nobody read. Sent also with nothing in it: its answer
     * tells that no delivery is on its way any more.
     */
    void release(Stream.Leaving leaving, List<Delivered> unread) {
        List<Bodies.ReleaseItem> items = new ArrayList<>(unread.size());
        for (Delivered one : unread) {
            items.add(new Bodies.ReleaseItem(one.queue(), one.id()));
        }
        int id = nextId();
        pending.put(id, leaving);
        send(Opcodes.RELEASE, id, new Bodies.Release(items).encoded());
    }

    void pong(int requestId) {
        send(Opcodes.PONG, requestId, EMPTY);
    }

    void goodbye() {
        send(Opcodes.DISCONNECT, 0, EMPTY);
    }

    void ping() {
        link.lock.lock();
        try {
            if (open) {
                send(Opcodes.PING, nextId(), EMPTY);
            }
        } finally {
            link.unlock();
        }
    }

    private void send(int opcode, int id, byte[] body) {
        out.frame(opcode, id, body, connection.frameBytesMax);
        link.wake.signalAll();
    }

    // Answers.

    Object peek(int id) {
        return pending.get(id);
    }

    Object take(int id) {
        return pending.remove(id);
    }

    /** Nothing is written or answered any more; what was owed an answer, in the order it was sent. */
    List<Object> end() {
        open = false;
        link.wake.signalAll();
        List<Integer> ids = new ArrayList<>(pending.keySet());
        ids.sort(Integer::compareUnsigned);
        List<Object> unanswered = new ArrayList<>(ids.size());
        ids.forEach(id -> unanswered.add(pending.get(id)));
        pending.clear();
        return unanswered;
    }

    boolean isOpen() {
        return open;
    }

    private int nextId() {
        // Never an id that is in use: a stream may live for more than 2^32 requests.
        do {
            lastId++;
        } while (lastId == 0 || pending.containsKey(lastId));
        return lastId;
    }
}
