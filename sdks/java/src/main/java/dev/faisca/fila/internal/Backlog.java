package dev.faisca.fila.internal;

import dev.faisca.fila.BatchMode;
import java.util.EnumMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a link has to do, whatever connection there is: items to collect into frames, requests that wait for a
 * connection, streams to subscribe. The link's lock guards it.
 */
final class Backlog {
    final Map<Kind, Collector> collectors = new EnumMap<>(Kind.class);
    final Set<Stream> streams = new LinkedHashSet<>();
    private Set<Request<?>> requests = new LinkedHashSet<>();

    /** Everything a link had, when it ends. */
    record Rest(Map<Kind, List<Chunk>> chunks, List<Request<?>> requests, List<Stream> streams) {}

    Backlog(Config config) {
        for (Kind kind : Kind.values()) {
            BatchMode mode = config.batchMode();
            if (!kind.enqueues() && mode.kind() == BatchMode.Kind.LINGER) {
                mode = BatchMode.auto(); // lingering would only keep leases longer than needed
            }
            collectors.put(kind, new Collector(mode, config.batchMessagesMax(), config.batchBytesMax()));
        }
    }

    void add(Request<?> request) {
        requests.add(request);
    }

    List<Request<?>> takeRequests() {
        List<Request<?>> waiting = List.copyOf(requests);
        requests = new LinkedHashSet<>(); // a large one must not cost its memory for ever
        return waiting;
    }

    Rest takeAll() {
        Map<Kind, List<Chunk>> chunks = new EnumMap<>(Kind.class);
        collectors.forEach((kind, collector) -> chunks.put(kind, collector.takeAll()));
        Rest rest = new Rest(chunks, takeRequests(), List.copyOf(streams));
        streams.clear();
        return rest;
    }

    /** Drops what an abandoned call still has waiting; returns the bytes that were let in for it. */
    long forget(Ticket<?> ticket) {
        if (ticket instanceof Call<?> call) {
            long bytes = collectors.get(call.kind).forget(call.count(), call.bytes);
            return call.kind.enqueues() ? bytes : 0;
        }
        if (ticket instanceof Request<?> request) {
            requests.remove(request);
        }
        return 0;
    }

    /** How often what waits here was sent on to another node, at most. */
    int hops() {
        int hops = 0;
        for (Collector collector : collectors.values()) {
            hops = Math.max(hops, collector.hops());
        }
        for (Request<?> request : requests) {
            hops = Math.max(hops, request.hops);
        }
        for (Stream stream : streams) {
            hops = Math.max(hops, stream.hops());
        }
        return hops;
    }
}
