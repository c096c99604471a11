//! Settling leased messages: done, failed, or handed back.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::{about, subject};
use crate::call::{not_leased, Call, Content, Item, Kind, Ref};
use crate::client::FilaClient;
use crate::enqueue::millis;
use crate::link::Link;
use crate::message::Message;
use crate::request::check;
use crate::wire::{self, check_string};
use crate::{Error, Result};

pub(crate) const EXTEND_MAX: usize = 1_000; // ids in one request

impl FilaClient {
    /// Settles a message: done and gone.
    pub async fn ack(&self, queue: &str, id: &str) -> Result<()> {
        self.settle_one(Kind::Ack, refs(queue, [id], ""), None).await
    }

    /// Gives a message back as failed; the queue's `on_failure` hook sees the reason, of which 4,096 bytes are
    /// sent at most.
    pub async fn nack(&self, queue: &str, id: &str, reason: &str) -> Result<()> {
        self.settle_one(Kind::Nack, refs(queue, [id], reason), None).await
    }

    /// Hands a message back at once, to its old place and without a counted attempt.
    pub async fn release(&self, queue: &str, id: &str) -> Result<()> {
        self.settle_one(Kind::Release, refs(queue, [id], ""), None).await
    }

    /// Settles many messages in one round trip; one result for each, in order.
    #[must_use = "every message has a result of its own"]
    pub async fn ack_many<I: AsRef<str>>(
        &self,
        queue: &str,
        ids: impl IntoIterator<Item = I>,
    ) -> Vec<Result<()>> {
        self.settle(Kind::Ack, refs(queue, ids, ""), None).await
    }

    /// Gives many messages back as failed; one result for each, in order.
    #[must_use = "every message has a result of its own"]
    pub async fn nack_many<I: AsRef<str>>(
        &self,
        queue: &str,
        ids: impl IntoIterator<Item = I>,
        reason: &str,
    ) -> Vec<Result<()>> {
        self.settle(Kind::Nack, refs(queue, ids, reason), None).await
    }

    /// Hands many messages back; one result for each, in order.
    #[must_use = "every message has a result of its own"]
    pub async fn release_many<I: AsRef<str>>(
        &self,
        queue: &str,
        ids: impl IntoIterator<Item = I>,
    ) -> Vec<Result<()>> {
        self.settle(Kind::Release, refs(queue, ids, ""), None).await
    }

    /// Settles received messages, of any queues, in one round trip; one result for each, in order.
    #[must_use = "every message has a result of its own"]
    pub async fn ack_messages<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> Vec<Result<()>> {
        let mut via: Option<Arc<Link>> = None;
        let mut several = false; // nodes: then each goes where its queue is led
        let refs = messages
            .into_iter()
            .map(|message| {
                if let (Some(known), Some(link)) = (&via, &message.link) {
                    several |= !Arc::ptr_eq(known, link);
                }
                via = via.take().or_else(|| message.link.clone());
                Ref { queue: message.queue.clone(), id: message.id.clone(), reason: String::new() }
            })
            .collect();
        self.settle(Kind::Ack, refs, via.filter(|_| !several)).await
    }

    /// Lets a message's lease end that much later from now; `None` means the queue's visibility timeout.
    pub async fn extend(&self, queue: &str, id: &str, visibility: Option<Duration>) -> Result<()> {
        self.extend_many(queue, [id], visibility).await.swap_remove(0)
    }

    /// Lets the leases of many messages end later; one result for each, in order.
    #[must_use = "every message has a result of its own"]
    pub async fn extend_many<I: AsRef<str>>(
        &self,
        queue: &str,
        ids: impl IntoIterator<Item = I>,
        visibility: Option<Duration>,
    ) -> Vec<Result<()>> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        let mut results = Vec::with_capacity(ids.len());
        for some in ids.chunks(EXTEND_MAX) {
            match self.extend_some(queue, some, visibility).await {
                Ok((_, missing)) => results.extend(some.iter().map(|id| {
                    if missing.contains(id) {
                        Err(not_leased(queue, id).during("extend"))
                    } else {
                        Ok(())
                    }
                })),
                Err(error) => results.extend(some.iter().map(|_| Err(error.clone()))),
            }
        }
        results
    }

    /// How long the leases last from now, and which of the ids are not leased here.
    pub(crate) async fn extend_some(
        &self,
        queue: &str,
        ids: &[String],
        visibility: Option<Duration>,
    ) -> Result<(Duration, HashSet<String>)> {
        let mut q = about(format!("extend leases of queue {queue:?}"), queue, true);
        q.settles = true;
        let body = wire::Extend {
            queue: queue.to_owned(),
            message_ids: ids.to_vec(),
            visibility_ms: visibility.map_or(0, millis),
        };
        let reply: wire::ExtendResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)?;
        Ok((Duration::from_millis(reply.visibility_ms), reply.missing.into_iter().collect()))
    }

    pub(crate) async fn settle_one(&self, kind: Kind, refs: Vec<Ref>, via: Option<Arc<Link>>) -> Result<()> {
        self.settle(kind, refs, via).await.swap_remove(0)
    }

    /// Sends settlements to the link that leased the messages, or where their queues are led.
    async fn settle(&self, kind: Kind, refs: Vec<Ref>, via: Option<Arc<Link>>) -> Vec<Result<()>> {
        let call = Call::new(kind, Content::Refs(refs));
        if let Err(error) = self.perform_settle(&call, via).await {
            call.give_up(&error);
        }
        call.take_results().into_iter().map(|result| result.map(drop)).collect()
    }

    async fn perform_settle(&self, call: &Arc<Call>, via: Option<Arc<Link>>) -> Result<()> {
        let operation = call.operation();
        for r in call.refs() {
            check_string("the queue's name", &r.queue)
                .and_then(|()| check_string("the message's id", &r.id))
                .and_then(|()| check_string("the reason", &r.reason))
                .map_err(|e| Error::invalid(operation, e))?;
        }
        let core = self.core();
        let _under_way = core.begin(operation, false)?;
        let items: Vec<_> = call
            .refs()
            .iter()
            .enumerate()
            .map(|(index, r)| {
                let size = 6 + r.queue.len() + r.id.len() + r.reason.len();
                Item { call: call.clone(), index, size, charge: 0, hops: 0 }
            })
            .collect();
        if items.is_empty() {
            return Ok(());
        }
        match via {
            Some(link) => core.submit(&link, call.kind, items),
            None => core.dispatch(call.kind, items),
        }
        // A settlement is not withdrawn when its caller goes away: the work it stands for is done.
        self.bounded(operation, call.queue_of(0), call.finished()).await
    }
}

fn refs<I: AsRef<str>>(queue: &str, ids: impl IntoIterator<Item = I>, reason: &str) -> Vec<Ref> {
    let queue: Arc<str> = queue.into();
    ids.into_iter()
        .map(|id| Ref {
            queue: queue.clone(),
            id: id.as_ref().to_owned(),
            reason: clipped(reason).to_owned(),
        })
        .collect()
}

/// A reason of a length that is pleasant to read, and that can be sent.
pub(crate) fn clipped(reason: &str) -> &str {
    const LONGEST: usize = 4096;
    if reason.len() <= LONGEST {
        return reason;
    }
    let end = (0..=LONGEST).rev().find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
    &reason[..end]
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(clipped("short"), "short");
        assert_eq!(clipped(&"x".repeat(4096)).len(), 4096);
        assert_eq!(clipped(&"€".repeat(70_000)), "€".repeat(1365));
    }
}
