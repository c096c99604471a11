package dev.faisca.fila;

/**
 * A new API key.
 *
 * @param keyId its id, for the other calls
 * @param key the secret; shown only now
 * @param superadmin whether it may do everything
 */
public record ApiKey(String keyId, String key, boolean superadmin) {
    /** Without the secret: values end up in logs. */
    @Override
    public String toString() {
        return "ApiKey[keyId=" + keyId + ", superadmin=" + superadmin + "]";
    }
}
