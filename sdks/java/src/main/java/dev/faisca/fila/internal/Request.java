package dev.faisca.fila.internal;

import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.InvalidBodyException;
import dev.faisca.fila.internal.wire.Opcodes;
import dev.faisca.fila.internal.wire.Result;
import java.util.Map;

/** A call that is sent by itself and answered by one result. */
final class Request<T> extends Ticket<T> {
    final int opcode;
    final byte[] body;
    final boolean repeatable;
    int hops; // a link's lock guards it
    private final Query<T> query;
    private Result reply;

    Request(Engine engine, Query<T> query) {
        super(engine, query.what());
        this.query = query;
        opcode = query.body().opcode();
        body = query.body().encoded();
        repeatable = query.repeatable();
    }

    @Override
    String queue() {
        return query.queue();
    }

    void answered(byte[] bytes) {
        Result decoded = (Result) Bodies.decode(Opcodes.replyTo(opcode), bytes);
        synchronized (this) {
            reply = decoded;
        }
        finish(null);
    }

    @Override
    T value() {
        Result answer;
        synchronized (this) {
            answer = reply;
        }
        if (answer.code() != 0) {
            throw Errors.refusal(answer.code(), answer.message(), query.subject(), Map.of());
        }
        try {
            return query.parse().apply(answer);
        } catch (InvalidBodyException e) {
            throw Errors.protocol(what + ": the answer does not parse: " + e.getMessage());
        }
    }
}
