package dev.faisca.fila.internal;

import dev.faisca.fila.EnqueueResult;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.SettleResult;
import dev.faisca.fila.internal.wire.Cause;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Some items of one kind, each with a result. They may travel in several frames, together with those of
 * other calls, over several connections.
 */
public final class Call<T> extends Ticket<T> {
    final Kind kind;
    private final String queue;
    private final Function<Call<?>, T> outcome;
    private final List<String> messageIds; // of settlements
    private final String[] stored; // of enqueues
    private final boolean[] duplicate;
    private final FilaException[] errors;
    private final boolean[] settled;
    private int left;
    volatile long bytes; // of its chunks, as far as they were handed over

    Call(Engine engine, String what, Kind kind, String queue, int count, List<String> messageIds,
            Function<Call<?>, T> outcome) {
        super(engine, what);
        this.kind = kind;
        this.queue = queue;
        this.outcome = outcome;
        this.messageIds = messageIds;
        stored = new String[kind.enqueues() ? count : 0];
        duplicate = new boolean[kind == Kind.ENQUEUE_WITH ? count : 0];
        errors = new FilaException[count];
        settled = new boolean[count];
        left = count;
    }

    @Override
    T value() {
        return outcome.apply(this);
    }

    @Override
    String queue() {
        return queue;
    }

    int count() {
        return errors.length;
    }

    /** The message that an item settles. */
    String messageId(int index) {
        return messageIds.get(index);
    }

    /** The broker's code for one item. */
    void answered(int index, int code, String id, boolean again) {
        if (code == 0) {
            synchronized (this) {
                if (!settled[index] && kind.enqueues()) {
                    stored[index] = id;
                    if (again) {
                        duplicate[index] = true;
                    }
                }
            }
            settle(index, null);
        } else if (kind.enqueues()) {
            settle(index, Errors.refusal(code, null, "queue \"" + id + "\"", Map.of()));
        } else {
            settle(index, Errors.refusedSettlement(code, queue, messageId(index)));
        }
    }

    void settle(int index, FilaException error) {
        synchronized (this) {
            if (settled[index]) {
                return;
            }
            settled[index] = true;
            errors[index] = error;
            if (--left > 0) {
                return;
            }
        }
        finish(null);
    }

    // What the outcome is made of; read when the call is done.

    static String oneId(Call<?> call) {
        call.throwFirst();
        return call.stored[0];
    }

    static Void nothing(Call<?> call) {
        call.throwFirst();
        return null;
    }

    static List<EnqueueResult> enqueueResults(Call<?> call) {
        List<EnqueueResult> results = new ArrayList<>(call.errors.length);
        for (int i = 0; i < call.errors.length; i++) {
            results.add(call.errors[i] != null
                    ? new EnqueueResult.Failed(call.errors[i])
                    : new EnqueueResult.Stored(call.stored[i], call.kind == Kind.ENQUEUE_WITH && call.duplicate[i]));
        }
        return results;
    }

    static List<SettleResult> settleResults(Call<?> call) {
        List<SettleResult> results = new ArrayList<>(call.errors.length);
        for (int i = 0; i < call.errors.length; i++) {
            results.add(new SettleResult(call.messageIds.get(i), call.errors[i]));
        }
        return results;
    }

    private void throwFirst() {
        if (errors[0] != null) {
            throw Errors.again(errors[0]);
        }
    }

    /** Whether a refusal of this cause leaves nothing applied, so that a frame's items may be tried apart. */
    static boolean separable(FilaException e) {
        return e.code().equals(Cause.FORBIDDEN.spelling()) || e.code().equals(Cause.INVALID_FRAME.spelling());
    }
}
