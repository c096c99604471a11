package dev.faisca.fila.internal;

import dev.faisca.fila.FilaException;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Bounds the bytes under way without an answer. Who comes first is let in first; what is larger than the
 * bound is let in alone.
 */
final class Gate {
    private static final class Waiter {
        final long bytes;
        final Condition admission;
        boolean admitted;

        Waiter(long bytes, Condition admission) {
            this.bytes = bytes;
            this.admission = admission;
        }
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final ArrayDeque<Waiter> waiting = new ArrayDeque<>();
    private final long limit;
    private long used;
    private FilaException closed;

    Gate(long limit) {
        this.limit = limit;
    }

    /** Waits for room; false when the time is up first. */
    boolean enter(long bytes, Deadline deadline) throws InterruptedException {
        lock.lock();
        try {
            if (waiting.isEmpty() && fits(bytes)) {
                used += bytes;
                return true;
            }
            Waiter waiter = new Waiter(bytes, lock.newCondition());
            waiting.add(waiter);
            try {
                while (!waiter.admitted && closed == null) {
                    long left = deadline.leftNanos();
                    if (left <= 0) {
                        return false;
                    }
                    waiter.admission.await(left, TimeUnit.NANOSECONDS);
                }
                if (!waiter.admitted) {
                    throw Errors.again(closed);
                }
                return true;
            } catch (InterruptedException e) {
                if (waiter.admitted) {
                    used -= bytes;
                }
                throw e;
            } finally {
                waiting.remove(waiter);
                admit();
            }
        } finally {
            lock.unlock();
        }
    }

    void leave(long bytes) {
        if (bytes == 0) {
            return;
        }
        lock.lock();
        try {
            used -= bytes;
            admit();
        } finally {
            lock.unlock();
        }
    }

    /** Whoever waits fails with this, now and later. */
    void close(FilaException why) {
        lock.lock();
        try {
            if (closed == null) {
                closed = why;
            }
            waiting.forEach(waiter -> waiter.admission.signal());
        } finally {
            lock.unlock();
        }
    }

    private void admit() {
        while (!waiting.isEmpty() && fits(waiting.peek().bytes)) {
            Waiter first = waiting.poll();
            used += first.bytes;
            first.admitted = true;
            first.admission.signal();
        }
    }

    private boolean fits(long bytes) {
        return used == 0 || used + bytes <= limit;
    }
}
