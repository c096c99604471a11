package dev.faisca.fila;

import dev.faisca.fila.internal.Deadline;
import dev.faisca.fila.internal.Engine;
import dev.faisca.fila.internal.Kind;
import dev.faisca.fila.internal.Producer;
import dev.faisca.fila.internal.Settler;
import dev.faisca.fila.internal.Ticket;
import java.time.Duration;
import java.util.List;

/**
 * What the blocking and the async client share: the engine, and the timeout of this view of it.
 *
 * @param timeout null waits for ever
 * @param ownTimeout whether it was given for this view
 */
record ClientCore(Engine engine, Producer producer, Settler settler, Duration timeout, boolean ownTimeout) {
    private static final Duration WAIT_MARGIN = Duration.ofSeconds(10); // for an answer after the broker's own wait

    static ClientCore of(Engine engine, Duration timeout) {
        return new ClientCore(engine, new Producer(engine), new Settler(engine), timeout, false);
    }

    ClientCore withTimeout(Duration other) {
        if (other.isZero() || other.isNegative()) {
            throw new IllegalArgumentException("timeout must be positive, not " + other);
        }
        return new ClientCore(engine, producer, settler, other, true);
    }

    Deadline deadline() {
        return Deadline.after(timeout);
    }

    /** For a call that the broker answers after a wait of its own. A timeout of this view stands. */
    Deadline deadlineAfter(Duration wait) {
        boolean longer = timeout != null && !ownTimeout && !wait.isZero() && wait.plus(WAIT_MARGIN).compareTo(timeout) > 0;
        return Deadline.after(longer ? wait.plus(WAIT_MARGIN) : timeout);
    }

    Ticket<Void> settle(Kind kind, String queue, String messageId, String reason) {
        return settler.settle(kind, queue, messageId, reason);
    }

    Ticket<List<SettleResult>> settleMany(Kind kind, String queue, List<String> messageIds, String reason) {
        return settler.settleMany(kind, queue, messageIds, reason);
    }
}
