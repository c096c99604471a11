//! The golden vectors, through the SDK's own codecs.

use bytes::{Bytes, BytesMut};
use fila_client::wire::{self, client_receives, opcode, FrameDecoder, Limits, State, Verdict};
use serde_json::{json, Value};

use crate::json::{forms, from_hex, to_hex};
use crate::{text, Answer, Failure};

const INVALID_FRAME: u8 = 14;

fn opcode_of(operation: &str) -> Result<u8, String> {
    (0..=u8::MAX)
        .find(|code| opcode::operation(*code).is_some_and(|known| known.name == operation))
        .ok_or_else(|| format!("no operation {operation:?}"))
}

pub fn encode(r: &Value) -> Answer {
    let code = opcode_of(text(r, "operation"))?;
    let form = forms(code).ok_or_else(|| "an operation without a body".to_owned())?;
    let body = (form.encode)(&r["body"])?;
    let mut frame = Vec::new();
    let request_id = r["request_id"].as_u64().unwrap_or_default() as u32;
    wire::append_frame(&mut frame, code, request_id, &body, wire::FRAME_BYTES_MAX);
    Ok(json!({"bytes": to_hex(&frame)}))
}

pub fn decode(r: &Value) -> Answer {
    let mut buf = BytesMut::from(&from_hex(text(r, "bytes"))?[..]);
    let message = match FrameDecoder::new(Limits::default()).next(&mut buf) {
        Some(Ok(message)) => message,
        Some(Err(e)) => return Err(malformed(e.to_string())),
        None => return Err(malformed("half a frame".to_owned())),
    };
    let form =
        forms(message.opcode).ok_or_else(|| malformed(format!("unknown {}", wire::name(message.opcode))))?;
    let body = (form.decode)(message.body).map_err(|e| malformed(e.to_string()))?;
    let operation = wire::name(message.opcode);
    Ok(
        json!({"operation": operation, "opcode": message.opcode, "request_id": message.request_id, "body": body}),
    )
}

pub fn decode_body(r: &Value) -> Answer {
    let form =
        forms(opcode_of(text(r, "operation"))?).ok_or_else(|| "an operation without a body".to_owned())?;
    let body = Bytes::from(from_hex(text(r, "body"))?);
    Ok(json!({"body": (form.decode)(body).map_err(|e| malformed(e.to_string()))?}))
}

pub fn decode_stream(r: &Value) -> Answer {
    let bytes = from_hex(text(r, "bytes"))?;
    let limit = |name: &str| r["limits"][name].as_u64().unwrap_or(u64::from(u32::MAX)) as usize;
    let mut decoder = FrameDecoder::new(Limits {
        frame_bytes: limit("frame_bytes_max"),
        assembly_streams: limit("assembly_streams_max"),
        assembly_bytes: limit("assembly_bytes_max"),
    });
    let chunk = match r["chunk"].as_u64().unwrap_or(0) as usize {
        0 => bytes.len().max(1),
        chunk => chunk,
    };
    let (mut messages, mut errors, mut buf) = (Vec::new(), Vec::new(), BytesMut::new());
    'all: for piece in bytes.chunks(chunk) {
        buf.extend_from_slice(piece);
        while let Some(next) = decoder.next(&mut buf) {
            match next {
                Ok(m) => {
                    messages.push(
                        json!({"opcode": m.opcode, "request_id": m.request_id, "body": to_hex(&m.body)}),
                    );
                }
                Err(e) => {
                    errors.push(json!({"code": INVALID_FRAME, "request_id": e.request_id, "fatal": e.fatal}));
                    if e.fatal {
                        break 'all;
                    }
                }
            }
        }
    }
    Ok(json!({"messages": messages, "errors": errors}))
}

pub fn state(r: &Value) -> Answer {
    let names = [("opening", State::Opening), ("open", State::Open), ("closed", State::Closed)];
    let found = names.iter().find(|(name, _)| *name == text(r, "state"));
    let (_, state) = found.ok_or_else(|| format!("no state {}", r["state"]))?;
    let received = r["receives"].as_u64().unwrap_or_default() as u8;
    Ok(match client_receives(*state, received) {
        Verdict::Next(next) => {
            let name = names.iter().find(|(_, known)| *known == next).map(|(name, _)| *name);
            json!({"next": name})
        }
        Verdict::Refused { fatal } => json!({"refused": INVALID_FRAME, "fatal": fatal}),
    })
}

/// The code of a peer's mistake, as the protocol wants it answered.
fn malformed(text: String) -> Failure {
    Failure::Malformed(text)
}
