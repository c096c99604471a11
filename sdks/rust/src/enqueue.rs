//! Storing messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::call::{Call, Content, Item, Kind};
use crate::client::FilaClient;
use crate::core::Core;
use crate::trace::{self, TRACEPARENT_HEADER};
use crate::wire::{check_string, put_string};
use crate::{Error, Result};

/// Bytes of a long list that are handed over together.
const CHUNK_BYTES: usize = 4 << 20;

/// A message to store.
///
/// ```
/// use std::time::Duration;
/// use fila_client::EnqueueMessage;
///
/// let message = EnqueueMessage::new("orders", "hello")
///     .header("tenant", "acme")
///     .delay(Duration::from_secs(60))
///     .idempotency_key("order-4711")
///     .fairness_key("acme")
///     .throttle_keys(["provider:stripe"]);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EnqueueMessage {
    /// Where it goes.
    pub queue: String,
    /// What is said about it.
    pub headers: HashMap<String, String>,
    /// The content.
    pub payload: Bytes,
    /// How long it waits before it can be delivered; at most 366 days.
    pub delay: Duration,
    /// Names this enqueue: a queue that remembers it stores nothing and answers with the first message's
    /// id. With a key an enqueue is repeated by itself after a lost connection. Empty: none.
    pub idempotency_key: String,
    /// Places the message in a queue without an `on_enqueue` hook. Empty: not given.
    pub fairness_key: String,
    /// The fairness key's weight in a queue without an `on_enqueue` hook. 0: not given.
    pub weight: u32,
    /// The buckets it takes tokens from in a queue without an `on_enqueue` hook; at most 16.
    pub throttle_keys: Vec<String>,
}

impl EnqueueMessage {
    /// A message without headers and options.
    pub fn new(queue: impl Into<String>, payload: impl Into<Bytes>) -> EnqueueMessage {
        EnqueueMessage { queue: queue.into(), payload: payload.into(), ..EnqueueMessage::default() }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Replaces all headers.
    pub fn headers(mut self, headers: HashMap<String, String>) -> Self {
        self.headers = headers;
        self
    }

    /// Lets the message become ready that much later.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Names the enqueue, so that repeating it stores nothing.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = key.into();
        self
    }

    /// Places the message in a queue without an `on_enqueue` hook.
    pub fn fairness_key(mut self, key: impl Into<String>) -> Self {
        self.fairness_key = key.into();
        self
    }

    /// Sets the fairness key's weight.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Names the buckets the message takes tokens from.
    pub fn throttle_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.throttle_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    fn has_options(&self) -> bool {
        !self.delay.is_zero()
            || !self.idempotency_key.is_empty()
            || !self.fairness_key.is_empty()
            || self.weight != 0
            || !self.throttle_keys.is_empty()
    }

    fn check(&self) -> Result<(), String> {
        if self.queue.is_empty() {
            return Err("the queue has no name".to_owned());
        }
        check_string("the queue's name", &self.queue)?;
        for (name, value) in &self.headers {
            check_string("a header's name", name)?;
            check_string(&format!("header {name:?}"), value)?;
        }
        check_string("the idempotency key", &self.idempotency_key)?;
        check_string("the fairness key", &self.fairness_key)?;
        for key in &self.throttle_keys {
            check_string("a throttle key", key)?;
        }
        for (what, count, most) in [
            ("headers", self.headers.len(), usize::from(u16::MAX)),
            ("throttle keys", self.throttle_keys.len(), usize::from(u16::MAX)),
            ("bytes of payload", self.payload.len(), u32::MAX as usize),
        ] {
            if count > most {
                return Err(format!("{count} {what}; at most {most} can be sent"));
            }
        }
        Ok(())
    }

    /// About what the message takes on the wire.
    pub(crate) fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| 4 + name.len() + value.len()).sum();
        let keys: usize = self.throttle_keys.iter().map(|key| 2 + key.len()).sum();
        8 + self.queue.len()
            + headers
            + self.payload.len()
            + self.idempotency_key.len()
            + self.fairness_key.len()
            + keys
    }

    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        put_string(out, &self.queue);
        out.extend_from_slice(&(self.headers.len() as u16).to_be_bytes());
        for (name, value) in &self.headers {
            put_string(out, name);
            put_string(out, value);
        }
        out.extend_from_slice(&(self.payload.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.payload);
    }

    pub(crate) fn append_options(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&millis(self.delay).to_be_bytes());
        put_string(out, &self.idempotency_key);
        put_string(out, &self.fairness_key);
        out.extend_from_slice(&self.weight.to_be_bytes());
        out.extend_from_slice(&(self.throttle_keys.len() as u16).to_be_bytes());
        for key in &self.throttle_keys {
            put_string(out, key);
        }
    }
}

/// Rounded up, so that a short time does not become "not given".
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A message the broker has stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The message's id, a UUID as text.
    pub message_id: String,
    /// The queue knew the idempotency key; the id is the first message's.
    pub duplicate: bool,
}

/// Withdraws what a call has not sent when its caller goes away.
struct Withdrawal<'a>(&'a Core, &'a Arc<Call>);

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if !self.1.is_finished() {
            self.0.abandon(self.1);
        }
    }
}

impl FilaClient {
    /// Stores a message and returns its id once the broker has it.
    ///
    /// ```no_run
    /// # async fn example(client: fila_client::FilaClient) -> fila_client::Result<()> {
    /// use std::collections::HashMap;
    ///
    /// let headers = HashMap::from([("tenant".to_owned(), "acme".to_owned())]);
    /// let id = client.enqueue("orders", headers, "hello").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue(
        &self,
        queue: &str,
        headers: HashMap<String, String>,
        payload: impl Into<Bytes>,
    ) -> Result<String> {
        let message = EnqueueMessage::new(queue, payload).headers(headers);
        self.enqueue_message(message).await.map(|stored| stored.message_id)
    }

    /// Stores a message with options.
    pub async fn enqueue_message(&self, message: EnqueueMessage) -> Result<Enqueued> {
        self.enqueue_many(vec![message]).await.swap_remove(0)
    }

    /// Stores messages, of one queue or of several. The results are in the messages' order, one for each.
    /// A refused message costs only itself; a call that fails as a whole fails every message that had no
    /// answer before.
    #[must_use = "every message has a result of its own"]
    pub async fn enqueue_many(&self, mut messages: Vec<EnqueueMessage>) -> Vec<Result<Enqueued>> {
        let traceparent = match &self.core().config.options.traceparent {
            Some(provider) => provider(),
            None => trace::current(),
        };
        let mut refused = Vec::new();
        let mut kind = Kind::Enqueue;
        for (index, message) in messages.iter_mut().enumerate() {
            if let Some(traceparent) = &traceparent {
                message.headers.entry(TRACEPARENT_HEADER.to_owned()).or_insert_with(|| traceparent.clone());
            }
            if let Err(e) = message.check() {
                refused.push((index, Error::invalid("enqueue", e)));
            }
            if message.has_options() {
                kind = Kind::EnqueueWith; // for all of them, so that they are stored in their order
            }
        }
        let call = Call::new(kind, Content::Messages(messages));
        for (index, error) in refused.clone() {
            call.settle(index, Err(error));
        }
        if let Err(error) = self.perform_enqueue(&call, &refused).await {
            call.give_up(&error);
        }
        call.take_results()
    }

    async fn perform_enqueue(&self, call: &Arc<Call>, refused: &[(usize, Error)]) -> Result<()> {
        let core = self.core();
        let _under_way = core.begin("enqueue", true)?;
        let _withdrawal = Withdrawal(core, call);
        let queue = call.messages().first().map_or("", |message| &message.queue);
        let stored = async {
            self.hand_over(call, refused).await;
            call.finished().await;
        };
        self.bounded("enqueue", queue, stored).await
    }

    /// Gives a call's messages to their links, as the bound on bytes in flight lets them in.
    async fn hand_over(&self, call: &Arc<Call>, refused: &[(usize, Error)]) {
        let core = self.core();
        let chunk_max = CHUNK_BYTES.min(core.room_total);
        let mut rest = (0..call.messages().len())
            .filter(|index| refused.binary_search_by_key(index, |(refused, _)| *refused).is_err())
            .peekable();
        while rest.peek().is_some() {
            let mut items = Vec::new();
            let mut charged = 0;
            while let Some(&index) = rest.peek() {
                let size = call.messages()[index].size();
                let charge = size.min(core.room_total);
                if charged > 0 && charged + charge > chunk_max {
                    break;
                }
                charged += charge;
                items.push(Item { call: call.clone(), index, size, charge, hops: 0 });
                rest.next();
            }
            // The semaphore is never closed, and its permits come back with the answers.
            if let Ok(permit) = core.room.acquire_many(charged as u32).await {
                permit.forget();
            }
            core.dispatch(call.kind, items);
        }
    }
}
