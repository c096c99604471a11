package dev.faisca.fila;

/**
 * How to consume.
 *
 * @param prefetch how many messages the broker may have delivered without their being settled; from 1 to
 *     65,535
 * @param concurrency how many messages a {@link MessageHandler} is given at the same time
 * @param autoAck whether a message is acknowledged when its {@link MessageHandler} returns without having
 *     settled it
 * @param heartbeat whether the leases of what is not settled are extended, however long that takes
 */
public record ConsumeOptions(int prefetch, int concurrency, boolean autoAck, boolean heartbeat) {
    /** The prefetch of {@link #defaults()}. */
    public static final int DEFAULT_PREFETCH = 256;

    private static final int PREFETCH_MAX = 65_535;

    /**
     * Checks the numbers.
     *
     * @param prefetch how many messages the broker may have delivered without their being settled; from 1 to
     *     65,535
     * @param concurrency how many messages a {@link MessageHandler} is given at the same time
     * @param autoAck whether a message is acknowledged when its {@link MessageHandler} returns without having
     *     settled it
     * @param heartbeat whether the leases of what is not settled are extended, however long that takes
     */
    public ConsumeOptions {
        if (prefetch < 1 || prefetch > PREFETCH_MAX) {
            throw new IllegalArgumentException("prefetch must be from 1 to " + PREFETCH_MAX + ", not " + prefetch);
        }
        if (concurrency < 1) {
            throw new IllegalArgumentException("concurrency must be positive, not " + concurrency);
        }
    }

    /**
     * Without a heart-beat.
     *
     * @param prefetch how many messages the broker may have delivered without their being settled; from 1 to
     *     65,535
     * @param concurrency how many messages a {@link MessageHandler} is given at the same time
     * @param autoAck whether a message is acknowledged when its {@link MessageHandler} returns without having
     *     settled it
     */
    public ConsumeOptions(int prefetch, int concurrency, boolean autoAck) {
        this(prefetch, concurrency, autoAck, false);
    }

    /**
     * 256 messages ahead, one handled at a time, acknowledged by the handler.
     *
     * @return the options
     */
    public static ConsumeOptions defaults() {
        return new ConsumeOptions(DEFAULT_PREFETCH, 1, false);
    }

    /**
     * These options with another prefetch.
     *
     * @param messages from 1 to 65,535
     * @return the options
     */
    public ConsumeOptions withPrefetch(int messages) {
        return new ConsumeOptions(messages, concurrency, autoAck, heartbeat);
    }

    /**
     * These options with another concurrency.
     *
     * @param messages how many are handled at the same time
     * @return the options
     */
    public ConsumeOptions withConcurrency(int messages) {
        return new ConsumeOptions(prefetch, messages, autoAck, heartbeat);
    }

    /**
     * These options, acknowledging what the handler leaves unsettled.
     *
     * @param on whether to
     * @return the options
     */
    public ConsumeOptions withAutoAck(boolean on) {
        return new ConsumeOptions(prefetch, concurrency, on, heartbeat);
    }

    /**
     * These options, extending the leases of what is not settled three times within the queue's visibility
     * timeout; of what a {@link MessageHandler} has also while the client drains.
     *
     * @param on whether to
     * @return the options
     */
    public ConsumeOptions withHeartbeat(boolean on) {
        return new ConsumeOptions(prefetch, concurrency, autoAck, on);
    }
}
