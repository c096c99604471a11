package dev.faisca.fila.internal;

/** Counts what is under way, for those who wait until nothing is. */
final class Tracker {
    private long count;

    synchronized void enter() {
        count++;
    }

    synchronized void leave() {
        if (--count == 0) {
            notifyAll();
        }
    }

    /** Waits until nothing is under way; false when the time is up first. */
    synchronized boolean await(Deadline deadline) throws InterruptedException {
        while (count > 0) {
            if (deadline.leftNanos() <= 0) {
                return false;
            }
            wait(deadline.waitMillis());
        }
        return true;
    }
}
