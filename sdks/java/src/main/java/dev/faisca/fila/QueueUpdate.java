package dev.faisca.fila;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A change of a queue's settings: all of it is made, or none. Settings are {@code on_enqueue}, {@code on_failure},
 * {@code visibility_timeout_ms}, {@code max_attempts}, {@code hook_timeout_ms}, {@code hook_memory_limit_bytes} and
 * {@code fail_mode}.
 *
 * @param settings those that change, by name; an empty text is none, or the default
 * @param expectedVersion refused if the queue has another version by now; 0 for any
 * @param fromVersion brings that version back, with the settings on top; 0 for the present one
 * @param note why, for the history
 * @param unrehearsed leaves out trying new hooks on messages that the present ones decided
 */
public record QueueUpdate(
        Map<String, String> settings, long expectedVersion, long fromVersion, String note, boolean unrehearsed) {
    /**
     * Nothing yet.
     *
     * @return an update to add to
     */
    public static QueueUpdate none() {
        return new QueueUpdate(Map.of(), 0, 0, "", false);
    }

    /**
     * Changes a setting.
     *
     * @param name which
     * @param value what to; its text counts
     * @return an update with it
     */
    public QueueUpdate with(String name, Object value) {
        Map<String, String> more = new LinkedHashMap<>(settings);
        more.put(name, String.valueOf(value));
        return new QueueUpdate(Map.copyOf(more), expectedVersion, fromVersion, note, unrehearsed);
    }

    /**
     * Has the update refused if the queue has another version by now.
     *
     * @param version the one that was seen
     * @return an update with it
     */
    public QueueUpdate expecting(long version) {
        return new QueueUpdate(settings, version, fromVersion, note, unrehearsed);
    }

    /**
     * Brings a version back.
     *
     * @param version which
     * @return an update with it
     */
    public QueueUpdate from(long version) {
        return new QueueUpdate(settings, expectedVersion, version, note, unrehearsed);
    }

    /**
     * Says why.
     *
     * @param why for the history
     * @return an update with it
     */
    public QueueUpdate because(String why) {
        return new QueueUpdate(settings, expectedVersion, fromVersion, why, unrehearsed);
    }
}
