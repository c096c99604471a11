package dev.faisca.fila.internal;

import dev.faisca.fila.ClientClosedException;
import dev.faisca.fila.ConnectionEvent;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.RefusedException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The client's side of one node: what waits to be sent there, over whatever connection there is. The seed
 * link, to the address the user gave, reconnects; a link to a leader hands everything back to the seed when
 * it ends.
 */
final class Link {
    static final int HOPS_MAX = 8; // how often something is sent on to another node
    private static final long STABLE_NANOS = TimeUnit.SECONDS.toNanos(1); // lived so long: the pauses begin anew
    private static final long GOODBYE_MS = 1000; // for the broker to close after Disconnect

    final Engine engine;
    final Address address;
    final ReentrantLock lock = new ReentrantLock();
    final Condition wake = lock.newCondition(); // something to write, or the connection has ended
    final Map<Kind, Collector> collectors;
    final Set<Stream> streams;
    private final Backlog backlog;
    private final Backoff backoff; // the link's thread alone uses it
    private final boolean seed;
    private final CountDownLatch closing = new CountDownLatch(1);
    private final CountDownLatch gone = new CountDownLatch(1);
    private volatile FilaException told; // why the link was told to end; set before `closing`
    private Session session;
    private Connection.Attempt attempt;
    private FilaException ended; // why no call can succeed here any more
    private String failure = "still connecting"; // why there is no connection

    Link(Engine engine, Address address, boolean seed) {
        this.engine = engine;
        this.address = address;
        this.seed = seed;
        backlog = new Backlog(engine.config);
        collectors = backlog.collectors;
        streams = backlog.streams;
        backoff = new Backoff(engine.config.pauseMin(), engine.config.pauseMax());
    }

    /** Serves connections in a thread of its own, beginning with this one; null opens one. */
    void start(Connection first) {
        Thread thread = new Thread(() -> run(first), "fila-" + address);
        thread.setDaemon(true);
        thread.start();
    }

    /** Leaves the lock; futures are completed by whoever leaves it last. */
    void unlock() {
        lock.unlock();
        if (!lock.isHeldByCurrentThread()) {
            engine.completions.flush();
        }
    }

    private void run(Connection first) {
        try {
            Connection connection = first;
            Level level = Level.DEBUG; // a client that is just there is no news; one that came back is
            while (true) {
                if (connection == null) {
                    try {
                        connection = connect();
                    } catch (FilaException e) {
                        if (!retry(e, false)) {
                            return;
                        }
                        continue;
                    }
                }
                engine.log(level, "connected to " + address, null);
                level = Level.INFO;
                engine.announcer.announce(new ConnectionEvent.Connected(address.toString()));
                FilaException reason = serve(connection);
                engine.announcer.announce(new ConnectionEvent.Disconnected(address.toString(), reason));
                if (System.nanoTime() - connection.openedAt >= STABLE_NANOS) {
                    backoff.reset();
                }
                connection = null;
                if (!retry(reason, true)) {
                    return;
                }
            }
        } catch (RuntimeException | Error e) {
            engine.log(Level.ERROR, "a bug in the Fila client ended the link to " + address, e);
            end(Errors.lost("the client failed unexpectedly: " + e, e));
            throw e;
        } finally {
            gone.countDown();
        }
    }

    private Connection connect() {
        Connection.Attempt next = new Connection.Attempt();
        lock.lock();
        try {
            attempt = next;
        } finally {
            unlock();
        }
        if (isClosing()) {
            next.abort();
        }
        return Connection.open(address, engine.config, engine.timer, next);
    }

    /** Runs one connection to its end and says why it ended. */
    private FilaException serve(Connection connection) {
        Session now = new Session(this, connection);
        attach(now);
        KeepAlive keepAlive = new KeepAlive(now, connection, engine.config);
        keepAlive.start();
        Thread writer = new Thread(now::writeLoop, "fila-" + address + "-writer");
        writer.setDaemon(true);
        writer.start();
        FilaException reason;
        try {
            reason = new Reader(now).run();
        } catch (RuntimeException e) {
            engine.log(Level.ERROR, "a bug in the Fila client ended the connection to " + address, e);
            reason = Errors.lost("the client failed unexpectedly: " + e, e);
        } finally {
            connection.drop(null);
            keepAlive.stop();
        }
        FilaException dropped = connection.reason();
        if (dropped != null && !(reason instanceof RefusedException)) {
            reason = dropped; // what closed the socket, not how reading from it failed
        }
        detach(now, reason);
        return now.complaint != null && !(reason instanceof RefusedException) ? now.complaint : reason;
    }

    private void attach(Session now) {
        lock.lock();
        try {
            session = now;
            streams.forEach(now::consume);
            backlog.takeRequests().forEach(now::send);
            if (isClosing()) {
                now.goodbye();
            }
        } finally {
            unlock();
        }
    }

    /** Fails what was sent and not answered, keeps what may be sent again. */
    private void detach(Session old, FilaException reason) {
        FilaException why = isClosing() ? told : reason;
        FilaException lost = why instanceof ClientClosedException
                ? new ClientClosedException(why.getMessage(), null, true)
                : Errors.lost("connection to " + address + " lost before the broker answered: " + why.getMessage(), why);
        lock.lock();
        try {
            session = null;
            failure = reason.getMessage();
            List<InFlight> flights = new ArrayList<>();
            for (Object waiting : old.end()) {
                if (waiting instanceof InFlight flight) {
                    flights.add(flight);
                } else if (waiting instanceof Request<?> request) {
                    if (request.repeatable && !request.isDone() && !isClosing()) {
                        backlog.add(request);
                    } else {
                        request.finish(lost);
                    }
                }
            }
            // The last first: what is sent again is put before the rest, so it keeps its order.
            for (int i = flights.size() - 1; i >= 0; i--) {
                lose(flights.get(i), lost);
            }
            streams.forEach(Stream::disconnected);
        } finally {
            unlock();
        }
    }

    /** Settles a frame that will not be answered; items with an idempotency key are sent again. */
    private void lose(InFlight flight, FilaException lost) {
        List<Chunk> again = flight.lost(lost, !isClosing());
        landed(flight.kind(), flight.size() - InFlight.sizeOf(again));
        collectors.get(flight.kind()).putBack(again);
    }

    /** Decides what follows a connection that ended or was not opened. False: the link has ended. */
    private boolean retry(FilaException reason, boolean wasOpen) {
        if (isClosing()) {
            end(told);
            return false;
        }
        // One warning for an outage, not one for every attempt.
        Level level = wasOpen || backoff.isFresh() ? Level.WARNING : Level.DEBUG;
        engine.log(level, (wasOpen ? "connection to " + address + " lost: " : "") + reason.getMessage(), null);
        if (!seed) {
            retire(reason, wasOpen);
            return false;
        }
        if (Errors.permanent(reason) || !engine.config.reconnect()) {
            end(reason);
            engine.endedByItself(reason);
            return false;
        }
        lock.lock();
        try {
            failure = reason.getMessage();
        } finally {
            unlock();
        }
        Duration pause = backoff.next();
        engine.announcer.announce(new ConnectionEvent.Reconnecting(address.toString(), pause, reason));
        return sleep(pause);
    }

    /** False: the link was closed meanwhile. */
    private boolean sleep(Duration pause) {
        try {
            closing.await(pause.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            end(Errors.lost("the connecting thread was interrupted", e));
            return false;
        }
        if (isClosing()) {
            end(told);
            return false;
        }
        return true;
    }

    /**
     * Ends a leader's link and gives what it had to the seed, which knows who leads now. A leader that can
     * never be talked to (its certificate is wrong, it refuses the key) fails it all instead.
     */
    private void retire(FilaException reason, boolean wasOpen) {
        if (!wasOpen && Errors.hopeless(reason)) {
            engine.forget(this);
            end(reason);
            return;
        }
        // The seed may go on naming a node that is gone until another is elected. What it sends here meanwhile
        // waits with the rest, and does not try again at once.
        if (!wasOpen && !sleep(backoff.after(hops()))) {
            return;
        }
        engine.forget(this);
        Backlog.Rest rest = takeAll(reason);
        rest.chunks().forEach((kind, chunks) -> chunks.forEach(chunk -> engine.submit(engine.seed(), kind, chunk)));
        rest.requests().forEach(engine::ask);
        rest.streams().forEach(engine::subscribe);
    }

    private int hops() {
        lock.lock();
        try {
            return backlog.hops();
        } finally {
            unlock();
        }
    }

    // What callers hand in. False: the link has ended.

    boolean submit(Kind kind, Chunk chunk) {
        lock.lock();
        try {
            if (ended != null) {
                return false;
            }
            collectors.get(kind).add(chunk);
            wake.signalAll();
            return true;
        } finally {
            unlock();
        }
    }

    boolean ask(Request<?> request) {
        lock.lock();
        try {
            if (ended != null) {
                return false;
            }
            if (session == null) {
                backlog.add(request);
            } else {
                session.send(request);
            }
            return true;
        } finally {
            unlock();
        }
    }

    boolean subscribe(Stream stream) {
        lock.lock();
        try {
            if (ended != null) {
                return false;
            }
            if (stream.joins(this) && streams.add(stream) && session != null) {
                session.consume(stream);
            }
            return true;
        } finally {
            unlock();
        }
    }

    void resubscribe(Stream stream) {
        lock.lock();
        try {
            if (streams.contains(stream) && session != null && stream.requestId == 0) {
                session.consume(stream);
            }
        } finally {
            unlock();
        }
    }

    void unsubscribe(Stream stream, List<Delivered> unread) {
        lock.lock();
        try {
            if (streams.remove(stream) && session != null) {
                session.cancel(stream, unread);
            }
        } finally {
            unlock();
        }
    }

    /** Withdraws what a call has not sent yet. */
    void abandon(Ticket<?> ticket) {
        long freed;
        lock.lock();
        try {
            freed = backlog.forget(ticket);
        } finally {
            unlock();
        }
        engine.gate.leave(freed);
    }

    /** A frame is no longer under way; its bytes make room for others. */
    void landed(Kind kind, long bytes) {
        collectors.get(kind).landed();
        if (kind.enqueues()) {
            engine.gate.leave(bytes);
        }
        wake.signalAll();
    }

    /** Sends what lingers at once, now and later. */
    void hurry() {
        lock.lock();
        try {
            collectors.values().forEach(Collector::hurry);
            wake.signalAll();
        } finally {
            unlock();
        }
    }

    /** Why the link ended, null if it has not. */
    FilaException ended() {
        lock.lock();
        try {
            return ended;
        } finally {
            unlock();
        }
    }

    /** Why there is no connection; empty if there is one. */
    String trouble() {
        lock.lock();
        try {
            return session != null ? "" : failure;
        } finally {
            unlock();
        }
    }

    /** Says goodbye, which hands leased messages back. What is left open fails with the reason. */
    void beginClose(FilaException reason) {
        lock.lock();
        try {
            if (told == null) {
                told = reason;
            }
            closing.countDown();
            if (attempt != null) {
                attempt.abort();
            }
            if (session != null) {
                Connection connection = session.connection;
                session.goodbye();
                engine.timer.schedule(
                        () -> connection.drop(told), GOODBYE_MS, TimeUnit.MILLISECONDS);
            }
        } finally {
            unlock();
        }
    }

    /** Waits until the broker has closed, for a while. */
    void awaitClose() throws InterruptedException {
        gone.await(2 * GOODBYE_MS, TimeUnit.MILLISECONDS);
    }

    private boolean isClosing() {
        return closing.getCount() == 0;
    }

    /** Fails everything, now and later. */
    private void end(FilaException reason) {
        Backlog.Rest rest = takeAll(reason);
        rest.chunks().forEach((kind, chunks) -> chunks.forEach(chunk -> engine.fail(kind, chunk, reason)));
        rest.requests().forEach(request -> request.finish(reason));
        rest.streams().forEach(stream -> stream.fail(reason));
        engine.completions.flush();
    }

    private Backlog.Rest takeAll(FilaException reason) {
        lock.lock();
        try {
            if (ended == null) {
                ended = reason;
            }
            return backlog.takeAll();
        } finally {
            unlock();
        }
    }
}
