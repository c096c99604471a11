package dev.faisca.fila.internal;

import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.Decoder;
import dev.faisca.fila.internal.wire.InvalidBodyException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A frame of items, sent and not yet answered. */
record InFlight(Kind kind, List<Chunk> chunks) {
    int count() {
        int count = 0;
        for (Chunk chunk : chunks) {
            count += chunk.count();
        }
        return count;
    }

    long size() {
        return sizeOf(chunks);
    }

    static long sizeOf(List<Chunk> chunks) {
        long size = 0;
        for (Chunk chunk : chunks) {
            size += chunk.size();
        }
        return size;
    }

    String queue() {
        return chunks.get(0).queue;
    }

    boolean ofOneQueue() {
        for (Chunk chunk : chunks) {
            if (!chunk.queue.equals(queue())) {
                return false;
            }
        }
        return true;
    }

    void fail(FilaException e) {
        for (Chunk chunk : chunks) {
            chunk.fail(e);
        }
    }

    /** Fails what must not be sent again, and returns the rest. */
    List<Chunk> lost(FilaException why, boolean repeat) {
        List<Chunk> again = new ArrayList<>();
        for (Chunk chunk : chunks) {
            if (repeat && chunk.repeatable && !chunk.call.isDone()) {
                again.add(chunk);
            } else {
                chunk.fail(why);
            }
        }
        return again;
    }

    /**
     * Settles the items. Nothing is settled if there are more or fewer results than items. What the streams
     * hold of a settled message goes before its caller hears: its reader does not meet it again.
     */
    void answered(byte[] body, Collection<Stream> streams) {
        Decoder from = new Decoder(body);
        int smallest = kind == Kind.ENQUEUE ? 3 : kind == Kind.ENQUEUE_WITH ? 4 : 1;
        int results = from.count("results", from.u32("results"), smallest);
        if (results != count()) {
            throw new InvalidBodyException("results", results + " for " + count() + " items");
        }
        for (Chunk chunk : chunks) {
            for (int n = 0; n < chunk.count(); n++) {
                int code = from.u8("code");
                String id = kind.enqueues() ? from.string("message_id") : "";
                boolean duplicate = kind == Kind.ENQUEUE_WITH && from.bool("duplicate");
                if (code == 0 && !kind.enqueues()) {
                    for (Stream stream : streams) {
                        if (stream.queue.equals(chunk.queue)) {
                            stream.settled(chunk.call.messageId(chunk.index(n)));
                        }
                    }
                }
                chunk.call.answered(chunk.index(n), code, code == 0 ? id : chunk.queue, duplicate);
            }
        }
    }

    /** A refused frame as smaller ones: one for each queue, or halves of a single queue's. */
    List<List<Chunk>> apart() {
        Map<String, List<Chunk>> byQueue = new LinkedHashMap<>();
        for (Chunk chunk : chunks) {
            byQueue.computeIfAbsent(chunk.queue, name -> new ArrayList<>()).add(chunk);
        }
        if (byQueue.size() > 1) {
            return List.copyOf(byQueue.values());
        }
        int half = count() / 2;
        List<Chunk> left = new ArrayList<>();
        List<Chunk> right = new ArrayList<>();
        for (Chunk chunk : chunks) {
            int here = Math.min(half, chunk.count());
            if (here > 0) {
                left.add(chunk.first(here));
                half -= here;
            }
            if (here < chunk.count()) {
                right.add(chunk.after(here));
            }
        }
        return List.of(left, right);
    }
}
