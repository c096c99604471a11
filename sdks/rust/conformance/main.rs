//! Translates the conformance runner's requests into calls of the SDK; see `sdks/conformance/PROTOCOL.md`.

#[path = "../tests/support/json.rs"]
#[allow(dead_code)]
mod json;

mod admin;
mod codec;
mod logs;
mod messages;
mod text;

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fila_client::{trace, Error, FilaClient};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::oneshot;

use messages::Consumer;

/// Why a request failed.
enum Failure {
    Sdk(Error),
    NotImplemented(String),
    /// Bytes that do not parse.
    Malformed(String),
    /// The adapter's own mistake.
    Unexpected(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Sdk(error)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Unexpected(text)
    }
}

type Answer = Result<Value, Failure>;

#[derive(Default)]
struct Adapter {
    clients: Mutex<HashMap<String, FilaClient>>,
    events: Arc<Mutex<HashMap<String, Vec<&'static str>>>>,
    consumers: Mutex<HashMap<String, Arc<Consumer>>>,
    aborts: Mutex<HashMap<u64, oneshot::Sender<()>>>,
}

// One thread: requests are started in the order in which they were read.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    logs::keep();
    let adapter = Arc::new(Adapter::default());
    let mut lines = BufReader::with_capacity(1 << 20, tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str::<Value>(&line) {
            Ok(request) => adapter.start(request),
            Err(e) => eprintln!("a request that is no JSON: {e}"),
        }
    }
    let clients: Vec<_> = adapter.clients.lock().unwrap().values().cloned().collect();
    let closing: Vec<_> = clients.into_iter().map(|c| tokio::spawn(async move { c.close().await })).collect();
    for closed in closing {
        let _ = closed.await;
    }
    std::process::exit(0); // stdin's thread may be waiting
}

impl Adapter {
    fn start(self: &Arc<Self>, request: Value) {
        let id = request["id"].as_u64().unwrap_or_default();
        let (abort, aborted) = oneshot::channel::<()>();
        self.aborts.lock().unwrap().insert(id, abort);
        let adapter = self.clone();
        tokio::spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = adapter.perform(&request) => Some(answer),
                Ok(()) = aborted => None,
            };
            adapter.aborts.lock().unwrap().remove(&id);
            respond(match answer {
                Some(Ok(answer)) => json!({"id": id, "ok": answer}),
                Some(Err(failure)) => json!({"id": id, "error": describe(&failure)}),
                None => json!({"id": id, "error": error("Cancelled", "the call was dropped")}),
            });
        });
    }

    async fn perform(&self, r: &Value) -> Answer {
        match text(r, "op") {
            "hello" => Ok(json!({"protocol": 1, "language": "rust", "version": env!("CARGO_PKG_VERSION")})),
            "stats" => stats(),
            "abort" => {
                let waiting = self.aborts.lock().unwrap().remove(&r["request"].as_u64().unwrap_or_default());
                if let Some(abort) = waiting {
                    let _ = abort.send(());
                }
                Ok(json!({}))
            }
            "encode" => codec::encode(r),
            "decode" => codec::decode(r),
            "decode_body" => codec::decode_body(r),
            "decode_stream" => codec::decode_stream(r),
            "state" => codec::state(r),
            "connect" => self.connect(r).await,
            "events" => {
                let events = self.events.lock().unwrap();
                Ok(json!({"events": events.get(text(r, "client")).cloned().unwrap_or_default()}))
            }
            "logs" => Ok(json!({"lines": logs::told()})),
            "next" => self.next(r).await,
            "cancel" => {
                self.consumer(r)?.handle.cancel();
                Ok(json!({}))
            }
            "ack" | "nack" | "release" | "extend" => self.settle(r).await,
            _ => self.call(r).await,
        }
    }

    async fn call(&self, r: &Value) -> Answer {
        let client = self.client(r)?;
        match text(r, "op") {
            "close" => {
                client.close().await;
                Ok(json!({}))
            }
            "drain" => {
                client.drain(millis(r, "timeout_ms").unwrap_or(Duration::from_secs(30))).await?;
                Ok(json!({}))
            }
            "enqueue" | "enqueue_many" => match r["traceparent"].as_str() {
                Some(traceparent) => trace::scope(traceparent, messages::produce(&client, r)).await,
                None => messages::produce(&client, r).await,
            },
            "consume" => self.consume(&client, r).await,
            _ => admin::administer(&client, r).await,
        }
    }

    /// The client a request names, with the request's deadline.
    fn client(&self, r: &Value) -> Result<FilaClient, Failure> {
        let clients = self.clients.lock().unwrap();
        let client = clients.get(text(r, "client")).ok_or_else(|| format!("no client {}", r["client"]))?;
        Ok(match millis(r, "timeout_ms") {
            Some(timeout) if r["op"] != "drain" => client.with_timeout(timeout),
            _ => client.clone(),
        })
    }

    fn consumer(&self, r: &Value) -> Result<Arc<Consumer>, Failure> {
        let consumers = self.consumers.lock().unwrap();
        Ok(consumers
            .get(text(r, "consumer"))
            .ok_or_else(|| format!("no consumer {}", r["consumer"]))?
            .clone())
    }
}

fn text<'a>(r: &'a Value, field: &str) -> &'a str {
    r[field].as_str().unwrap_or_default()
}

fn millis(r: &Value, field: &str) -> Option<Duration> {
    r[field].as_f64().filter(|ms| *ms > 0.0).map(|ms| Duration::from_secs_f64(ms / 1000.0))
}

fn respond(response: Value) {
    let mut line = response.to_string();
    line.push('\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn error(code: &str, message: &str) -> Value {
    json!({"code": code, "message": message, "retryable": false, "metadata": {}})
}

fn describe(failure: &Failure) -> Value {
    match failure {
        Failure::Sdk(e) => describe_error(e),
        Failure::Malformed(text) => error("InvalidFrame", text),
        Failure::NotImplemented(op) => error("NotImplemented", &format!("no operation {op:?}")),
        Failure::Unexpected(text) => error("Unexpected", text),
    }
}

fn describe_error(e: &Error) -> Value {
    let code = match e {
        Error::Closed(_) => "ClientClosed",
        other => other.name(),
    };
    json!({"code": code, "message": e.to_string(), "retryable": e.retryable(), "metadata": e.metadata()})
}

fn stats() -> Answer {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|e| e.to_string())?;
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    Ok(json!({"rss_bytes": pages * 4096}))
}
