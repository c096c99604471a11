package dev.faisca.fila.internal;

import dev.faisca.fila.ConnectionEvent;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/** Hands connection events to the user's listener, in order, on the client's executor. */
final class Announcer {
    private final Engine engine;
    private final Consumer<ConnectionEvent> listener;
    private final ArrayDeque<ConnectionEvent> waiting = new ArrayDeque<>();
    private boolean busy;

    Announcer(Engine engine, Consumer<ConnectionEvent> listener) {
        this.engine = engine;
        this.listener = listener;
    }

    void announce(ConnectionEvent event) {
        if (listener == null) {
            return;
        }
        synchronized (this) {
            waiting.add(event);
            if (busy) {
                return;
            }
            busy = true;
        }
        try {
            engine.executor.execute(this::run);
        } catch (RejectedExecutionException e) {
            run();
        }
    }

    /** Waits until every event was handed over, for a while. */
    synchronized void flush(Deadline deadline) {
        try {
            while (busy && deadline.leftNanos() > 0) {
                wait(deadline.waitMillis());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        while (true) {
            ConnectionEvent event;
            synchronized (this) {
                event = waiting.poll();
                if (event == null) {
                    busy = false;
                    notifyAll();
                    return;
                }
            }
            try {
                listener.accept(event);
            } catch (RuntimeException e) {
                engine.config.logger().log(System.Logger.Level.ERROR, "the connection listener failed", e);
            }
        }
    }
}
