package dev.faisca.fila.internal;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Pings a silent broker and gives the connection up when nothing comes back. */
final class KeepAlive implements Runnable {
    private final Session session;
    private final Connection connection;
    private final long intervalNanos;
    private final long timeoutNanos;
    private boolean pinged;
    private long pingedAt;
    private long moved;
    private boolean stopped;
    private ScheduledFuture<?> next;

    KeepAlive(Session session, Connection connection, Config config) {
        this.session = session;
        this.connection = connection;
        intervalNanos = config.keepAliveInterval().toNanos();
        timeoutNanos = config.keepAliveTimeout().toNanos();
    }

    synchronized void start() {
        again(intervalNanos);
    }

    synchronized void stop() {
        stopped = true;
        next.cancel(false);
    }

    @Override
    public synchronized void run() {
        if (stopped) {
            return;
        }
        long silent = connection.silentNanos();
        if (silent < intervalNanos) {
            pinged = false;
            again(intervalNanos - silent);
            return;
        }
        long now = System.nanoTime();
        if (!pinged || connection.movedBytes() != moved) {
            // Bytes that move are a sign of life: our Ping may stand behind a large message on a slow line.
            if (!pinged) {
                session.ping();
            }
            pinged = true;
            pingedAt = now;
            moved = connection.movedBytes();
        } else if (now - pingedAt >= timeoutNanos) {
            long millis = TimeUnit.NANOSECONDS.toMillis(silent);
            connection.drop(Errors.lost(connection.address + " was silent for " + millis + " ms", null));
            return;
        }
        again(Math.min(timeoutNanos / 4, timeoutNanos - (now - pingedAt)));
    }

    private void again(long nanos) {
        next = session.link.engine.timer.schedule(this, Math.max(1_000_000, nanos), TimeUnit.NANOSECONDS);
    }
}
