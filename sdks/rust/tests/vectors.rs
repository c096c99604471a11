//! The golden vectors, both directions, through the client's own codecs; and that the generated files are
//! current.

#[path = "support/json.rs"]
mod json;

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::{Bytes, BytesMut};
use fila_client::wire::{self, client_receives, opcode, FrameDecoder, Limits, State, Verdict};
use json::{bytes_of, forms, to_hex};
use serde_json::Value;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn vectors(file: &str, list: &str) -> Vec<Value> {
    let path = here().join("../../spec/vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let content: Value = serde_json::from_str(&text).unwrap();
    content[list].as_array().unwrap().clone()
}

/// Writes the vectors' repeat forms out, as a decoded body has them.
fn plain(form: &json::Form, body: &Value) -> Value {
    (form.decode)(Bytes::from((form.encode)(body).unwrap())).unwrap()
}

#[test]
fn every_operation_encodes_and_decodes_as_its_vectors_say() {
    let mut seen = [false; 256];
    for file in ["control.json", "hot.json", "bulk.json", "admin.json"] {
        for vector in vectors(file, "vectors") {
            let name = format!("{file}: {}", vector["name"]);
            let code = vector["opcode"].as_u64().unwrap() as u8;
            let id = vector["request_id"].as_u64().unwrap() as u32;
            let form = forms(code).unwrap();
            let bytes = bytes_of(&vector["bytes"]).unwrap();
            seen[usize::from(code)] = true;
            let mut buf = BytesMut::from(&bytes[..]);
            let message = FrameDecoder::new(Limits::default()).next(&mut buf).unwrap().unwrap();
            assert_eq!((message.opcode, message.request_id, buf.len()), (code, id, 0), "{name}");
            assert_eq!((form.decode)(message.body).unwrap(), plain(&form, &vector["body"]), "{name}");
            if vector["decode_only"] == true {
                continue;
            }
            let mut frame = Vec::new();
            let body = (form.encode)(&vector["body"]).unwrap();
            wire::append_frame(&mut frame, code, id, &body, wire::FRAME_BYTES_MAX);
            assert!(frame == bytes, "{name}: {} is not {}", to_hex(&frame), to_hex(&bytes));
        }
    }
    for code in 0..=u8::MAX {
        assert_eq!(opcode::operation(code).is_some(), seen[usize::from(code)], "opcode {code} has vectors");
    }
}

#[test]
fn malformed_bodies_are_refused_with_the_field_at_fault() {
    for vector in vectors("malformed.json", "vectors") {
        let form = forms(vector["opcode"].as_u64().unwrap() as u8).unwrap();
        let body = Bytes::from(bytes_of(&vector["body"]).unwrap());
        let error = (form.decode)(body).expect_err(&vector["name"].to_string());
        assert_eq!(Value::String(error.field), vector["field"], "{}", vector["name"]);
    }
}

#[test]
fn byte_streams_are_taken_apart_alike_at_once_and_byte_by_byte() {
    for vector in vectors("streams.json", "vectors") {
        let bytes = bytes_of(&vector["bytes"]).unwrap();
        for chunk in [bytes.len().max(1), 1, 7] {
            let limit = |name: &str| vector["limits"][name].as_u64().unwrap() as usize;
            let mut decoder = FrameDecoder::new(Limits {
                frame_bytes: limit("frame_bytes_max"),
                assembly_streams: limit("assembly_streams_max"),
                assembly_bytes: limit("assembly_bytes_max"),
            });
            let (mut messages, mut errors, mut buf) = (Vec::new(), Vec::new(), BytesMut::new());
            'all: for piece in bytes.chunks(chunk) {
                buf.extend_from_slice(piece);
                while let Some(next) = decoder.next(&mut buf) {
                    match next {
                        Ok(m) => {
                            messages.push((u64::from(m.opcode), u64::from(m.request_id), m.body.to_vec()))
                        }
                        Err(e) => {
                            errors.push((u64::from(e.request_id), e.fatal));
                            if e.fatal {
                                break 'all;
                            }
                        }
                    }
                }
            }
            let expected: Vec<_> = vector["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| {
                    let number = |field: &str| m[field].as_u64().unwrap();
                    (number("opcode"), number("request_id"), bytes_of(&m["body"]).unwrap())
                })
                .collect();
            let faults: Vec<_> = vector["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| (e["request_id"].as_u64().unwrap(), e["fatal"].as_bool().unwrap()))
                .collect();
            assert!(messages == expected && errors == faults, "{} in pieces of {chunk}", vector["name"]);
        }
    }
}

#[test]
fn a_client_accepts_in_each_state_what_the_table_says() {
    let state = |name: &Value| match name.as_str().unwrap() {
        "opening" => State::Opening,
        "open" => State::Open,
        _ => State::Closed,
    };
    for row in vectors("states.json", "rows") {
        if row["side"] != "client" {
            continue;
        }
        let expected = match row["next"].is_string() {
            true => Verdict::Next(state(&row["next"])),
            false => Verdict::Refused { fatal: row["fatal"] == true },
        };
        assert_eq!(
            client_receives(state(&row["state"]), row["receives"].as_u64().unwrap() as u8),
            expected,
            "{row}"
        );
    }
}

#[test]
fn a_body_larger_than_a_frame_is_cut_and_joined_again() {
    let body: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
    let mut frames = Vec::new();
    let start = wire::begin_frame(&mut frames, opcode::ENQUEUE, 9);
    frames.extend_from_slice(&body);
    wire::end_frame(&mut frames, start, 1024);
    let mut buf = BytesMut::from(&frames[..]);
    let limits = Limits { frame_bytes: 1024, ..Limits::default() };
    let message = FrameDecoder::new(limits).next(&mut buf).unwrap().unwrap();
    assert_eq!((message.opcode, message.request_id), (opcode::ENQUEUE, 9));
    assert!(message.body == body && buf.is_empty());
}

#[test]
fn the_generated_files_are_current() {
    let output = Command::new("python3").arg(here().join("generate.py")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_readme_names_this_package() {
    let readme = std::fs::read_to_string(here().join("README.md")).unwrap();
    assert!(readme.contains(concat!("cargo add ", env!("CARGO_PKG_NAME"), " ")), "README.md: cargo add");
    assert!(readme.contains("use fila_client::"), "README.md: use");
}
