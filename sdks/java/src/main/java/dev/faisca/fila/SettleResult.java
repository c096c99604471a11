package dev.faisca.fila;

import java.util.Optional;

/**
 * What became of one message of {@link FilaClient#ackMany} and its like.
 *
 * @param messageId the message
 * @param exception why it was not settled; null if it was
 */
public record SettleResult(String messageId, FilaException exception) {
    /**
     * Whether the message was settled.
     *
     * @return true if the broker said so
     */
    public boolean settled() {
        return exception == null;
    }

    /**
     * Why the message was not settled.
     *
     * @return empty if it was
     */
    public Optional<FilaException> error() {
        return Optional.ofNullable(exception);
    }
}
