//! Connections, messages and consumers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fila_client::{
    BatchMode, ConnectOptions, ConsumeHandle, ConsumeOptions, ConsumeStream, EnqueueMessage, Error, Event,
    FilaClient, Message,
};
use serde_json::{json, Value};

use crate::json::to_hex;
use crate::text::{from_base64, to_base64};
use crate::{describe_error, millis, text, Adapter, Answer, Failure};

const PAYLOAD_SHOWN_MAX: usize = 4096;

/// A subscription and what it handed out, until that is settled by the message's methods.
pub struct Consumer {
    stream: tokio::sync::Mutex<Receiving>,
    pub handle: ConsumeHandle,
    held: Mutex<HashMap<String, Message>>,
}

struct Receiving {
    stream: ConsumeStream,
    failure: Option<Error>,
}

fn options(r: &Value) -> Result<ConnectOptions, Failure> {
    let o = &r["options"];
    let read = |field: &str| std::fs::read(text(o, field)).map_err(|e| format!("{}: {e}", o[field]));
    let mut options = ConnectOptions::new(text(r, "address"));
    if o["tls"] == true {
        options = options.with_tls();
    }
    if o["ca"].is_string() {
        options = options.with_tls_ca_cert(read("ca")?);
    }
    if o["cert"].is_string() {
        options = options.with_tls_identity(read("cert")?, read("key")?);
    }
    if let Some(key) = o["api_key"].as_str() {
        options = options.with_api_key(key);
    }
    if let Some(timeout) = millis(o, "timeout_ms") {
        options = options.with_call_timeout(timeout);
    }
    if let Some(timeout) = millis(o, "connect_timeout_ms") {
        options = options.with_connect_timeout(timeout);
    }
    match text(o, "batch") {
        "linger" => {
            let linger = millis(o, "linger_ms").unwrap_or(Duration::from_millis(5));
            options = options.with_batch_mode(BatchMode::Linger(linger));
        }
        "off" => options = options.with_batch_mode(BatchMode::Disabled),
        _ => {}
    }
    if let Some(bytes) = o["in_flight_bytes_max"].as_u64() {
        options = options.with_in_flight_bytes(bytes as usize);
    }
    if o["reconnect"] == false {
        options = options.without_reconnect();
    }
    let (lowest, highest) = (millis(o, "reconnect_pause_min_ms"), millis(o, "reconnect_pause_max_ms"));
    if lowest.is_some() || highest.is_some() {
        let highest = highest.unwrap_or(Duration::from_secs(5));
        options =
            options.with_reconnect_pause(lowest.unwrap_or(Duration::from_millis(50)).min(highest), highest);
    }
    let (interval, timeout) = (millis(o, "keepalive_interval_ms"), millis(o, "keepalive_timeout_ms"));
    if interval.is_some() || timeout.is_some() {
        let interval = interval.unwrap_or(Duration::from_secs(15));
        options = options.with_keep_alive(interval, timeout.unwrap_or(Duration::from_secs(10)));
    }
    Ok(options)
}

impl Adapter {
    pub async fn connect(&self, r: &Value) -> Answer {
        let name = text(r, "client").to_owned();
        let (events, client_name) = (self.events.clone(), name.clone());
        let options = options(r)?.with_event_handler(move |event| {
            if matches!(event, Event::Connected { .. } | Event::Disconnected { .. } | Event::Closed { .. }) {
                events.lock().unwrap().entry(client_name.clone()).or_default().push(event.name());
            }
        });
        let client = FilaClient::connect_with_options(options).await?;
        self.clients.lock().unwrap().insert(name, client);
        Ok(json!({}))
    }

    pub async fn consume(&self, client: &FilaClient, r: &Value) -> Answer {
        let mut options = ConsumeOptions::new();
        if let Some(prefetch) = r["prefetch"].as_u64().filter(|n| *n > 0) {
            options = options.with_prefetch(prefetch as u32);
        }
        if r["heartbeat"] == true {
            options = options.with_heartbeat();
        }
        let stream = client.consume_with_options(text(r, "queue"), options).await?;
        let handle = stream.handle();
        let stream = tokio::sync::Mutex::new(Receiving { stream, failure: None });
        let consumer = Arc::new(Consumer { stream, handle, held: Mutex::default() });
        self.consumers.lock().unwrap().insert(text(r, "consumer").to_owned(), consumer);
        Ok(json!({}))
    }

    pub async fn next(&self, r: &Value) -> Answer {
        let consumer = self.consumer(r)?;
        let wanted = r["max"].as_u64().unwrap_or(1).max(1) as usize;
        let patience = millis(r, "timeout_ms").unwrap_or(Duration::from_secs(3600));
        let deadline = tokio::time::Instant::now() + patience;
        let mut receiving = consumer.stream.lock().await;
        let mut messages = Vec::new();
        let mut end = false;
        while messages.len() < wanted && !end && receiving.failure.is_none() {
            match tokio::time::timeout_at(deadline, receiving.stream.recv()).await {
                Ok(Some(Ok(message))) => {
                    messages.push(shown(&message));
                    consumer.held.lock().unwrap().insert(message.id.clone(), message);
                }
                Ok(Some(Err(error))) => receiving.failure = Some(error),
                Ok(None) => end = true,
                Err(_) => break,
            }
        }
        match &receiving.failure {
            Some(error) if messages.is_empty() => Err(error.clone().into()),
            _ => Ok(json!({"messages": messages, "end": end})),
        }
    }

    /// Acknowledges, rejects or releases: by the messages' methods or by the client's.
    pub async fn settle(&self, r: &Value) -> Answer {
        let ids: Vec<&str> = r["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if r["consumer"].is_string() {
            return self.settle_messages(r, &ids).await;
        }
        let client = self.client(r)?;
        let (queue, reason) = (text(r, "queue"), text(r, "error"));
        let results = match (text(r, "op"), ids.as_slice()) {
            ("ack", [id]) => vec![client.ack(queue, id).await],
            ("nack", [id]) => vec![client.nack(queue, id, reason).await],
            ("extend", [id]) => vec![client.extend(queue, id, visibility(r)).await],
            (_, [id]) => vec![client.release(queue, id).await],
            ("ack", ids) => client.ack_many(queue, ids).await,
            ("nack", ids) => client.nack_many(queue, ids, reason).await,
            ("extend", ids) => client.extend_many(queue, ids, visibility(r)).await,
            (_, ids) => client.release_many(queue, ids).await,
        };
        Ok(outcomes(results.into_iter().map(|result| result.map(|()| json!({})))))
    }

    async fn settle_messages(&self, r: &Value, ids: &[&str]) -> Answer {
        let consumer = self.consumer(r)?;
        let mut settling = Vec::new();
        for id in ids {
            let held = match text(r, "op") {
                "extend" => consumer.held.lock().unwrap().get(*id).cloned(),
                _ => consumer.held.lock().unwrap().remove(*id),
            };
            let message = held.ok_or_else(|| format!("the consumer does not hold {id:?}"))?;
            let longer = visibility(r);
            let (op, reason) = (text(r, "op").to_owned(), text(r, "error").to_owned());
            settling.push(tokio::spawn(async move {
                match op.as_str() {
                    "ack" => message.ack().await,
                    "nack" => message.nack(&reason).await,
                    "extend" => message.extend(longer).await,
                    _ => message.release().await,
                }
            }));
        }
        let mut results = Vec::new();
        for settled in settling {
            results.push(settled.await.map_err(|e| e.to_string())?.map(|()| json!({})));
        }
        Ok(outcomes(results.into_iter()))
    }
}

/// What `extend` asks for; none for the queue's timeout.
fn visibility(r: &Value) -> Option<Duration> {
    millis(r, "visibility_ms").filter(|time| !time.is_zero())
}

fn outcomes(results: impl Iterator<Item = Result<Value, Error>>) -> Value {
    let list: Vec<_> = results.map(|r| r.unwrap_or_else(|e| json!({"error": describe_error(&e)}))).collect();
    json!({"results": list})
}

fn outgoing(r: &Value) -> Result<EnqueueMessage, Failure> {
    let payload = match &r["payload"] {
        Value::Null => Vec::new(),
        Value::String(encoded) => from_base64(encoded)?,
        repeated => {
            let count = repeated["count"].as_u64().unwrap_or_default() as usize;
            from_base64(text(repeated, "repeat"))?.repeat(count)
        }
    };
    let mut message = EnqueueMessage::new(text(r, "queue"), payload);
    for (name, value) in r["headers"].as_object().into_iter().flatten() {
        message = message.header(name, value.as_str().unwrap_or_default());
    }
    if let Some(delay) = millis(r, "delay_ms") {
        message = message.delay(delay);
    }
    let keys = r["throttle_keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(message
        .idempotency_key(text(r, "idempotency_key"))
        .fairness_key(text(r, "fairness_key"))
        .weight(r["weight"].as_u64().unwrap_or_default() as u32)
        .throttle_keys(keys))
}

pub async fn produce(client: &FilaClient, r: &Value) -> Answer {
    match text(r, "op") {
        "enqueue" => enqueue(client, r).await,
        _ => enqueue_many(client, r).await,
    }
}

async fn enqueue(client: &FilaClient, r: &Value) -> Answer {
    let stored = client.enqueue_message(outgoing(r)?).await?;
    Ok(json!({"message_id": stored.message_id}))
}

async fn enqueue_many(client: &FilaClient, r: &Value) -> Answer {
    let messages: Result<Vec<_>, _> = r["messages"].as_array().into_iter().flatten().map(outgoing).collect();
    let results = client.enqueue_many(messages?).await;
    Ok(outcomes(
        results.into_iter().map(|result| result.map(|stored| json!({"message_id": stored.message_id}))),
    ))
}

fn shown(m: &Message) -> Value {
    let digest = ring::digest::digest(&ring::digest::SHA256, &m.payload);
    let payload = (m.payload.len() <= PAYLOAD_SHOWN_MAX).then(|| to_base64(&m.payload));
    let keys: Vec<&str> = m.throttle_keys.iter().map(|key| &**key).collect();
    json!({
        "id": m.id, "queue": &*m.queue, "headers": m.headers, "payload": payload, "size": m.payload.len(),
        "sha256": to_hex(digest.as_ref()), "fairness_key": &*m.fairness_key, "weight": m.weight,
        "throttle_keys": keys, "attempt_count": m.attempt_count,
        "enqueued_at_ms": since_1970(m.enqueued_at), "leased_at_ms": since_1970(m.leased_at),
        "traceparent": m.traceparent(),
    })
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
