package dev.faisca.fila;

import java.time.Instant;
import java.util.List;

/**
 * Messages leased under a name.
 *
 * @param name the name
 * @param again the batch was open before this call
 * @param expiresAt when it ends
 * @param messages the messages that are not finished
 */
public record LeasedBatch(String name, boolean again, Instant expiresAt, List<Message> messages) {}
