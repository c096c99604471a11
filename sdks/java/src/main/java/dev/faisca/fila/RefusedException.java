package dev.faisca.fila;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/** The broker said no. The message is the broker's own text where it gave one. */
public abstract class RefusedException extends FilaException {
    private static final long serialVersionUID = 1L;

    /** The broker's number for the cause. */
    private final int wireCode;

    /** The cause's name in the catalogue. */
    private final String code;

    /** What the catalogue says. */
    private final boolean retryable;

    /** What the broker added. */
    private final LinkedHashMap<String, String> metadata;

    RefusedException(String message, int wireCode, String code, boolean retryable, Map<String, String> metadata) {
        super(message, null);
        this.wireCode = wireCode;
        this.code = code;
        this.retryable = retryable;
        this.metadata = new LinkedHashMap<>(metadata);
    }

    /**
     * The broker's number for the cause, see the error catalogue.
     *
     * @return from 1 to 255
     */
    public int wireCode() {
        return wireCode;
    }

    @Override
    public String code() {
        return code;
    }

    @Override
    public boolean retryable() {
        return retryable;
    }

    @Override
    public Map<String, String> metadata() {
        return Collections.unmodifiableMap(metadata);
    }

    Optional<String> text(String key) {
        return Optional.ofNullable(metadata.get(key));
    }

    Optional<Duration> milliseconds(String key) {
        try {
            return text(key).map(Long::parseLong).map(Duration::ofMillis);
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    }
}
