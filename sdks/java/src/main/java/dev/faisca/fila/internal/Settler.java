package dev.faisca.fila.internal;

import dev.faisca.fila.SettleResult;
import dev.faisca.fila.internal.wire.Encoder;
import java.util.List;
import java.util.function.Function;

/** Acks, nacks and releases to chunks. They wait for no room: they make some. */
public final class Settler {
    private static final int REASON_CHARS_MAX = 4096;

    private final Engine engine;

    public Settler(Engine engine) {
        this.engine = engine;
    }

    public Ticket<Void> settle(Kind kind, String queue, String messageId, String reason) {
        return hand(kind, queue, List.of(messageId), reason, Call::nothing);
    }

    public Ticket<List<SettleResult>> settleMany(Kind kind, String queue, List<String> messageIds, String reason) {
        return hand(kind, queue, List.copyOf(messageIds), reason, Call::settleResults);
    }

    private <T> Call<T> hand(
            Kind kind, String queue, List<String> ids, String given, Function<Call<?>, T> outcome) {
        String reason = kind == Kind.NACK ? readable(given) : null;
        Encoder to = new Encoder((44 + queue.length() + (reason == null ? 0 : reason.length() + 2)) * ids.size());
        int[] ends = new int[ids.size()];
        for (int i = 0; i < ends.length; i++) {
            to.string("queue", queue);
            to.string("message id", ids.get(i));
            if (kind == Kind.NACK) {
                to.string("error", reason);
            }
            ends[i] = to.size();
        }
        engine.begin(false);
        String what = kind.name().toLowerCase(java.util.Locale.ROOT) + " of queue \"" + queue + "\"";
        Call<T> call = new Call<>(engine, what, kind, queue, ends.length, ids, outcome);
        if (ids.isEmpty()) {
            call.finish(null);
        } else {
            engine.submit(engine.route(queue), kind, new Chunk(call, queue, false, to.compact(), ends, 0));
        }
        return call;
    }

    /** A reason of a length that is pleasant to read and that can be sent, without halves of characters. */
    static String readable(String reason) {
        String clipped = reason.length() > REASON_CHARS_MAX ? reason.substring(0, REASON_CHARS_MAX) : reason;
        return clipped.replaceAll("[\\ud800-\\udfff]", "?");
    }
}
