package dev.faisca.fila;

import java.time.Instant;
import java.util.Map;

/**
 * What a queue is told to be, in one version of it.
 *
 * @param settings by name; empty where there is none
 * @param version which version it is
 * @param madeAt when it was made
 * @param who who made it; empty if that is not known
 * @param note why
 */
public record QueueSettings(Map<String, String> settings, long version, Instant madeAt, String who, String note) {}
