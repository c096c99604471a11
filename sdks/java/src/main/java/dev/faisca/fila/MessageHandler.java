package dev.faisca.fila;

/** Handles messages, see {@link FilaClient#consume(String, ConsumeOptions, MessageHandler)}. */
@FunctionalInterface
public interface MessageHandler {
    /**
     * Handles one message and settles it. What it throws rejects the message with the exception's text, unless
     * the message was settled already. A handler whose thread was interrupted hands its message back instead,
     * without a counted attempt.
     *
     * @param message the message
     * @throws Exception to reject the message
     */
    void handle(Message message) throws Exception;
}
