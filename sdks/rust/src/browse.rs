//! Reading a queue without taking anything.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::admin::{about, subject};
use crate::batches::{FORM_ARROW, FORM_MESSAGES};
use crate::client::FilaClient;
use crate::enqueue::millis;
use crate::message::{decode_headers, from_millis};
use crate::request::check;
use crate::wire::{self, BodyError, Decoder};
use crate::{Error, Result};

/// Where a browsed message stood when the snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrowseState {
    /// It could be delivered.
    Ready,
    /// It waited for its delay.
    Delayed,
    /// A consumer had it.
    Leased,
}

impl BrowseState {
    /// All of them.
    pub const ALL: [BrowseState; 3] = [BrowseState::Ready, BrowseState::Delayed, BrowseState::Leased];

    fn bit(self) -> u8 {
        match self {
            BrowseState::Ready => 1,
            BrowseState::Delayed => 2,
            BrowseState::Leased => 4,
        }
    }
}

/// What to look at; the default takes everything in one part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BrowseOptions {
    /// Only this key's messages; it may be the empty one.
    pub fairness_key: Option<String>,
    /// About how many ranges of equal size the snapshot is cut into, for parallel readers.
    pub parts: u16,
    /// How long the snapshot lives; ten minutes by default.
    pub ttl: Option<Duration>,
}

impl BrowseOptions {
    /// Looks only at this key's messages; it may be the empty one.
    pub fn fairness_key(mut self, key: impl Into<String>) -> Self {
        self.fairness_key = Some(key.into());
        self
    }

    /// Cuts the snapshot into about so many ranges, for parallel readers.
    pub fn parts(mut self, parts: u16) -> Self {
        self.parts = parts;
        self
    }

    /// How long the snapshot lives; ten minutes by default.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.ttl = Some(time);
        self
    }
}

/// A message seen without taking it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrowsedMessage {
    /// A UUID as text.
    pub id: String,
    /// The queue it stands in.
    pub queue: String,
    /// What the producer said about it.
    pub headers: HashMap<String, String>,
    /// The content.
    pub payload: Bytes,
    /// What the queue's hook or the producer chose.
    pub fairness_key: String,
    /// The fairness key's weight.
    pub weight: u32,
    /// The buckets it takes tokens from.
    pub throttle_keys: Vec<String>,
    /// How often it failed before.
    pub attempt_count: u32,
    /// When it was stored.
    pub enqueued_at: SystemTime,
    /// Since or from when it may be delivered.
    pub ready_at: SystemTime,
    /// Where it stood.
    pub state: BrowseState,
}

/// A piece of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowseRange {
    /// Where it begins; opaque.
    pub start: Bytes,
    /// Where it ends; opaque.
    pub end: Bytes,
}

/// A queue as it was at one moment, to be read in ranges, over any connection, until it expires or is
/// closed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// Names it.
    pub token: String,
    /// When it expires.
    pub expires_at: SystemTime,
    /// How many messages it held.
    pub messages: u64,
    /// They cover it without overlap.
    pub ranges: Vec<BrowseRange>,
}

/// How a page is read; the default takes all states and the most there is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PageOptions {
    /// Only messages in these states; empty means all.
    pub states: Vec<BrowseState>,
    /// 0 means the most there is.
    pub max_messages: u32,
    /// 0 means the most there is.
    pub max_bytes: u64,
    /// Asks for the messages as an Arrow IPC stream.
    pub arrow: bool,
}

impl PageOptions {
    /// Only messages in these states.
    pub fn states(mut self, states: impl IntoIterator<Item = BrowseState>) -> Self {
        self.states = states.into_iter().collect();
        self
    }

    /// At most so many messages.
    pub fn max_messages(mut self, count: u32) -> Self {
        self.max_messages = count;
        self
    }

    /// At most so many bytes.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Asks for the messages as an Arrow IPC stream.
    pub fn arrow(mut self) -> Self {
        self.arrow = true;
        self
    }
}

/// A piece of a range.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrowsePage {
    /// How many messages it holds.
    pub message_count: u32,
    /// The rest of the range; `None` when it is read.
    pub rest: Option<BrowseRange>,
    /// The messages; empty when Arrow was asked for.
    pub messages: Vec<BrowsedMessage>,
    /// An Arrow IPC stream, if it was asked for.
    pub arrow: Option<Bytes>,
}

impl FilaClient {
    /// Takes a snapshot of a queue. Close it with [`browse_close`](FilaClient::browse_close).
    pub async fn browse(&self, queue: &str, options: BrowseOptions) -> Result<Snapshot> {
        let q = about(format!("browse queue {queue:?}"), queue, false);
        let body = wire::Browse {
            queue: queue.to_owned(),
            fairness_key: options.fairness_key,
            parts: options.parts.max(1),
            ttl_ms: options.ttl.map_or(0, millis),
        };
        let reply: wire::BrowseResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)?;
        Ok(Snapshot {
            token: reply.snapshot,
            expires_at: from_millis(reply.expires_at_ms),
            messages: reply.messages,
            ranges: reply.ranges.into_iter().map(|r| BrowseRange { start: r.start, end: r.end }).collect(),
        })
    }

    /// Reads one page of a snapshot, from the beginning of a range.
    pub async fn browse_page(
        &self,
        token: &str,
        range: &BrowseRange,
        options: &PageOptions,
    ) -> Result<BrowsePage> {
        let q = about("browse".to_owned(), "", true);
        let states = if options.states.is_empty() { &BrowseState::ALL[..] } else { &options.states };
        let body = wire::BrowsePage {
            snapshot: token.to_owned(),
            start: range.start.clone(),
            end: range.end.clone(),
            states: states.iter().fold(0, |sum, state| sum | state.bit()),
            max_messages: options.max_messages,
            max_bytes: options.max_bytes,
            form: if options.arrow { FORM_ARROW } else { FORM_MESSAGES },
        };
        let reply: wire::BrowsePageResult = self.ask(&q, &body).await?;
        check(&q.operation, "the snapshot", reply.code, None)?;
        let rest = BrowseRange { start: reply.next, end: range.end.clone() };
        let mut page = BrowsePage {
            message_count: reply.messages,
            rest: Some(rest).filter(|rest| !rest.start.is_empty()),
            messages: Vec::new(),
            arrow: None,
        };
        if reply.form == FORM_ARROW {
            page.arrow = Some(reply.body);
        } else {
            page.messages = decode_page(reply.body).map_err(|e| {
                Error::protocol(format!("the messages of the page do not parse: {e}")).during(&q.operation)
            })?;
        }
        Ok(page)
    }

    /// Gives a snapshot up before it expires.
    pub async fn browse_close(&self, token: &str) -> Result<()> {
        let q = about("browse close".to_owned(), "", false);
        let reply: wire::BrowseCloseResult =
            self.ask(&q, &wire::BrowseClose { snapshot: token.to_owned() }).await?;
        check(&q.operation, "the snapshot", reply.code, None)
    }
}

fn decode_page(body: Bytes) -> Result<Vec<BrowsedMessage>, BodyError> {
    const LEAST: usize = 2 + 2 + 2 + 4 + 2 + 4 + 2 + 4 + 8 + 8 + 1;
    let mut d = Decoder::new(body);
    let count = d.count_u32("messages", LEAST)?;
    (0..count).map(|index| decode_browsed(&mut d).map_err(|e| e.within("messages", index))).collect()
}

fn decode_browsed(d: &mut Decoder) -> Result<BrowsedMessage, BodyError> {
    Ok(BrowsedMessage {
        id: d.string("id")?,
        queue: d.string("queue")?,
        headers: decode_headers(d)?,
        payload: d.bytes("payload")?,
        fairness_key: d.string("fairness_key")?,
        weight: d.u32("weight")?,
        throttle_keys: d.strings("throttle_keys")?,
        attempt_count: d.u32("attempt_count")?,
        enqueued_at: from_millis(d.u64("enqueued_at_ms")?),
        ready_at: from_millis(d.u64("ready_at_ms")?),
        state: match d.u8("state")? {
            1 => BrowseState::Ready,
            2 => BrowseState::Delayed,
            _ => BrowseState::Leased,
        },
    })
}
