package dev.faisca.fila;

import java.time.Instant;
import java.util.List;

/**
 * A line of a queue's history.
 *
 * @param version which version it is
 * @param madeAt when it was made
 * @param who who made it; empty if that is not known
 * @param note why
 * @param changed the settings that differ from the version before
 */
public record QueueVersion(long version, Instant madeAt, String who, String note, List<String> changed) {}
