//! Settling leased messages: done, failed, or handed back.

use std::sync::Arc;

use crate::call::{Call, Content, Item, Kind, Ref};
use crate::client::FilaClient;
use crate::link::Link;
use crate::message::Message;
use crate::wire::check_string;
use crate::{Error, Result};

impl FilaClient {
    /// Settles a message: done and gone.
    pub async fn ack(&self, queue: &str, id: &str) -> Result<()> {
        self.settle_one(Kind::Ack, refs(queue, [id], ""), None).await
    }

    /// Gives a message back as failed; the queue's `on_failure` hook sees the reason.
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
        .map(|id| Ref { queue: queue.clone(), id: id.as_ref().to_owned(), reason: reason.to_owned() })
        .collect()
}
