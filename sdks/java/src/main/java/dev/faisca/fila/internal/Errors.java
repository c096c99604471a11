package dev.faisca.fila.internal;

import dev.faisca.fila.CallInterruptedException;
import dev.faisca.fila.ClientClosedException;
import dev.faisca.fila.ConnectFailedException;
import dev.faisca.fila.ConnectionLostException;
import dev.faisca.fila.FilaException;
import dev.faisca.fila.ForbiddenException;
import dev.faisca.fila.ChannelFullException;
import dev.faisca.fila.InvalidFrameException;
import dev.faisca.fila.NodeNotReadyException;
import dev.faisca.fila.NotLeaderException;
import dev.faisca.fila.RefusedException;
import dev.faisca.fila.RequestTimeoutException;
import dev.faisca.fila.UnauthorizedException;
import dev.faisca.fila.UnsupportedVersionException;
import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Cause;
import dev.faisca.fila.internal.wire.Decoder;
import java.io.EOFException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.Map;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;

/** From codes and faults to exceptions with a text that a person can act on. */
public final class Errors {
    private Errors() {}

    /** The exception for a broker's code. Without the broker's own words, the subject says what it met. */
    public static RefusedException refusal(int code, String message, String subject, Map<String, String> metadata) {
        Cause cause = Cause.of(code);
        if (message == null || message.isEmpty()) {
            message = textFor(cause, subject);
        }
        return Refusals.of(cause, message, metadata);
    }

    static RefusedException decode(byte[] body) {
        Bodies.Error error = Bodies.Error.decode(new Decoder(body));
        return refusal(error.code(), error.message(), "", error.metadata());
    }

    static FilaException refusedSettlement(int code, String queue, String id) {
        if (code == Cause.MESSAGE_NOT_FOUND.code()) {
            String text = "message \"" + id + "\" is not leased from queue \"" + queue + "\" by this client: "
                    + "it was settled already, its lease ran out, or it never existed";
            return refusal(code, text, "", Map.of());
        }
        if (code == Cause.QUEUE_NOT_FOUND.code()) {
            return refusal(code, null, "queue \"" + queue + "\"", Map.of());
        }
        return refusal(code, null, "message \"" + id + "\" of queue \"" + queue + "\"", Map.of());
    }

    private static String textFor(Cause cause, String subject) {
        if (subject == null || subject.isEmpty()) {
            return cause.meaning();
        }
        return switch (cause) {
            case QUEUE_NOT_FOUND -> subject + " does not exist";
            case QUEUE_ALREADY_EXISTS -> subject + " already exists";
            default -> subject + ": " + cause.meaning();
        };
    }

    static InvalidFrameException protocol(String text) {
        return new InvalidFrameException(text, Map.of());
    }

    static ClientClosedException closed(Address address) {
        return new ClientClosedException("the client for " + address + " is closed", null);
    }

    static ConnectionLostException lost(String text, Throwable cause) {
        return new ConnectionLostException(text, cause);
    }

    /**
     * The same failure to be thrown by another call: one failure may end many calls, and each should
     * show the stack of its own caller.
     */
    public static FilaException again(FilaException e) {
        FilaException copy;
        if (e instanceof RefusedException refused) {
            copy = Refusals.of(Cause.of(refused.wireCode()), refused.getMessage(), refused.metadata());
        } else if (e instanceof ConnectFailedException) {
            copy = new ConnectFailedException(e.getMessage(), e.getCause());
        } else if (e instanceof ConnectionLostException) {
            copy = new ConnectionLostException(e.getMessage(), e.getCause());
        } else if (e instanceof RequestTimeoutException) {
            copy = new RequestTimeoutException(e.getMessage(), e.getCause());
        } else if (e instanceof CallInterruptedException) {
            copy = new CallInterruptedException(e.getMessage(), e.getCause());
        } else {
            copy = new ClientClosedException(e.getMessage(), e.getCause(), e.maybeApplied());
        }
        return copy;
    }

    /** Whether connecting again cannot help. */
    static boolean permanent(FilaException e) {
        return e instanceof UnauthorizedException
                || e instanceof ForbiddenException
                || e instanceof UnsupportedVersionException;
    }

    /** Whether a failure to reach a leader will not pass by itself: its TLS is wrong, or it refuses us. */
    static boolean hopeless(FilaException e) {
        return permanent(e) || e.getCause() instanceof SSLException;
    }

    /** Whether the broker may accept the same request in a moment: no verdict on it. */
    static boolean passing(FilaException e) {
        return e instanceof ChannelFullException
                || e instanceof NodeNotReadyException
                || e instanceof NotLeaderException;
    }

    /** Where a NotLeader error sends us, null if it names nobody. */
    static String leaderOf(FilaException e) {
        return e instanceof NotLeaderException other ? other.leaderAddr().filter(a -> !a.isBlank()).orElse(null) : null;
    }

    static ConnectFailedException connectFailed(Address address, Throwable e, Config config, boolean expired) {
        return new ConnectFailedException("cannot connect to " + address + ": " + why(e, config, expired), e);
    }

    private static String why(Throwable e, Config config, boolean expired) {
        if (expired || e instanceof SocketTimeoutException) {
            return "no handshake within " + Deadline.words(config.connectTimeout()) + "; is it a Fila broker?";
        }
        if (e instanceof ConnectException) {
            return "connection refused; is the broker running there?";
        }
        if (e instanceof UnknownHostException) {
            return "the host name cannot be resolved";
        }
        String text = String.valueOf(e.getMessage());
        if (e instanceof SSLException) {
            if (text.contains("Unsupported or unrecognized SSL message") || text.contains("plaintext")) {
                return "TLS: the broker does not speak TLS on this port; leave TLS out, or use its TLS port";
            }
            if (e instanceof SSLHandshakeException && (text.contains("PKIX") || text.contains("certificate"))) {
                return "TLS: the broker's certificate cannot be verified: " + text;
            }
            return "TLS: " + text;
        }
        if (e instanceof EOFException || text.contains("Connection reset") || text.contains("Broken pipe")) {
            return "it closed the connection before the handshake was done"
                    + (config.tls() == null ? "; does it expect TLS?" : "");
        }
        return text;
    }
}
