package dev.faisca.fila;

import java.util.Optional;

/** What became of one message of {@link FilaClient#enqueueMany}. */
public sealed interface EnqueueResult {
    /**
     * The broker has stored the message.
     *
     * @param messageId the message's id
     * @param duplicate the queue knew the idempotency key: the id is the first message's
     */
    record Stored(String messageId, boolean duplicate) implements EnqueueResult {
        @Override
        public String messageIdOrThrow() {
            return messageId;
        }

        @Override
        public Optional<FilaException> error() {
            return Optional.empty();
        }
    }

    /**
     * The message was not stored, or nobody can tell ({@link FilaException#maybeApplied()}).
     *
     * @param exception why
     */
    record Failed(FilaException exception) implements EnqueueResult {
        @Override
        public String messageIdOrThrow() {
            throw exception;
        }

        @Override
        public Optional<FilaException> error() {
            return Optional.of(exception);
        }
    }

    /**
     * The id of a stored message.
     *
     * @return the id
     * @throws FilaException why the message was not stored
     */
    String messageIdOrThrow();

    /**
     * Why the message was not stored.
     *
     * @return empty if it was stored
     */
    Optional<FilaException> error();
}
