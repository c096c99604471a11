package dev.faisca.fila;

import java.time.Duration;
import java.util.Optional;

/** Something that happened to a client's connections. */
public sealed interface ConnectionEvent {
    /**
     * The node concerned.
     *
     * @return host and port
     */
    String address();

    /**
     * A handshake was accepted.
     *
     * @param address the node
     */
    record Connected(String address) implements ConnectionEvent {}

    /**
     * A connection ended.
     *
     * @param address the node
     * @param cause why
     */
    record Disconnected(String address, FilaException cause) implements ConnectionEvent {}

    /**
     * The next attempt to connect comes after a pause.
     *
     * @param address the node
     * @param pause how long
     * @param cause why the last attempt or connection failed
     */
    record Reconnecting(String address, Duration pause, FilaException cause) implements ConnectionEvent {}

    /**
     * Another node leads a queue; what concerns it goes there from now on.
     *
     * @param address the leader
     * @param queue the queue
     */
    record Redirected(String address, String queue) implements ConnectionEvent {}

    /**
     * The client has ended.
     *
     * @param address the node it was made for
     * @param cause empty if it was closed or drained, else why it ended by itself
     */
    record Closed(String address, Optional<FilaException> cause) implements ConnectionEvent {}
}
