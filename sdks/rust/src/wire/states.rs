//! What a client may receive in which state.

use super::opcode;

/// A connection's state, as one side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing but the handshake's answer may come.
    Opening,
    /// The handshake is done.
    Open,
    /// Over.
    Closed,
}

/// What follows from receiving an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is accepted and leads to this state.
    Next(State),
    /// It is not accepted: ignored, or the end of the connection if `fatal`.
    Refused {
        /// The connection is closed.
        fatal: bool,
    },
}

/// Judges what a client received.
pub fn client_receives(state: State, received: u8) -> Verdict {
    match (state, received) {
        (State::Opening, opcode::HANDSHAKE_OK) => Verdict::Next(State::Open),
        (State::Opening, opcode::ERROR | opcode::DISCONNECT) => Verdict::Next(State::Closed),
        (State::Open, opcode::DISCONNECT) => Verdict::Next(State::Closed),
        (State::Open, opcode::HANDSHAKE_OK) => Verdict::Refused { fatal: false },
        (State::Open, _) => match opcode::operation(received) {
            Some(operation) if operation.from_server => Verdict::Next(State::Open),
            _ => Verdict::Refused { fatal: false },
        },
        _ => Verdict::Refused { fatal: true },
    }
}
