package dev.faisca.fila;

import java.util.List;

/**
 * A page of a snapshot.
 *
 * @param messages the messages; a page may be short, or empty, before the range is read
 * @param next where the following page starts; empty when the range is read
 */
public record BrowsePage(List<BrowsedMessage> messages, byte[] next) {
    /**
     * Whether the range is read.
     *
     * @return true after the last page
     */
    public boolean last() {
        return next.length == 0;
    }
}
