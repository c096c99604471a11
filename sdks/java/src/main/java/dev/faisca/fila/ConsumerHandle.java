package dev.faisca.fila;

import dev.faisca.fila.internal.Delivered;
import dev.faisca.fila.internal.Stream;
import java.lang.System.Logger.Level;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;

/**
 * A running callback consumer. {@link #done()} tells when and why it ended: an error of the subscription never
 * disappears in a thread that nobody watches.
 */
public final class ConsumerHandle implements AutoCloseable {
    private final ClientCore core;
    private final ConsumeOptions options;
    private final MessageHandler handler;
    private final CompletableFuture<Void> done = new CompletableFuture<>();
    private Stream stream;
    private boolean finished; // this object's monitor guards it
    private FilaException refusal; // the executor's; this object's monitor guards it
    private int workers; // tasks on the executor; this object's monitor guards it

    ConsumerHandle(ClientCore core, ConsumeOptions options, MessageHandler handler) {
        this.core = core;
        this.options = options;
        this.handler = handler;
    }

    void start(String queue) {
        Stream opened = core.engine().subscribe(queue, options.prefetch(), options.heartbeat(), this::stirred);
        opened.atWork(true);
        synchronized (this) {
            stream = opened;
        }
        core.engine().awaitOpen(opened, core.deadline());
        stirred();
    }

    /**
     * When and why the consumer ended, after the last handler has returned.
     *
     * @return done without a value when it was cancelled or the client was drained or closed; failed with a
     *     {@link FilaException} when the subscription failed
     */
    public CompletableFuture<Void> done() {
        return done.copy();
    }

    /**
     * Whether messages are still being handled or may come.
     *
     * @return false after the end
     */
    public boolean isActive() {
        return !done.isDone();
    }

    /**
     * Ends the subscription and hands back what no handler was given. Handlers that are running finish; {@link
     * #done()} tells when. May be called again, and from a handler.
     */
    public void cancel() {
        Stream open;
        synchronized (this) {
            open = stream;
        }
        open.close();
    }

    /** The same as {@link #cancel()}. */
    @Override
    public void close() {
        cancel();
    }

    /** There may be something to read, or the end: see that enough workers look at it. */
    private void stirred() {
        while (true) {
            synchronized (this) {
                if (stream == null || workers >= options.concurrency()) {
                    return;
                }
                if (!stream.hasNext()) {
                    if (workers == 0 && !finished && stream.isOver()) {
                        finished = true;
                        finish();
                    }
                    return;
                }
                workers++;
            }
            core.engine().handling(true);
            try {
                core.engine().executor().execute(this::work);
            } catch (RejectedExecutionException e) {
                refused(e);
                return;
            }
        }
    }

    /** Nobody can handle messages any more. */
    private void refused(RejectedExecutionException e) {
        String text = "the executor refused a message handler of queue \"" + stream.queue + "\"";
        core.engine().log(Level.ERROR, text, e);
        synchronized (this) {
            if (refusal == null) {
                refusal = new ClientClosedException(text, e);
            }
        }
        left();
        cancel();
    }

    private void work() {
        try {
            boolean again = true;
            while (again) {
                Delivered next = stream.poll();
                again = next != null && handle(new Message(core, stream.queue, next));
            }
        } finally {
            left();
            stirred(); // what came after the last look
        }
    }

    private void left() {
        synchronized (this) {
            workers--;
        }
        core.engine().handling(false);
    }

    /** False: this thread is wanted elsewhere, and another goes on. */
    private boolean handle(Message message) {
        try {
            handler.handle(message);
            if (options.autoAck() && !message.isSettled()) {
                watch(message, "ack", message.ackAsync());
            }
            return true;
        } catch (Exception | Error e) {
            if (e instanceof InterruptedException || Thread.currentThread().isInterrupted()) {
                // The handler was told to stop; that is no fault of the message's, nor of those behind it.
                if (!message.isSettled()) {
                    watch(message, "release", message.releaseAsync());
                }
                Thread.currentThread().interrupt();
                return false;
            }
            core.engine().log(Level.WARNING, "the handler of queue \"" + message.queue() + "\" failed at message " + message.id(), e);
            if (!message.isSettled()) {
                watch(message, "nack", message.nackAsync(e.toString()));
            }
            if (e instanceof VirtualMachineError fatal) {
                throw fatal;
            }
            return true;
        }
    }

    private void watch(Message message, String what, CompletableFuture<Void> settled) {
        settled.exceptionally(e -> {
            core.engine().log(Level.WARNING, what + " of message " + message.id() + " failed; it is delivered again", e);
            return null;
        });
    }

    private void finish() {
        stream.atWork(false);
        FilaException failure = stream.failure() != null ? stream.failure() : refusal;
        if (failure != null) {
            core.engine().log(Level.ERROR, "the consumer of queue \"" + stream.queue + "\" has ended: " + failure.getMessage(), null);
        }
        Runnable complete = () -> {
            if (failure == null) {
                done.complete(null);
            } else {
                done.completeExceptionally(failure);
            }
        };
        try {
            core.engine().executor().execute(complete);
        } catch (RejectedExecutionException e) {
            complete.run();
        }
    }
}
