package dev.faisca.fila.internal;

import dev.faisca.fila.BatchMode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Chunks of one kind until they become a frame. Decides when that is; the session sends. A link's lock
 * guards it.
 */
final class Collector {
    private static final int ENOUGH = 100; // items that need not wait for company

    private final int itemsMax;
    private final long bytesMax;
    private final ArrayDeque<Chunk> chunks = new ArrayDeque<>();
    private BatchMode mode;
    private int items;
    private long bytes;
    private long oldestAt;
    private int inFlight; // frames
    private long left; // items of callers who have gone, at most, see forget
    private long leftBytes;

    Collector(BatchMode mode, int itemsMax, long bytesMax) {
        this.mode = mode;
        this.itemsMax = itemsMax;
        this.bytesMax = bytesMax;
    }

    void add(Chunk chunk) {
        if (chunks.isEmpty()) {
            oldestAt = System.nanoTime();
        }
        chunks.add(chunk);
        count(chunk, 1);
    }

    /** Takes chunks that must be sent before the others. */
    void putBack(List<Chunk> earlier) {
        for (int i = earlier.size() - 1; i >= 0; i--) {
            chunks.addFirst(earlier.get(i));
            count(earlier.get(i), 1);
        }
    }

    boolean due() {
        if (chunks.isEmpty()) {
            return false;
        }
        if (items >= itemsMax || bytes >= bytesMax) {
            return true;
        }
        return switch (mode.kind()) {
            case AUTO -> inFlight == 0 || items >= ENOUGH;
            case LINGER -> lingerNanos() <= 0;
            case DISABLED -> true;
        };
    }

    /** How long a frame is not due yet; Long.MAX_VALUE if nothing lingers. */
    long lingerNanos() {
        if (mode.kind() != BatchMode.Kind.LINGER || chunks.isEmpty()) {
            return Long.MAX_VALUE;
        }
        return oldestAt + mode.lingerTime().toNanos() - System.nanoTime();
    }

    /** The next frame's chunks. */
    List<Chunk> take() {
        List<Chunk> taken = new ArrayList<>(Math.min(chunks.size(), 16));
        int itemsLeft = itemsMax;
        long bytesLeft = bytesMax;
        while (!chunks.isEmpty() && itemsLeft > 0) {
            Chunk next = chunks.peek();
            boolean alone = mode.kind() == BatchMode.Kind.DISABLED;
            if (!taken.isEmpty() && alone && next.call != taken.get(0).call) {
                break;
            }
            int fitting = next.fitting(itemsLeft, bytesLeft);
            Chunk part = fitting == next.count() ? next : next.first(fitting);
            if (!taken.isEmpty() && part.size() > bytesLeft) {
                break;
            }
            chunks.poll();
            if (part != next) {
                chunks.addFirst(next.after(fitting));
            }
            count(part, -1);
            itemsLeft -= part.count();
            bytesLeft -= part.size();
            taken.add(part);
        }
        return taken;
    }

    List<Chunk> takeAll() {
        List<Chunk> all = List.copyOf(chunks);
        chunks.clear();
        items = 0;
        bytes = 0;
        return all;
    }

    /**
     * A caller has gone, and up to so many items and bytes here are its. They are never sent, but dropped only
     * once they may be an eighth of what waits: thousands of callers can reach their deadline in one moment, and
     * looking for each one's items would take all of them the square of that. Returns the bytes that were
     * dropped.
     */
    long forget(int gone, long goneBytes) {
        left += gone;
        leftBytes += goneBytes;
        if (8 * left < items && 8 * leftBytes < bytes) {
            return 0;
        }
        left = 0;
        leftBytes = 0;
        long before = bytes;
        chunks.removeIf(chunk -> {
            boolean done = chunk.call.isDone();
            if (done) {
                count(chunk, -1);
            }
            return done;
        });
        return before - bytes;
    }

    int hops() {
        return chunks.stream().mapToInt(chunk -> chunk.hops).max().orElse(0);
    }

    void sent() {
        inFlight++;
    }

    void landed() {
        inFlight--;
    }

    /** Nothing lingers any more. */
    void hurry() {
        if (mode.kind() == BatchMode.Kind.LINGER) {
            mode = BatchMode.auto();
        }
    }

    private void count(Chunk chunk, int sign) {
        items += sign * chunk.count();
        bytes += (long) sign * chunk.size();
    }
}
