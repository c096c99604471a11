package dev.faisca.fila.internal;

import dev.faisca.fila.internal.wire.Body;
import dev.faisca.fila.internal.wire.Result;
import java.util.function.Function;

/**
 * An administrative call: what is sent, and how the result becomes the method's answer.
 *
 * @param what what is asked, for people
 * @param queue whose node is asked; empty if none is concerned
 * @param subject what a refusal without a text is about
 * @param repeatable a read, which is sent again by itself after a lost connection
 */
public record Query<T>(
        String what, String queue, String subject, boolean repeatable, Body body, Function<Result, T> parse) {}
