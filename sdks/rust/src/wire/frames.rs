//! Cuts bodies into frames and puts them together again, without input or output of its own.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use super::FRAME_BYTES_MAX;

const HEADER_BYTES: usize = 10;
/// Opcode, flags and request id are part of a frame's length.
const COUNTED_BYTES: usize = 6;
const CONTINUATION: u8 = 0x01;

/// Appends a body as one frame, or as a run of continued ones if it is larger than `frame_max` allows.
pub fn append_frame(out: &mut Vec<u8>, opcode: u8, request_id: u32, mut body: &[u8], frame_max: usize) {
    let piece = frame_max - COUNTED_BYTES;
    while body.len() > piece {
        append_header(out, opcode, CONTINUATION, request_id, piece);
        out.extend_from_slice(&body[..piece]);
        body = &body[piece..];
    }
    append_header(out, opcode, 0, request_id, body.len());
    out.extend_from_slice(body);
}

/// Appends a header whose length [`end_frame`] fills in; the body is appended between the two. Returns
/// where the frame begins.
pub fn begin_frame(out: &mut Vec<u8>, opcode: u8, request_id: u32) -> usize {
    let start = out.len();
    append_header(out, opcode, 0, request_id, 0);
    start
}

/// Completes the frame that began at `start`, cutting it into pieces if it is too long.
pub fn end_frame(out: &mut Vec<u8>, start: usize, frame_max: usize) {
    let length = out.len() - start - 4;
    if length <= frame_max {
        out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
        return;
    }
    let body = out.split_off(start + HEADER_BYTES);
    let opcode = out[start + 4];
    let request_id = (&out[start + 6..]).get_u32();
    out.truncate(start);
    append_frame(out, opcode, request_id, &body, frame_max);
}

fn append_header(out: &mut Vec<u8>, opcode: u8, flags: u8, request_id: u32, body_bytes: usize) {
    out.extend_from_slice(&((COUNTED_BYTES + body_bytes) as u32).to_be_bytes());
    out.extend_from_slice(&[opcode, flags]);
    out.extend_from_slice(&request_id.to_be_bytes());
}

/// What a [`FrameDecoder`] accepts.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest frame.
    pub frame_bytes: usize,
    /// How many bodies may be half assembled.
    pub assembly_streams: usize,
    /// How many bytes of them.
    pub assembly_bytes: usize,
}

impl Default for Limits {
    /// A client's: a Delivery is a little longer than the Enqueue it came from, so a client puts
    /// together more than the broker's own bound.
    fn default() -> Limits {
        Limits { frame_bytes: FRAME_BYTES_MAX, assembly_streams: 16, assembly_bytes: 512 << 20 }
    }
}

/// A frame that cannot be accepted. After a fatal one the stream cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameError {
    /// The request it belongs to, 0 if that cannot be told.
    pub request_id: u32,
    /// Nothing can be read after it.
    pub fatal: bool,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for FrameError {}

/// An operation with its whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The operation's number.
    pub opcode: u8,
    /// Whose answer it is.
    pub request_id: u32,
    /// All pieces in order.
    pub body: Bytes,
}

/// Takes whole operations off a stream of bytes.
#[derive(Debug)]
pub struct FrameDecoder {
    limits: Limits,
    begun: HashMap<(u8, u32), BytesMut>,
    refused: HashSet<(u8, u32)>,
    /// Bytes of half-assembled bodies.
    held: usize,
}

impl FrameDecoder {
    /// A decoder with these limits.
    pub fn new(limits: Limits) -> FrameDecoder {
        FrameDecoder { limits, begun: HashMap::new(), refused: HashSet::new(), held: 0 }
    }

    /// Sets the largest frame, once the handshake has told it.
    pub fn set_frame_bytes(&mut self, frame_bytes: usize) {
        self.limits.frame_bytes = frame_bytes;
    }

    /// The next operation in `buf`; `None` if more bytes are needed. An error that is not fatal costs
    /// one message and the next call goes on. Bodies share `buf`'s memory.
    pub fn next(&mut self, buf: &mut BytesMut) -> Option<Result<Incoming, FrameError>> {
        loop {
            let (flags, frame) = match self.frame(buf)? {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            if flags == 0 && self.begun.is_empty() && self.refused.is_empty() {
                return Some(Ok(frame));
            }
            if let Some(result) = self.assemble(flags, frame) {
                return Some(result);
            }
        }
    }

    /// How many bytes the frame at the front of `buf` still lacks; a little if that cannot be told.
    pub fn lacks(&self, buf: &BytesMut) -> usize {
        match buf.get(..4) {
            Some(mut length) => (4 + length.get_u32() as usize).saturating_sub(buf.len()),
            None => HEADER_BYTES,
        }
    }

    fn frame(&self, buf: &mut BytesMut) -> Option<Result<(u8, Incoming), FrameError>> {
        let length = buf.get(..4)?.get_u32() as usize;
        if length < COUNTED_BYTES {
            let reason = format!("a frame of {length} bytes is shorter than its header of {COUNTED_BYTES}");
            return Some(Err(FrameError { request_id: 0, fatal: true, reason }));
        }
        let header = buf.get(..HEADER_BYTES)?;
        let (opcode, flags, request_id) = (header[4], header[5], (&header[6..]).get_u32());
        if length > self.limits.frame_bytes {
            let reason =
                format!("a frame of {length} bytes exceeds the limit of {}", self.limits.frame_bytes);
            return Some(Err(FrameError { request_id, fatal: true, reason }));
        }
        if buf.len() < 4 + length {
            return None;
        }
        buf.advance(HEADER_BYTES);
        let body = buf.split_to(length - COUNTED_BYTES).freeze();
        Some(Ok((flags, Incoming { opcode, request_id, body })))
    }

    fn assemble(&mut self, flags: u8, frame: Incoming) -> Option<Result<Incoming, FrameError>> {
        let id = (frame.opcode, frame.request_id);
        let more = flags & CONTINUATION != 0;
        if self.refused.contains(&id) {
            if !more {
                self.refused.remove(&id);
            }
            return None;
        }
        if flags & !CONTINUATION != 0 {
            return self.refuse(id, more, format!("flags 0x{flags:02X} use bits that are reserved"));
        }
        let begun = self.begun.contains_key(&id);
        if !begun && !more {
            return Some(Ok(frame));
        }
        if !begun && self.begun.len() >= self.limits.assembly_streams {
            let most = self.limits.assembly_streams;
            return self.refuse(id, more, format!("more than {most} messages are being continued at once"));
        }
        if self.held + frame.body.len() > self.limits.assembly_bytes {
            let most = self.limits.assembly_bytes;
            return self.refuse(id, more, format!("continued messages exceed {most} bytes"));
        }
        self.held += frame.body.len();
        self.begun.entry(id).or_default().extend_from_slice(&frame.body);
        if more {
            return None;
        }
        let body = self.begun.remove(&id).unwrap_or_default().freeze();
        self.held -= body.len();
        Some(Ok(Incoming { body, ..frame }))
    }

    /// Drops a message and the pieces of it still to come.
    fn refuse(&mut self, id: (u8, u32), more: bool, reason: String) -> Option<Result<Incoming, FrameError>> {
        self.held -= self.begun.remove(&id).map_or(0, |pieces| pieces.len());
        let mut fatal = false;
        if more {
            self.refused.insert(id);
            fatal = self.refused.len() > self.limits.assembly_streams;
        }
        Some(Err(FrameError { request_id: id.1, fatal, reason }))
    }
}
