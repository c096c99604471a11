package dev.faisca.fila.internal;

import dev.faisca.fila.internal.wire.Body;
import dev.faisca.fila.internal.wire.Result;
import java.time.Duration;
import java.util.function.Function;

/**
 * An administrative call: what is sent, and how the result becomes the method's answer.
 *
 * @param what what is asked, for people
 * @param queue whose node is asked; empty if none is concerned
 * @param subject what a refusal without a text is about
 * @param repeatable a read, which is sent again by itself after a lost connection
 * @param waitTime how long the broker waits before it answers
 * @param settles whether it concerns what is leased already, and is allowed while the client drains
 */
public record Query<T>(
        String what,
        String queue,
        String subject,
        boolean repeatable,
        Duration waitTime,
        boolean settles,
        Body body,
        Function<Result, T> parse) {
    Query(String what, String queue, String subject, boolean repeatable, Body body, Function<Result, T> parse) {
        this(what, queue, subject, repeatable, Duration.ZERO, false, body, parse);
    }

    Query<T> after(Duration pause) {
        return new Query<>(what, queue, subject, repeatable, pause, settles, body, parse);
    }

    Query<T> settling() {
        return new Query<>(what, queue, subject, repeatable, waitTime, true, body, parse);
    }
}
