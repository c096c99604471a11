package dev.faisca.fila;

import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * Messages leased under a name.
 *
 * @param name the name
 * @param again the batch was open before this call
 * @param expiresAt when it ends
 * @param messageCount how many messages are not finished
 * @param messages these messages; empty if they were asked for in another form
 * @param arrow the messages as an Arrow IPC stream, if that was asked for
 */
public record LeasedBatch(
        String name,
        boolean again,
        Instant expiresAt,
        long messageCount,
        List<Message> messages,
        Optional<byte[]> arrow) {}
