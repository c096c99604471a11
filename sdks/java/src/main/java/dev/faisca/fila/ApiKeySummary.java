package dev.faisca.fila;

import java.time.Instant;
import java.util.Optional;

/**
 * An API key, without its secret.
 *
 * @param keyId its id
 * @param name its name
 * @param createdAt when it was made
 * @param expiresAt when it ends; empty for never
 * @param superadmin whether it may do everything
 */
public record ApiKeySummary(
        String keyId, String name, Instant createdAt, Optional<Instant> expiresAt, boolean superadmin) {}
