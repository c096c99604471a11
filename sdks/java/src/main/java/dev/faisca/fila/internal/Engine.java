package dev.faisca.fila.internal;

import dev.faisca.fila.ConnectionEvent;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.RequestTimeoutException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Everything a client has: its links to nodes, what is under way, and its end. */
public final class Engine {
    private static final Duration LAST_EVENTS = Duration.ofSeconds(1);

    final Config config;
    final ScheduledThreadPoolExecutor timer;
    final Executor executor;
    final Completions completions = new Completions(this);
    final Announcer announcer;
    final Gate gate;
    final Tracker calls = new Tracker();
    private final Tracker loops = new Tracker(); // message handlers that are running
    private final ExecutorService ownExecutor; // null: the user gave one
    private final Link seed;
    private final Map<Address, Link> leaders = new ConcurrentHashMap<>();
    private final Map<String, Link> routes = new ConcurrentHashMap<>(); // queues that another node leads
    private final Set<Stream> streams = ConcurrentHashMap.newKeySet();
    private volatile boolean draining;
    private volatile boolean closed;

    private Engine(Config config) {
        this.config = config;
        String name = "fila-" + config.address();
        timer = new ScheduledThreadPoolExecutor(1, daemons(name + "-timer"), new ThreadPoolExecutor.DiscardPolicy());
        timer.setRemoveOnCancelPolicy(true);
        ownExecutor = config.executor() != null
                ? null
                : new ThreadPoolExecutor(
                        0, Integer.MAX_VALUE, 10, TimeUnit.SECONDS, new SynchronousQueue<>(), daemons(name + "-worker"));
        executor = ownExecutor != null ? ownExecutor : config.executor();
        announcer = new Announcer(this, config.listener());
        gate = new Gate(config.inFlightBytesMax());
        seed = new Link(this, config.address(), true);
    }

    /** Connects; the first attempt is the only one, and its failure is thrown. */
    public static Engine connect(Config config) {
        Engine engine = new Engine(config);
        try {
            Connection first =
                    Connection.open(config.address(), config, engine.timer, new Connection.Attempt());
            engine.seed.start(first);
            return engine;
        } catch (FilaException e) {
            engine.shutDown();
            throw e;
        }
    }

    public Config config() {
        return config;
    }

    /** Where handlers, listeners and what follows a future run. */
    public Executor executor() {
        return executor;
    }

    public void log(Level level, String text, Throwable cause) {
        config.logger().log(level, text, cause);
    }

    // Calls.

    /** Counts a call in; {@link Ticket#finish} counts it out. While the client drains, only settling is allowed. */
    void begin(boolean fresh) {
        calls.enter();
        if (closed || (fresh && draining)) {
            calls.leave();
            throw Errors.closed(config.address());
        }
    }

    /** Sends an administrative call. */
    public <T> Ticket<T> ask(Query<T> query) {
        Request<T> request = new Request<>(this, query);
        begin(!query.settles());
        ask(request);
        return request;
    }

    void ask(Request<?> request) {
        Link link = route(request.queue());
        if (!link.ask(request) && (link == seed || !seed.ask(request))) {
            request.finish(whyEnded());
            completions.flush();
        }
    }

    /** Subscribes; the listener is called without locks when there is something to read, or the end. */
    public Stream subscribe(String queue, int prefetch, boolean heartbeat, Runnable listener) {
        begin(true);
        Stream stream = new Stream(this, queue, prefetch, heartbeat, listener);
        streams.add(stream);
        if (draining || closed) {
            stream.close();
        } else {
            subscribe(stream);
            if (heartbeat) {
                new Heartbeat(this, stream).beat();
            }
        }
        return stream;
    }

    void subscribe(Stream stream) {
        Link link = route(stream.queue);
        if (!link.subscribe(stream) && (link == seed || !seed.subscribe(stream))) {
            stream.fail(whyEnded());
        }
    }

    /** Waits until the broker has accepted a subscription; one that was not accepted is closed. */
    public void awaitOpen(Stream stream, Deadline deadline) {
        try {
            stream.opening.await(deadline);
        } catch (FilaException e) {
            stream.close();
            throw e;
        }
    }

    void left(Stream stream) {
        streams.remove(stream);
    }

    void submit(Link link, Kind kind, Chunk chunk) {
        if (!link.submit(kind, chunk) && (link == seed || !seed.submit(kind, chunk))) {
            fail(kind, chunk, whyEnded());
            completions.flush();
        }
    }

    void fail(Kind kind, Chunk chunk, FilaException why) {
        chunk.fail(why);
        if (kind.enqueues()) {
            gate.leave(chunk.size());
        }
    }

    /** Nobody waits for this call any more. */
    void abandon(Ticket<?> ticket) {
        if (ticket instanceof Stream.Opening opening) {
            opening.stream().close();
            return;
        }
        links().forEach(link -> link.abandon(ticket));
    }

    /** A handler begins, or ends, with a message. */
    public void handling(boolean begins) {
        if (begins) {
            loops.enter();
        } else {
            loops.leave();
        }
    }

    /** Which node was asked, for how long, and why it may not have answered. */
    String stateOf(String queue, String timeout) {
        Link link = route(queue);
        String trouble = link.trouble();
        return link.address + " within " + timeout + (trouble.isEmpty() ? "" : "; not connected: " + trouble);
    }

    // Leaders.

    Link route(String queue) {
        return queue.isEmpty() ? seed : routes.getOrDefault(queue, seed);
    }

    Link seed() {
        return seed;
    }

    /**
     * Remembers that another node leads a queue and returns the link to it, null if there is no sense in
     * following. The new connection has the same TLS settings and key: what was asked to be encrypted stays
     * encrypted, whatever the address says.
     */
    synchronized Link redirect(Link from, String queue, String leader) {
        Address there;
        try {
            there = Address.parse(leader);
        } catch (IllegalArgumentException e) {
            return null;
        }
        if (closed || there.sameNode(from.address)) {
            return null;
        }
        Link next = seed;
        if (!there.sameNode(seed.address)) {
            Address node = new Address(there.host(), there.port(), false);
            next = leaders.get(node);
            if (next == null) {
                next = new Link(this, node, false);
                leaders.put(node, next);
                next.start(null);
            }
        }
        if (next == seed) {
            routes.remove(queue);
        } else if (!queue.isEmpty()) {
            routes.put(queue, next);
        }
        log(Level.INFO, "queue \"" + queue + "\" is led by " + there, null);
        announcer.announce(new ConnectionEvent.Redirected(there.toString(), queue));
        return next;
    }

    /** Takes a leader's link out of the routes. */
    synchronized void forget(Link link) {
        leaders.remove(link.address, link);
        routes.values().removeIf(via -> via == link);
    }

    private List<Link> links() {
        List<Link> links = new ArrayList<>(leaders.values());
        links.add(seed);
        return links;
    }

    // The end.

    FilaException whyEnded() {
        FilaException why = seed.ended();
        return why != null ? why : Errors.closed(config.address());
    }

    /** The seed cannot be reached again. */
    void endedByItself(FilaException reason) {
        log(Level.ERROR, "the client for " + config.address() + " has ended: " + reason.getMessage(), null);
        gate.close(reason);
        leaders.values().forEach(link -> link.beginClose(reason));
        announcer.announce(new ConnectionEvent.Closed(config.address().toString(), Optional.of(reason)));
    }

    /** Ends everything at once; may be called again. */
    public void close() {
        boolean byItself = seed.ended() != null;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        streams.forEach(Stream::close);
        List<Link> links = links();
        links.forEach(link -> link.beginClose(Errors.closed(link.address)));
        gate.close(Errors.closed(config.address()));
        try {
            for (Link link : links) {
                link.awaitClose();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!byItself) {
            announcer.announce(new ConnectionEvent.Closed(config.address().toString(), Optional.empty()));
        }
        announcer.flush(Deadline.after(LAST_EVENTS));
        completions.flush();
        shutDown();
    }

    /**
     * Ends in order: consumers stop and hand back what nobody has read, handlers finish their message, calls
     * under way get their answers; then it closes.
     */
    public void drain(Deadline deadline) throws InterruptedException {
        draining = true;
        boolean done = false;
        try {
            streams.forEach(Stream::close);
            links().forEach(Link::hurry);
            done = loops.await(deadline) && calls.await(deadline);
        } finally {
            close();
        }
        if (!done) {
            throw new RequestTimeoutException(
                    "drain: not everything was answered within " + Deadline.words(deadline.timeout()), null);
        }
    }

    private void shutDown() {
        timer.shutdownNow();
        if (ownExecutor != null) {
            ownExecutor.shutdown();
        }
    }

    private static ThreadFactory daemons(String name) {
        AtomicInteger number = new AtomicInteger();
        return task -> {
            Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }
}
