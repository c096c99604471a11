package dev.faisca.fila;

import java.util.List;

/**
 * What an API key may do.
 *
 * @param keyId the key
 * @param superadmin whether it may do everything
 * @param permissions what it may do otherwise
 */
public record Acl(String keyId, boolean superadmin, List<Permission> permissions) {}
