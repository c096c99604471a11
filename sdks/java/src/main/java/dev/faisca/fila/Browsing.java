package dev.faisca.fila;

import java.util.ArrayDeque;
import java.util.Set;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Reads a snapshot of one range, page by page, as a stream that gives the snapshot up when it is closed. */
final class Browsing extends Spliterators.AbstractSpliterator<BrowsedMessage> {
    private final FilaClient client;
    private final String queue;
    private final Set<BrowsedMessage.State> states;
    private final Snapshot snapshot;
    private final ArrayDeque<Snapshot.Range> ranges;
    private final ArrayDeque<BrowsedMessage> page = new ArrayDeque<>();

    private Browsing(FilaClient client, String queue, Set<BrowsedMessage.State> states, Snapshot snapshot) {
        super(snapshot.messages(), Spliterator.ORDERED | Spliterator.NONNULL);
        this.client = client;
        this.queue = queue;
        this.states = states;
        this.snapshot = snapshot;
        ranges = new ArrayDeque<>(snapshot.ranges());
    }

    static Stream<BrowsedMessage> open(FilaClient client, String queue, Set<BrowsedMessage.State> states) {
        Snapshot snapshot = client.browseOpen(queue, 1);
        return StreamSupport.stream(new Browsing(client, queue, states, snapshot), false)
                .onClose(() -> client.browseClose(queue, snapshot.token()));
    }

    @Override
    public boolean tryAdvance(Consumer<? super BrowsedMessage> action) {
        while (page.isEmpty() && !ranges.isEmpty()) {
            Snapshot.Range range = ranges.poll();
            BrowsePage next = client.browsePage(queue, snapshot.token(), range.start(), range.end(), states);
            page.addAll(next.messages());
            if (!next.last()) {
                ranges.addFirst(new Snapshot.Range(next.next(), range.end()));
            }
        }
        BrowsedMessage message = page.poll();
        if (message == null) {
            return false;
        }
        action.accept(message);
        return true;
    }
}
