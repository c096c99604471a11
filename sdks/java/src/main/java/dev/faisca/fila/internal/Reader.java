package dev.faisca.fila.internal;

import dev.faisca.fila.FilaException;
import dev.faisca.fila.internal.wire.ClientState;
import dev.faisca.fila.internal.wire.FrameException;
import dev.faisca.fila.internal.wire.FrameReader.Frame;
import dev.faisca.fila.internal.wire.InvalidBodyException;
import dev.faisca.fila.internal.wire.Opcodes;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;

/**
 * Takes what the broker sends and gives it to whom it belongs. Never waits for anybody: a consumer that does
 * not read has its messages in its stream's buffer.
 */
final class Reader {
    private static final long RESUBSCRIBE_MS = 500; // after the broker ended a stream for the moment

    private final Session session;
    private final Link link;

    Reader(Session session) {
        this.session = session;
        link = session.link;
    }

    /** Reads until the connection ends, and says why it did. */
    FilaException run() {
        while (true) {
            try {
                FilaException end = receive(session.connection.frames.next());
                link.engine.completions.flush();
                if (end != null) {
                    return end;
                }
            } catch (FrameException e) {
                FilaException broken = Errors.protocol(
                        link.address + " sent a frame that cannot be accepted: " + e.getMessage());
                if (e.fatal()) {
                    return broken;
                }
                unreadable(e.requestId(), broken);
            } catch (EOFException e) {
                return Errors.lost(link.address + " closed the connection", e);
            } catch (IOException e) {
                return Errors.lost("reading from " + link.address + ": " + e.getMessage(), e);
            }
        }
    }

    private FilaException receive(Frame frame) {
        if (ClientState.OPEN.receives(frame.opcode()).refused()) {
            return null; // an operation of a later version: not for us
        }
        try {
            switch (frame.opcode()) {
                case Opcodes.DELIVERY -> deliver(frame);
                case Opcodes.PING -> locked(() -> session.pong(frame.requestId()));
                case Opcodes.PONG -> {}
                case Opcodes.DISCONNECT -> {
                    return Errors.lost(link.address + " said goodbye", null);
                }
                case Opcodes.ERROR -> refused(frame.requestId(), Errors.decode(frame.body()));
                default -> locked(() -> reply(frame));
            }
        } catch (InvalidBodyException e) {
            return Errors.protocol(link.address + " sent a " + Opcodes.name(frame.opcode())
                    + " that does not parse: " + e.getMessage());
        }
        return null;
    }

    /** Hands messages to their stream. What a closed consumer is still sent goes back at once. */
    private void deliver(Frame frame) {
        Object owner;
        link.lock.lock();
        try {
            owner = session.peek(frame.requestId());
        } finally {
            link.unlock();
        }
        if (owner == null) {
            return;
        }
        List<Delivered> messages = Delivered.parse(frame.body());
        if (owner instanceof Stream stream && stream.push(messages)) {
            return;
        }
        locked(() -> {
            Object now = session.peek(frame.requestId());
            if (now instanceof Stream.Leaving leaving) {
                session.release(leaving, messages);
            } else if (now instanceof Stream closing) {
                closing.late.addAll(messages); // whoever closes it has still to cancel it
            }
        });
    }

    private void reply(Frame frame) {
        Object waiting = session.peek(frame.requestId());
        if (waiting instanceof InFlight flight) {
            expect(flight.kind().opcode, frame);
            flight.answered(frame.body(), link.streams);
            session.take(frame.requestId());
            link.landed(flight.kind(), flight.size());
        } else if (waiting instanceof Request<?> request) {
            expect(request.opcode, frame);
            request.answered(frame.body());
            session.take(frame.requestId());
        } else if (waiting instanceof Stream.Leaving leaving) {
            // What was delivered before the broker heard of the cancel has come by now.
            session.take(frame.requestId());
            session.take(leaving.consumeId());
        } else if (waiting instanceof Stream stream) {
            expect(Opcodes.CONSUME, frame);
            stream.accepted();
        }
    }

    private static void expect(int asked, Frame frame) {
        if (Opcodes.replyTo(asked) != frame.opcode()) {
            throw new InvalidBodyException("opcode", Opcodes.name(asked) + " is not answered with it");
        }
    }

    /**
     * The broker answered, but what it said is lost. That is no refusal: what was asked may have been carried
     * out, and a stream is still open over there.
     */
    private void unreadable(int id, FilaException broken) {
        Object waiting;
        link.lock.lock();
        try {
            waiting = session.peek(id);
            if (waiting instanceof Stream) {
                session.cancel(id);
            }
        } finally {
            link.unlock();
        }
        boolean call = waiting instanceof InFlight || waiting instanceof Request<?>;
        refused(id, call ? Errors.lost("the answer cannot be read: " + broken.getMessage(), broken) : broken);
    }

    /** The broker answered with an Error. */
    private void refused(int id, FilaException error) {
        Runnable after = null;
        link.lock.lock();
        try {
            Object waiting = session.take(id);
            if (waiting == null) {
                if (id == 0) {
                    session.complaint = error;
                }
            } else if (waiting instanceof InFlight flight) {
                after = refused(flight, error);
            } else if (waiting instanceof Request<?> request) {
                after = refused(request, error);
            } else if (waiting instanceof Stream.Leaving leaving) {
                session.take(leaving.consumeId());
            } else if (waiting instanceof Stream stream) {
                after = refused(stream, error);
            }
        } finally {
            link.unlock();
        }
        if (after != null) {
            after.run(); // without the lock: another link is concerned
        }
        link.engine.completions.flush();
    }

    private Runnable refused(InFlight flight, FilaException error) {
        String leader = Errors.leaderOf(error);
        boolean several = flight.count() > 1;
        if (several && (Call.separable(error) || (leader != null && !flight.ofOneQueue()))) {
            // The whole frame was refused and nothing of it applied: one caller's mistake must not cost the
            // others who shared it.
            link.collectors.get(flight.kind()).landed();
            flight.apart().forEach(part -> session.sendChunks(flight.kind(), part));
            link.wake.signalAll();
            return null;
        }
        if (leader != null && flight.chunks().get(0).hops < Link.HOPS_MAX) {
            link.landed(flight.kind(), 0);
            flight.chunks().forEach(chunk -> chunk.hops++);
            return () -> {
                Link next = link.engine.redirect(link, flight.queue(), leader);
                for (Chunk chunk : flight.chunks()) {
                    if (next == null || !next.submit(flight.kind(), chunk)) {
                        link.engine.fail(flight.kind(), chunk, error);
                    }
                }
            };
        }
        flight.fail(error);
        link.landed(flight.kind(), flight.size());
        return null;
    }

    private Runnable refused(Request<?> request, FilaException error) {
        String leader = Errors.leaderOf(error);
        if (leader == null || request.hops >= Link.HOPS_MAX) {
            request.finish(error);
            return null;
        }
        request.hops++;
        return () -> {
            Link next = link.engine.redirect(link, request.queue(), leader);
            if (next == null || !next.ask(request)) {
                request.finish(error);
            }
        };
    }

    private Runnable refused(Stream stream, FilaException error) {
        String leader = Errors.leaderOf(error);
        stream.disconnected();
        if (leader != null && stream.hop(Link.HOPS_MAX)) {
            link.streams.remove(stream);
            return () -> {
                Link next = link.engine.redirect(link, stream.queue, leader);
                if (next == null || !next.subscribe(stream)) {
                    stream.fail(error);
                }
            };
        }
        if (stream.wasAccepted() && Errors.passing(error)) {
            // No verdict on the consumer: the broker may accept it again in a moment.
            return () -> stream.later(RESUBSCRIBE_MS);
        }
        link.streams.remove(stream);
        return () -> stream.fail(error);
    }

    private void locked(Runnable action) {
        link.lock.lock();
        try {
            if (session.isOpen()) {
                action.run();
            }
        } finally {
            link.unlock();
        }
    }
}
