package dev.faisca.fila;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/**
 * What a snapshot holds and how it is cut.
 *
 * @param parts about how many ranges of equal size, for parallel readers; from 1 to 1,024
 * @param fairnessKey only this key's messages; empty for all of them
 * @param ttl how long the snapshot lives, at most an hour; zero for ten minutes
 */
public record BrowseOptions(int parts, Optional<String> fairnessKey, Duration ttl) {
    /**
     * Checks the time.
     *
     * @param parts about how many ranges of equal size, for parallel readers; from 1 to 1,024
     * @param fairnessKey only this key's messages; empty for all of them
     * @param ttl how long the snapshot lives, at most an hour; zero for ten minutes
     */
    public BrowseOptions {
        Objects.requireNonNull(fairnessKey, "fairnessKey");
        if (ttl.isNegative()) {
            throw new IllegalArgumentException("ttl must not be negative, not " + ttl);
        }
    }

    /**
     * Everything in one range, for ten minutes.
     *
     * @return the options
     */
    public static BrowseOptions defaults() {
        return new BrowseOptions(1, Optional.empty(), Duration.ZERO);
    }

    /**
     * These options with another number of ranges.
     *
     * @param about from 1 to 1,024
     * @return the options
     */
    public BrowseOptions withParts(int about) {
        return new BrowseOptions(about, fairnessKey, ttl);
    }

    /**
     * These options for one fairness key.
     *
     * @param key the key; it may be the empty one
     * @return the options
     */
    public BrowseOptions withFairnessKey(String key) {
        return new BrowseOptions(parts, Optional.of(key), ttl);
    }

    /**
     * These options with another life.
     *
     * @param time at most an hour
     * @return the options
     */
    public BrowseOptions withTtl(Duration time) {
        return new BrowseOptions(parts, fairnessKey, time);
    }
}
