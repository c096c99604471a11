package dev.faisca.fila;

import java.time.Instant;
import java.util.List;

/**
 * A queue at one moment, to be read without taking anything.
 *
 * @param token its name, for {@link FilaClient#browsePage}
 * @param expiresAt when it ends
 * @param messages how many it holds
 * @param ranges cover it without overlap, for readers in parallel
 */
public record Snapshot(String token, Instant expiresAt, long messages, List<Range> ranges) {
    /**
     * A piece of a snapshot.
     *
     * @param start where it begins
     * @param end where it ends
     */
    public record Range(byte[] start, byte[] end) {}
}
