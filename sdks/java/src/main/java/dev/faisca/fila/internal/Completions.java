package dev.faisca.fila.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;

/**
 * Futures whose answer is here. They are completed on the client's executor, those of one frame together, and
 * never by a thread that holds a lock of the client's: {@link #add} under locks, {@link #flush} without.
 */
final class Completions {
    private final ConcurrentLinkedQueue<Ticket<?>> ready = new ConcurrentLinkedQueue<>();
    private final Engine engine;

    Completions(Engine engine) {
        this.engine = engine;
    }

    void add(Ticket<?> ticket) {
        ready.add(ticket);
    }

    void flush() {
        if (ready.isEmpty()) {
            return;
        }
        List<Ticket<?>> batch = new ArrayList<>();
        for (Ticket<?> next = ready.poll(); next != null; next = ready.poll()) {
            batch.add(next);
        }
        if (batch.isEmpty()) {
            return;
        }
        try {
            engine.executor.execute(() -> complete(batch));
        } catch (RejectedExecutionException e) {
            complete(batch); // somebody waits for them; this thread is all there is
        }
    }

    private static void complete(List<Ticket<?>> batch) {
        List<Ticket<?>> followed = new ArrayList<>();
        for (Ticket<?> ticket : batch) {
            // What runs after one of them may wait for another: those without followers go first.
            if (ticket.hasDependents()) {
                followed.add(ticket);
            } else {
                ticket.complete();
            }
        }
        followed.forEach(Ticket::complete);
    }
}
