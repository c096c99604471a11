package dev.faisca.fila;

import java.time.Instant;

/**
 * A lease batch that is open.
 *
 * @param name its name
 * @param messages messages that are not finished
 * @param leasedAt when it was leased
 * @param expiresAt when it ends
 */
public record OpenBatch(String name, long messages, Instant leasedAt, Instant expiresAt) {}
