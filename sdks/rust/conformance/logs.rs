//! The process's log: what `tracing` is told, kept.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use serde_json::{json, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static LINES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Keeps the client's lines from now on.
pub fn keep() {
    tracing::subscriber::set_global_default(Keeper(AtomicU64::new(1))).expect("nobody else logs");
}

pub fn told() -> Vec<Value> {
    LINES.lock().unwrap().clone()
}

struct Keeper(AtomicU64);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("fila_client")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let level = event.metadata().level().as_str().to_lowercase();
        LINES.lock().unwrap().push(json!({"level": level, "text": text.0}));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{value:?} ");
    }
}
