//! Lease batches: messages leased together under a name.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::admin::{about, subject};
use crate::client::FilaClient;
use crate::enqueue::millis;
use crate::message::{decode_delivery, from_millis, Message};
use crate::request::{check, Query};
use crate::wire;
use crate::{Error, Result};

/// The messages' form on the wire.
pub(crate) const FORM_MESSAGES: u8 = 0;
pub(crate) const FORM_ARROW: u8 = 1;
const FORM_NONE: u8 = 2;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How messages are leased.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeaseOptions {
    /// From 1 to 65,535; 0 returns a batch that is open and never leases one.
    pub max_messages: u32,
    /// 0 means 8 MiB.
    pub max_bytes: u64,
    /// How long the lease lasts; `None` means the queue's visibility timeout.
    pub visibility: Option<Duration>,
    /// How long the broker waits for the first message, at most a minute. The client's call timeout is
    /// lengthened to ten seconds more than that where it is shorter.
    pub wait: Duration,
    /// Makes a batch whose time runs out a failed delivery.
    pub count_attempt: bool,
    /// Asks for the messages as an Arrow IPC stream.
    pub arrow: bool,
    /// Leaves the messages out, for one who leases what others read.
    pub count_only: bool,
}

impl LeaseOptions {
    /// Leases at most so many messages.
    pub fn new(max_messages: u32) -> LeaseOptions {
        LeaseOptions {
            max_messages,
            max_bytes: 0,
            visibility: None,
            wait: Duration::ZERO,
            count_attempt: false,
            arrow: false,
            count_only: false,
        }
    }

    /// At most so many bytes; 8 MiB by default.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How long the lease lasts; the queue's visibility timeout by default.
    pub fn visibility(mut self, time: Duration) -> Self {
        self.visibility = Some(time);
        self
    }

    /// How long the broker waits for the first message, at most a minute.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time;
        self
    }

    /// Makes a batch whose time runs out a failed delivery.
    pub fn count_attempt(mut self) -> Self {
        self.count_attempt = true;
        self
    }

    /// Asks for the messages as an Arrow IPC stream.
    pub fn arrow(mut self) -> Self {
        self.arrow = true;
        self
    }

    /// Leaves the messages out, for one who leases what others read.
    pub fn count_only(mut self) -> Self {
        self.count_only = true;
        self
    }

    fn form(&self) -> Result<u8, String> {
        if self.wait > WAIT_MAX {
            return Err(format!("wait must be at most {WAIT_MAX:?}, not {:?}", self.wait));
        }
        match (self.arrow, self.count_only) {
            (true, true) => Err("only one of arrow and count_only can be asked for".to_owned()),
            (true, false) => Ok(FORM_ARROW),
            (false, true) => Ok(FORM_NONE),
            (false, false) => Ok(FORM_MESSAGES),
        }
    }
}

/// Messages leased together under a name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeasedBatch {
    /// The batch's name.
    pub name: String,
    /// The batch was open before this call.
    pub again: bool,
    /// How many messages it holds.
    pub message_count: u32,
    /// When its lease ends.
    pub expires_at: SystemTime,
    /// The messages; empty when Arrow or only the count was asked for.
    pub messages: Vec<Message>,
    /// An Arrow IPC stream, if it was asked for.
    pub arrow: Option<Bytes>,
}

/// What an operation on batches acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BatchCount {
    /// Batches.
    pub batches: u32,
    /// Messages in them.
    pub messages: u64,
}

/// A line of the list of open batches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenBatch {
    /// The batch's name.
    pub name: String,
    /// How many messages it holds.
    pub messages: u32,
    /// When it was leased.
    pub leased_at: SystemTime,
    /// When its lease ends.
    pub expires_at: SystemTime,
}

impl FilaClient {
    /// Leases messages under a name. Whoever asks again with the name gets the same messages, until the
    /// batch is acknowledged, released or its time is up, also across a restart of the broker. `s/7` is
    /// batch number 7 of the stream `s`. It is sent again by itself after a lost connection.
    pub async fn lease_batch(&self, queue: &str, name: &str, options: LeaseOptions) -> Result<LeasedBatch> {
        let mut q = about(format!("lease batch {name:?} of queue {queue:?}"), queue, true);
        q.wait = options.wait;
        let form = options.form().map_err(|e| Error::invalid(&q.operation, e))?;
        let body = wire::LeaseBatch {
            queue: queue.to_owned(),
            name: name.to_owned(),
            max_messages: options.max_messages,
            max_bytes: options.max_bytes,
            visibility_ms: options.visibility.map_or(0, millis),
            wait_ms: u32::try_from(millis(options.wait)).unwrap_or(u32::MAX),
            count_attempt: options.count_attempt,
            form,
        };
        let reply: wire::LeaseBatchResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)?;
        let mut batch = LeasedBatch {
            name: name.to_owned(),
            again: reply.again,
            message_count: reply.messages,
            expires_at: from_millis(reply.expires_at_ms),
            messages: Vec::new(),
            arrow: None,
        };
        match reply.form {
            FORM_ARROW => {
                batch.arrow = Some(reply.body);
                return Ok(batch);
            }
            FORM_NONE => return Ok(batch),
            _ => {}
        }
        let link = self.core().route(queue);
        batch.messages = decode_delivery(reply.body, &Mutex::default(), &link).map_err(|e| {
            Error::protocol(format!("the messages of the batch do not parse: {e}")).during(&q.operation)
        })?;
        for message in &mut batch.messages {
            message.client = Some(self.clone());
        }
        Ok(batch)
    }

    /// Acknowledges a batch by its exact name; with `below`, every open batch of the stream `name` whose
    /// number is less, and then none is no error.
    pub async fn ack_batch(&self, queue: &str, name: &str, below: Option<u64>) -> Result<BatchCount> {
        let q = on_batch("ack", queue, name, below);
        let body = wire::AckBatch { queue: queue.to_owned(), name: name.to_owned(), below };
        let reply: wire::AckBatchResult = self.ask(&q, &body).await?;
        check(&q.operation, &format!("batch {name:?}"), reply.code, None)?;
        Ok(BatchCount { batches: reply.batches, messages: reply.messages })
    }

    /// Lets a batch, or those of a stream below a number, end that much later from now; `None` means the
    /// queue's visibility timeout.
    pub async fn extend_batch(
        &self,
        queue: &str,
        name: &str,
        visibility: Option<Duration>,
        below: Option<u64>,
    ) -> Result<BatchCount> {
        let q = on_batch("extend", queue, name, below);
        let visibility_ms = visibility.map_or(0, millis);
        let body = wire::ExtendBatch { queue: queue.to_owned(), name: name.to_owned(), visibility_ms, below };
        let reply: wire::ExtendBatchResult = self.ask(&q, &body).await?;
        check(&q.operation, &format!("batch {name:?}"), reply.code, None)?;
        Ok(BatchCount { batches: reply.batches, messages: reply.messages })
    }

    /// Hands the messages of a batch, or of those of a stream below a number, back to their old places.
    pub async fn release_batch(&self, queue: &str, name: &str, below: Option<u64>) -> Result<BatchCount> {
        let q = on_batch("release", queue, name, below);
        let body = wire::ReleaseBatch { queue: queue.to_owned(), name: name.to_owned(), below };
        let reply: wire::ReleaseBatchResult = self.ask(&q, &body).await?;
        check(&q.operation, &format!("batch {name:?}"), reply.code, None)?;
        Ok(BatchCount { batches: reply.batches, messages: reply.messages })
    }

    /// Lists the open batches of a queue, oldest first.
    pub async fn list_batches(&self, queue: &str) -> Result<Vec<OpenBatch>> {
        let q = about(format!("batches of queue {queue:?}"), queue, true);
        let reply: wire::ListBatchesResult =
            self.ask(&q, &wire::ListBatches { queue: queue.to_owned() }).await?;
        check(&q.operation, &subject(queue), reply.code, None)?;
        let open = |b: wire::OpenBatch| OpenBatch {
            name: b.name,
            messages: b.messages,
            leased_at: from_millis(b.leased_at_ms),
            expires_at: from_millis(b.expires_at_ms),
        };
        Ok(reply.batches.into_iter().map(open).collect())
    }
}

/// May be repeated with `below`: what is done already is not found again, and that is fine.
fn on_batch<'a>(verb: &str, queue: &'a str, name: &str, below: Option<u64>) -> Query<'a> {
    about(format!("{verb} batch {name:?} of queue {queue:?}"), queue, below.is_some())
}
