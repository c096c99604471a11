//! What one caller waits for: some items of one kind, each with a result. Its items may travel in
//! several frames, together with those of other calls, over several connections.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bytes::Bytes;

use crate::core::lock;
use crate::enqueue::{EnqueueMessage, Enqueued};
use crate::wire::{self, opcode, BodyError};
use crate::{Error, Result};

/// An operation whose items are collected into frames. Settlements go first: they free leases and
/// credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ack,
    Nack,
    Release,
    Enqueue,
    EnqueueWith,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] =
        [Kind::Ack, Kind::Nack, Kind::Release, Kind::Enqueue, Kind::EnqueueWith];

    pub(crate) fn opcode(self) -> u8 {
        match self {
            Kind::Ack => opcode::ACK,
            Kind::Nack => opcode::NACK,
            Kind::Release => opcode::RELEASE,
            Kind::Enqueue => opcode::ENQUEUE,
            Kind::EnqueueWith => opcode::ENQUEUE_WITH,
        }
    }

    pub(crate) fn enqueues(self) -> bool {
        matches!(self, Kind::Enqueue | Kind::EnqueueWith)
    }

    fn operation(self) -> &'static str {
        match self {
            Kind::Ack => "ack",
            Kind::Nack => "nack",
            Kind::Release => "release",
            Kind::Enqueue | Kind::EnqueueWith => "enqueue",
        }
    }
}

/// Names a leased message.
#[derive(Debug, Clone)]
pub(crate) struct Ref {
    pub(crate) queue: Arc<str>,
    pub(crate) id: String,
    pub(crate) reason: String,
}

/// What a call is about.
pub(crate) enum Content {
    Messages(Vec<EnqueueMessage>),
    Refs(Vec<Ref>),
}

pub(crate) struct Call {
    pub(crate) kind: Kind,
    content: Content,
    state: Mutex<CallState>,
    abandoned: AtomicBool,
}

struct CallState {
    results: Vec<Option<Result<Enqueued>>>,
    left: usize,
    waker: Option<Waker>,
}

impl Call {
    pub(crate) fn new(kind: Kind, content: Content) -> Arc<Call> {
        let count = match &content {
            Content::Messages(messages) => messages.len(),
            Content::Refs(refs) => refs.len(),
        };
        let mut results = Vec::new();
        results.resize_with(count, || None);
        let state = Mutex::new(CallState { results, left: count, waker: None });
        Arc::new(Call { kind, content, state, abandoned: AtomicBool::new(false) })
    }

    pub(crate) fn operation(&self) -> &'static str {
        self.kind.operation()
    }

    pub(crate) fn messages(&self) -> &[EnqueueMessage] {
        match &self.content {
            Content::Messages(messages) => messages,
            Content::Refs(_) => &[],
        }
    }

    pub(crate) fn refs(&self) -> &[Ref] {
        match &self.content {
            Content::Refs(refs) => refs,
            Content::Messages(_) => &[],
        }
    }

    pub(crate) fn queue_of(&self, index: usize) -> &str {
        match &self.content {
            Content::Messages(messages) => &messages[index].queue,
            Content::Refs(refs) => &refs[index].queue,
        }
    }

    /// How many items it has, and about how many bytes of messages.
    pub(crate) fn extent(&self) -> (usize, usize) {
        match &self.content {
            Content::Messages(messages) => (messages.len(), messages.iter().map(EnqueueMessage::size).sum()),
            Content::Refs(refs) => (refs.len(), 0),
        }
    }

    /// Settles one item; what comes later, or after the caller has gone, does not count.
    pub(crate) fn settle(&self, index: usize, result: Result<Enqueued>) {
        let mut state = lock(&self.state);
        match state.results.get_mut(index) {
            Some(slot) if slot.is_none() => *slot = Some(result),
            _ => return,
        }
        state.left -= 1;
        if state.left == 0 {
            if let Some(waker) = state.waker.take() {
                drop(state);
                waker.wake();
            }
        }
    }

    /// Waits until every item has its result.
    pub(crate) async fn finished(&self) {
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.left == 0 {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).left == 0
    }

    /// Gives everything that is still open this error.
    pub(crate) fn give_up(&self, error: &Error) {
        let mut state = lock(&self.state);
        for slot in &mut state.results {
            slot.get_or_insert_with(|| Err(error.clone()));
        }
        state.left = 0;
    }

    /// The caller has gone: what was not sent yet need not be sent.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// The results in the items' order.
    pub(crate) fn take_results(&self) -> Vec<Result<Enqueued>> {
        let unsettled = || Err(Error::protocol("the call ended without a result".to_owned()));
        lock(&self.state).results.drain(..).map(|result| result.unwrap_or_else(unsettled)).collect()
    }
}

/// One message or settlement on its way.
pub(crate) struct Item {
    pub(crate) call: Arc<Call>,
    pub(crate) index: usize,
    /// About what it takes on the wire.
    pub(crate) size: usize,
    /// What it takes of the bound on bytes in flight.
    pub(crate) charge: usize,
    /// How often it was sent on to another node.
    pub(crate) hops: u32,
}

impl Item {
    pub(crate) fn queue(&self) -> &str {
        self.call.queue_of(self.index)
    }

    /// The message it settles, if it is no enqueue.
    pub(crate) fn settlement(&self) -> &Ref {
        &self.call.refs()[self.index]
    }

    /// Whether it may be sent again although its answer was lost.
    pub(crate) fn repeatable(&self) -> bool {
        self.call.kind == Kind::EnqueueWith && !self.call.messages()[self.index].idempotency_key.is_empty()
    }

    pub(crate) fn fail(&self, error: &Error) {
        self.call.settle(self.index, Err(error.clone().during(self.call.operation())));
    }

    /// Appends the item's bytes as its kind of frame has them.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        match &self.call.content {
            Content::Messages(messages) => {
                let message = &messages[self.index];
                message.append_to(out);
                if self.call.kind == Kind::EnqueueWith {
                    message.append_options(out);
                }
            }
            Content::Refs(refs) => {
                let r = &refs[self.index];
                wire::put_string(out, &r.queue);
                wire::put_string(out, &r.id);
                if self.call.kind == Kind::Nack {
                    wire::put_string(out, &r.reason);
                }
            }
        }
    }

    fn answer_enqueue(&self, code: u8, message_id: String, duplicate: bool) {
        let result = match code {
            0 => Ok(Enqueued { message_id, duplicate }),
            _ => Err(Error::refused(code, "", &format!("queue {:?}", self.queue()), Default::default())
                .during("enqueue")),
        };
        self.call.settle(self.index, result);
    }

    fn answer_settlement(&self, code: u8) {
        let result = match code {
            0 => Ok(Enqueued::default()),
            _ => Err(settlement_error(code, self.settlement()).during(self.call.operation())),
        };
        self.call.settle(self.index, result);
    }
}

/// Settles a frame's items with the broker's results. `settled` sees settlements before their callers do.
pub(crate) fn answer(
    kind: Kind,
    items: &[Item],
    body: Bytes,
    settled: impl Fn(&[wire::CodeItem]),
) -> Result<(), BodyError> {
    match kind {
        Kind::Enqueue => {
            let reply: wire::EnqueueResult = wire::decode(body)?;
            same_number(reply.results.len(), items.len())?;
            for (item, r) in items.iter().zip(reply.results) {
                item.answer_enqueue(r.code, r.message_id, false);
            }
        }
        Kind::EnqueueWith => {
            let reply: wire::EnqueueWithResult = wire::decode(body)?;
            same_number(reply.results.len(), items.len())?;
            for (item, r) in items.iter().zip(reply.results) {
                item.answer_enqueue(r.code, r.message_id, r.duplicate);
            }
        }
        Kind::Ack | Kind::Nack | Kind::Release => {
            // AckResult, NackResult and ReleaseResult have the same layout.
            let reply: wire::AckResult = wire::decode(body)?;
            same_number(reply.results.len(), items.len())?;
            settled(&reply.results);
            for (item, r) in items.iter().zip(reply.results) {
                item.answer_settlement(r.code);
            }
        }
    }
    Ok(())
}

fn same_number(results: usize, items: usize) -> Result<(), BodyError> {
    if results == items {
        return Ok(());
    }
    Err(BodyError { field: "results".to_owned(), reason: format!("{results} results for {items} items") })
}

/// A message that nobody here holds.
pub(crate) fn not_leased(queue: &str, id: &str) -> Error {
    let text = format!(
        "message {id:?} is not leased from queue {queue:?} by this client: it was settled already, its lease ran \
         out, or it never existed"
    );
    Error::refused(2, &text, "", Default::default())
}

fn settlement_error(code: u8, r: &Ref) -> Error {
    let (id, queue) = (&r.id, &r.queue);
    match code {
        2 => not_leased(queue, id),
        1 => Error::refused(code, "", &format!("queue {queue:?}"), Default::default()),
        _ => Error::refused(code, "", &format!("message {id:?} of queue {queue:?}"), Default::default()),
    }
}
