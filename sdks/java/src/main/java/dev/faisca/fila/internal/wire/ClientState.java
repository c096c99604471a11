package dev.faisca.fila.internal.wire;

/** The states of a connection on the client's side: what may be received when, and what follows. */
public enum ClientState {
    OPENING,
    OPEN,
    CLOSED;

    /** What receiving an operation leads to. Refused: next is null, and if fatal the connection ends. */
    public record Verdict(ClientState next, boolean fatal) {
        public boolean refused() {
            return next == null;
        }
    }

    public Verdict receives(int opcode) {
        return switch (this) {
            case OPENING -> switch (opcode) {
                case Opcodes.HANDSHAKE_OK -> new Verdict(OPEN, false);
                case Opcodes.ERROR, Opcodes.DISCONNECT -> new Verdict(CLOSED, false);
                default -> new Verdict(null, true);
            };
            case OPEN -> {
                if (opcode == Opcodes.DISCONNECT) {
                    yield new Verdict(CLOSED, false);
                }
                // What is not expected may be an operation of a later version: not for us.
                boolean expected = Opcodes.fromServer(opcode) && opcode != Opcodes.HANDSHAKE_OK;
                yield new Verdict(expected ? OPEN : null, false);
            }
            case CLOSED -> new Verdict(null, true);
        };
    }
}
