//! A delivered message.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::call::{Kind, Ref};
use crate::client::FilaClient;
use crate::core::lock;
use crate::link::Link;
use crate::settle::clipped;
use crate::trace::TRACEPARENT_HEADER;
use crate::wire::{BodyError, Decoder};
use crate::{Error, Result};

/// One delivery. Its lease lasts for the queue's visibility timeout: settle it within that time with
/// [`ack`](Message::ack), [`nack`](Message::nack) or [`release`](Message::release), or it is delivered
/// again, perhaps to somebody else.
///
/// `payload` shares memory with the other messages that arrived with it: copy a small one to keep it for
/// long.
#[derive(Clone)]
#[non_exhaustive]
pub struct Message {
    /// A UUID as text, unique and increasing: a good key for deduplication.
    pub id: String,
    /// The queue it came from.
    pub queue: Arc<str>,
    /// What the producer said about it.
    pub headers: HashMap<String, String>,
    /// The content.
    pub payload: Bytes,
    /// What the queue's `on_enqueue` hook or the producer chose.
    pub fairness_key: Arc<str>,
    /// The fairness key's weight.
    pub weight: u32,
    /// The buckets it takes tokens from.
    pub throttle_keys: Vec<Arc<str>>,
    /// How often it failed before: 0 at the first delivery.
    pub attempt_count: u32,
    /// When it was stored.
    pub enqueued_at: SystemTime,
    /// When it was handed out.
    pub leased_at: SystemTime,
    /// Where it is leased.
    pub(crate) link: Option<Arc<Link>>,
    /// Set when it is handed to the user: a message nobody has read must not keep the client alive.
    pub(crate) client: Option<FilaClient>,
    /// Set in `process`: whether the handler has settled it.
    pub(crate) settled: Option<Arc<AtomicBool>>,
}

impl Message {
    /// Settles the message: done and gone.
    pub async fn ack(&self) -> Result<()> {
        self.settle(Kind::Ack, "").await
    }

    /// Gives the message back as failed. The queue's `on_failure` hook sees the reason and decides whether
    /// and when it is delivered again.
    pub async fn nack(&self, reason: &str) -> Result<()> {
        self.settle(Kind::Nack, reason).await
    }

    /// Hands the message back at once, to its old place and without a counted attempt.
    pub async fn release(&self) -> Result<()> {
        self.settle(Kind::Release, "").await
    }

    /// Lets the lease end that much later from now; `None` means the queue's visibility timeout.
    pub async fn extend(&self, visibility: Option<Duration>) -> Result<()> {
        let Some(client) = &self.client else {
            return Err(Error::invalid("extend", "the message was not received from a consumer"));
        };
        client.extend(&self.queue, &self.id, visibility).await
    }

    /// The message's W3C trace context.
    pub fn traceparent(&self) -> Option<&str> {
        self.headers.get(TRACEPARENT_HEADER).map(String::as_str)
    }

    async fn settle(&self, kind: Kind, reason: &str) -> Result<()> {
        if let Some(settled) = &self.settled {
            settled.store(true, Ordering::Relaxed);
        }
        self.receipt().settle(kind, reason).await
    }

    /// What it takes to settle the message, without its content.
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt {
            queue: self.queue.clone(),
            id: self.id.clone(),
            link: self.link.clone(),
            client: self.client.clone(),
        }
    }
}

/// Settles a message whose content is somebody else's.
pub(crate) struct Receipt {
    pub(crate) queue: Arc<str>,
    pub(crate) id: String,
    link: Option<Arc<Link>>,
    client: Option<FilaClient>,
}

impl Receipt {
    pub(crate) async fn settle(self, kind: Kind, reason: &str) -> Result<()> {
        let Some(client) = &self.client else {
            return Err(Error::invalid("settle", "the message was not received from a consumer"));
        };
        let refs = vec![Ref { queue: self.queue, id: self.id, reason: clipped(reason).to_owned() }];
        client.settle_one(kind, refs, self.link).await
    }
}

impl fmt::Debug for Message {
    /// Without the payload and header values: messages end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("queue", &self.queue)
            .field("fairness_key", &self.fairness_key)
            .field("attempt_count", &self.attempt_count)
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

/// Texts that repeat: queues and keys are few, so their messages share them.
#[derive(Default)]
pub(crate) struct Names(HashSet<Arc<str>>);

impl Names {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let name: Arc<str> = text.into();
        if self.0.len() < 1024 && name.len() <= 256 {
            self.0.insert(name.clone());
        }
        name
    }
}

/// Reads a Delivery's messages. Their payloads share the body's memory.
pub(crate) fn decode_delivery(
    body: Bytes,
    names: &Mutex<Names>,
    link: &Arc<Link>,
) -> Result<Vec<Message>, BodyError> {
    const LEAST: usize = 2 + 2 + 2 + 4 + 2 + 4 + 2 + 4 + 8 + 8;
    let mut names = lock(names);
    let mut d = Decoder::new(body);
    let count = d.count_u32("messages", LEAST)?;
    let mut messages = Vec::with_capacity(count);
    for index in 0..count {
        let message = decode_message(&mut d, &mut names, link).map_err(|e| e.within("messages", index))?;
        messages.push(message);
    }
    Ok(messages)
}

fn decode_message(d: &mut Decoder, names: &mut Names, link: &Arc<Link>) -> Result<Message, BodyError> {
    Ok(Message {
        id: d.string("id")?,
        queue: names.get(d.text("queue")?),
        headers: decode_headers(d)?,
        payload: d.bytes("payload")?,
        fairness_key: names.get(d.text("fairness_key")?),
        weight: d.u32("weight")?,
        throttle_keys: {
            let count = d.count_u16("throttle_keys", 2)?;
            (0..count).map(|_| Ok(names.get(d.text("throttle_keys")?))).collect::<Result<_, BodyError>>()?
        },
        attempt_count: d.u32("attempt_count")?,
        enqueued_at: from_millis(d.u64("enqueued_at_ms")?),
        leased_at: from_millis(d.u64("leased_at_ms")?),
        link: Some(link.clone()),
        client: None,
        settled: None,
    })
}

pub(crate) fn decode_headers(d: &mut Decoder) -> Result<HashMap<String, String>, BodyError> {
    let count = d.count_u16("headers", 4)?;
    (0..count)
        .map(|index| Ok((d.pair_part("headers", index, "key")?, d.pair_part("headers", index, "value")?)))
        .collect()
}

/// A time the broker tells; the epoch if the system cannot hold it.
pub(crate) fn from_millis(ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH)
}
