package dev.faisca.fila.internal;

import dev.faisca.fila.CallInterruptedException;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.RequestTimeoutException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * What one caller waits for, blocking or by a future. Its monitor may be taken under a link's lock, never
 * the other way round.
 */
public abstract class Ticket<T> {
    final Engine engine;
    final String what;
    private volatile boolean done;
    private volatile Thread waiter;
    private FilaException failure;
    private Future<T> future;
    private ScheduledFuture<?> alarm;

    Ticket(Engine engine, String what) {
        this.engine = engine;
        this.what = what;
    }

    /** The answer, once there is one; a refusal is thrown. */
    abstract T value();

    /** The queue whose node is asked; empty if none is concerned. */
    abstract String queue();

    final boolean isDone() {
        return done;
    }

    /** Ends the waiting, with the answer if there is no failure. Later calls change nothing. */
    final void finish(FilaException why) {
        ScheduledFuture<?> pending;
        boolean hasFuture;
        synchronized (this) {
            if (done) {
                return;
            }
            failure = why;
            done = true;
            pending = alarm;
            hasFuture = future != null && !future.isDone(); // its caller may have completed it
        }
        LockSupport.unpark(waiter); // no monitor is waited for: virtual threads must not pin their carriers
        engine.calls.leave();
        if (pending != null) {
            pending.cancel(false);
        }
        if (hasFuture) {
            engine.completions.add(this);
        }
    }

    /** Waits in this thread; one thread at most does. */
    public final T await(Deadline deadline) {
        waiter = Thread.currentThread();
        while (!done) {
            long left = deadline.leftNanos();
            if (waiter.isInterrupted()) {
                giveUp(new CallInterruptedException(what + ": interrupted before the broker answered", null));
            } else if (left <= 0) {
                giveUp(tooLate(deadline, ""));
            } else {
                LockSupport.parkNanos(this, left);
            }
        }
        return result();
    }

    /** The same as a future, which is completed on the client's executor. */
    public final CompletableFuture<T> future(Deadline deadline) {
        Future<T> made = new Future<>(this);
        boolean ready;
        synchronized (this) {
            future = made;
            ready = done;
            if (!done && deadline.timeout() != null) {
                alarm = engine.timer.schedule(
                        () -> giveUp(tooLate(deadline, "")), deadline.leftNanos(), TimeUnit.NANOSECONDS);
            }
        }
        if (ready) {
            engine.completions.add(this);
            engine.completions.flush();
        }
        return made;
    }

    /** Nobody waits any more: what was not sent yet never will be. */
    final void giveUp(FilaException why) {
        finish(why);
        engine.abandon(this);
        engine.completions.flush();
    }

    final RequestTimeoutException tooLate(Deadline deadline, String why) {
        return new RequestTimeoutException(
                what + ": no answer from " + engine.stateOf(queue(), Deadline.words(deadline.timeout())) + why, null);
    }

    private T result() {
        FilaException why;
        synchronized (this) {
            why = failure;
        }
        if (why != null) {
            throw Errors.again(why);
        }
        return value();
    }

    final void complete() {
        try {
            future.answer(result());
        } catch (RuntimeException e) {
            future.fail(e);
        }
    }

    final boolean hasDependents() {
        return future.getNumberOfDependents() > 0;
    }

    /** Whoever completes it from outside, by cancel or orTimeout, gives the call up. */
    private static final class Future<T> extends CompletableFuture<T> {
        private final Ticket<T> ticket;

        Future(Ticket<T> ticket) {
            this.ticket = ticket;
        }

        void answer(T value) {
            super.complete(value);
        }

        void fail(RuntimeException e) {
            super.completeExceptionally(e);
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            return leave(super.cancel(mayInterruptIfRunning));
        }

        @Override
        public boolean complete(T value) {
            return leave(super.complete(value));
        }

        @Override
        public boolean completeExceptionally(Throwable e) {
            return leave(super.completeExceptionally(e));
        }

        private boolean leave(boolean first) {
            if (first) {
                ticket.giveUp(new CallInterruptedException(ticket.what + ": cancelled by its caller", null));
            }
            return first;
        }
    }
}
