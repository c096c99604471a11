package dev.faisca.fila.internal;

/**
 * Items of one call and one queue that follow one another, encoded in one array: the unit that is collected,
 * cut into frames and sent on. A slice shares the array.
 */
final class Chunk {
    final Call<?> call;
    final String queue;
    final boolean repeatable; // every item has an idempotency key: it may be sent again
    final byte[] bytes;
    int hops; // how often it was sent on to another node
    private final int[] ends; // where each item ends in the array
    private final int offset; // the call's index of the array's first item
    private final int from;
    private final int to;

    Chunk(Call<?> call, String queue, boolean repeatable, byte[] bytes, int[] ends, int offset) {
        this(call, queue, repeatable, bytes, ends, offset, 0, ends.length, 0);
    }

    private Chunk(Call<?> call, String queue, boolean repeatable, byte[] bytes, int[] ends, int offset, int from,
            int to, int hops) {
        this.call = call;
        this.queue = queue;
        this.repeatable = repeatable;
        this.bytes = bytes;
        this.ends = ends;
        this.offset = offset;
        this.from = from;
        this.to = to;
        this.hops = hops;
    }

    int count() {
        return to - from;
    }

    int start() {
        return from == 0 ? 0 : ends[from - 1];
    }

    int size() {
        return ends[to - 1] - start();
    }

    /** The first items, as many as fit; at least one. */
    int fitting(int itemsMax, long bytesMax) {
        if (count() <= itemsMax && size() <= bytesMax) {
            return count();
        }
        int count = 1;
        while (count < itemsMax && count < count() && ends[from + count] - start() <= bytesMax) {
            count++;
        }
        return count;
    }

    Chunk first(int count) {
        return slice(from, from + count);
    }

    Chunk after(int count) {
        return slice(from + count, to);
    }

    /** The call's index of the n-th item here. */
    int index(int n) {
        return offset + from + n;
    }

    void fail(dev.faisca.fila.FilaException e) {
        for (int n = 0; n < count(); n++) {
            call.settle(index(n), e);
        }
    }

    private Chunk slice(int first, int end) {
        return new Chunk(call, queue, repeatable, bytes, ends, offset, first, end, hops);
    }
}
