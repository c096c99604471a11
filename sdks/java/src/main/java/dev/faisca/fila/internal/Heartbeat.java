package dev.faisca.fila.internal;

import dev.faisca.fila.FilaException;
import dev.faisca.fila.ForbiddenException;
import dev.faisca.fila.InvalidFrameException;
import dev.faisca.fila.QueueNotFoundException;
import dev.faisca.fila.internal.wire.Bodies;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * A consumer's heart-beat: what it was handed keeps its lease until it is settled. The broker is asked for more
 * time three times within the queue's visibility timeout, which the first question tells. It ends with the
 * subscription, or when handlers that were at work then have settled what they had.
 */
final class Heartbeat {
    private static final int BEATS = 3;
    private static final long AGAIN_MS = 1_000; // until the timeout is known
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final Engine engine;
    private final Stream stream;
    private volatile long pauseMs; // 0: not known

    Heartbeat(Engine engine, Stream stream) {
        this.engine = engine;
        this.stream = stream;
    }

    void beat() {
        if (!stream.isAlive()) {
            return;
        }
        List<String> ids = stream.held();
        if (ids.isEmpty() && pauseMs > 0) {
            later();
        } else {
            ask(ids, 0);
        }
    }

    private void ask(List<String> ids, int at) {
        int end = Math.min(ids.size(), at + BulkQueries.EXTEND_IDS);
        try {
            engine.ask(BulkQueries.extendHeld(stream.queue, List.copyOf(ids.subList(at, end))))
                    .future(Deadline.after(PATIENCE))
                    .whenComplete((reply, error) -> answered(ids, end, reply, error));
        } catch (FilaException e) {
            answered(ids, end, null, e);
        }
    }

    private void answered(List<String> ids, int end, Bodies.ExtendResult reply, Throwable error) {
        if (error != null) {
            Throwable why = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
            if (why instanceof InvalidFrameException
                    || why instanceof ForbiddenException
                    || why instanceof QueueNotFoundException) {
                stream.doom((FilaException) why); // it will not be otherwise next time
            } else {
                later();
            }
            return;
        }
        stream.forget(reply.missing());
        pauseMs = Math.max(1, reply.visibilityMs() / BEATS);
        if (end < ids.size()) {
            ask(ids, end);
        } else {
            later();
        }
    }

    private void later() {
        if (!stream.isAlive()) {
            return;
        }
        try {
            engine.timer.schedule(this::beat, pauseMs > 0 ? pauseMs : AGAIN_MS, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) {
            return; // the client is closed
        }
    }
}
