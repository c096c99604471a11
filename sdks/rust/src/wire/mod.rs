//! FIBP's frames, bodies and states. Not part of the crate's promise: it is public for the conformance
//! programme only and may change with any release.

mod bodies;
mod decoder;
mod encoder;
mod frames;
pub mod opcode;
mod states;

pub use bodies::*;
pub use decoder::{BodyError, Decoder};
pub use encoder::{check_string, Encoder};
pub use frames::{append_frame, begin_frame, end_frame, FrameDecoder, FrameError, Incoming, Limits};
pub use states::{client_receives, State, Verdict};

pub(crate) use encoder::put_string;

use bytes::Bytes;

/// The protocol's version.
pub const VERSION: u16 = 1;
/// The protocol's name under TLS.
pub const ALPN: &[u8] = b"fila/1";
/// The largest frame unless the broker says otherwise.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Fields in a row, with a fixed order on the wire.
pub trait Record: Sized {
    /// The fewest bytes it can have; a claimed count is checked against it.
    const LEAST: usize;
    /// Appends the fields.
    fn encode(&self, e: &mut Encoder);
    /// Reads the fields.
    fn decode(d: &mut Decoder) -> Result<Self, BodyError>;
}

/// The body of an operation.
pub trait Body: Record {
    /// The operation's number.
    const OPCODE: u8;
}

/// The body's bytes, or why it cannot be sent.
pub fn encode<B: Body>(body: &B) -> Result<Vec<u8>, String> {
    let mut e = Encoder::default();
    body.encode(&mut e);
    e.finish()
}

/// Reads a body. Bytes after the last known field are those of a later version.
pub fn decode<B: Body>(body: Bytes) -> Result<B, BodyError> {
    B::decode(&mut Decoder::new(body))
}

/// The operation's name, for people.
pub fn name(opcode: u8) -> String {
    match opcode::operation(opcode) {
        Some(operation) => operation.name.to_owned(),
        None => format!("opcode 0x{opcode:02X}"),
    }
}
