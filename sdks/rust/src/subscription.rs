//! A subscription: what was delivered and not yet read. It outlives connections: a link subscribes it
//! again after a reconnect, and another link takes it when another node leads.
//!
//! A link's lock may be held when a subscription's is taken, never the other way round.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::call::Item;
use crate::core::{lock, Core};
use crate::link::{shortened, Link, Pending};
use crate::message::{Message, Names};
use crate::wire::{self, opcode};
use crate::{Error, Result};

/// After the broker ended a stream for the moment.
const RESUBSCRIBE: Duration = Duration::from_millis(500);

pub(crate) struct Subscription {
    pub(crate) key: u64,
    pub(crate) queue: Arc<str>,
    pub(crate) prefetch: u32,
    pub(crate) names: Mutex<Names>,
    state: Mutex<SubscriptionState>,
}

#[derive(Default)]
struct SubscriptionState {
    link: Option<Arc<Link>>,
    /// The Consume's request id on the present connection.
    id: Option<u32>,
    buffer: VecDeque<Message>,
    /// How often each message that was delivered before is in the buffer, by id.
    again: HashMap<String, usize>,
    /// With a heart-beat: what is not settled.
    held: Option<Held>,
    /// Came after the end and before the cancel: nobody has read it.
    late: Vec<Message>,
    /// It was accepted once.
    open: bool,
    ended: bool,
    /// Why it ended; `None` if its user closed it or the reader has been told.
    error: Option<Error>,
    /// To other nodes since it was last accepted.
    hops: u32,
    waker: Option<Waker>,
}

/// Ids of what was handed out or waits to be read, each with the beat before its delivery.
#[derive(Default)]
struct Held {
    ids: HashMap<String, u64>,
    beat: u64,
    /// Handlers go on with them when the subscription has ended.
    at_work: bool,
}

impl SubscriptionState {
    fn pop(&mut self) -> Option<Message> {
        let message = self.buffer.pop_front()?;
        if message.attempt_count > 0 {
            match self.again.get_mut(&message.id) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.again.remove(&message.id)),
            }
        }
        Some(message)
    }
}

impl Subscription {
    pub(crate) fn new(key: u64, queue: &str, prefetch: u32, heartbeat: bool) -> Arc<Subscription> {
        let names = Mutex::default();
        let held = heartbeat.then(Held::default);
        let state = Mutex::new(SubscriptionState { held, ..SubscriptionState::default() });
        Arc::new(Subscription { key, queue: queue.into(), prefetch, names, state })
    }

    /// Whether a heart-beat has something to do, now or later.
    pub(crate) fn is_alive(&self) -> bool {
        let state = lock(&self.state);
        !state.ended || state.held.as_ref().is_some_and(|held| held.at_work && !held.ids.is_empty())
    }

    /// Handlers are given the messages, and finish what they have when the subscription ends.
    pub(crate) fn at_work(&self) {
        if let Some(held) = &mut lock(&self.state).held {
            held.at_work = true;
        }
    }

    /// With a heart-beat: begins a beat. Ids of what is not settled, read or not.
    pub(crate) fn held(&self) -> Vec<String> {
        let mut state = lock(&self.state);
        let Some(held) = &mut state.held else { return Vec::new() };
        held.beat += 1;
        held.ids.keys().cloned().collect()
    }

    /// These were not leased here when this beat's question was answered. What was delivered since is.
    pub(crate) fn forget(&self, ids: &HashSet<String>) {
        if let Some(Held { ids: held, beat, .. }) = &mut lock(&self.state).held {
            held.retain(|id, delivered| *delivered == *beat || !ids.contains(id));
        }
    }

    /// Ready when the broker has accepted it, or with why not.
    pub(crate) fn poll_open(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = lock(&self.state);
        match (state.open, state.ended) {
            (true, _) => Poll::Ready(Ok(())),
            (false, true) => Poll::Ready(Err(state.error.take().unwrap_or_else(|| self.closed()))),
            (false, false) => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The next message; the error that ended the subscription once, then `None`.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        let mut state = lock(&self.state);
        if let Some(message) = state.pop() {
            return Poll::Ready(Some(Ok(message)));
        }
        if state.ended {
            return Poll::Ready(state.error.take().map(Err));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// What is here already, up to `limit` messages.
    pub(crate) fn take(&self, limit: usize) -> Vec<Message> {
        let mut state = lock(&self.state);
        let count = limit.min(state.buffer.len());
        (0..count).filter_map(|_| state.pop()).collect()
    }

    /// Takes deliveries; gives them back if the subscription has ended.
    pub(crate) fn push(&self, messages: Vec<Message>) -> Vec<Message> {
        let mut state = lock(&self.state);
        if state.ended {
            return messages;
        }
        if let Some(held) = &mut state.held {
            let beat = held.beat;
            held.ids.extend(messages.iter().map(|message| (message.id.clone(), beat)));
        }
        for message in &messages {
            if message.attempt_count > 0 {
                *state.again.entry(message.id.clone()).or_default() += 1;
            }
        }
        state.buffer.extend(messages);
        // The broker sends more than the credit only when leases ran out, and the oldest unread messages
        // are those: they belong to somebody else by now.
        let beyond = state.buffer.len().saturating_sub(self.prefetch as usize);
        if beyond > 0 {
            tracing::debug!(queue = &*self.queue, messages = beyond, "leases ran out unread");
            for _ in 0..beyond {
                state.pop();
            }
        }
        wake(state.waker.take());
        Vec::new()
    }

    /// The broker has settled these. One whose lease had run out before may have been delivered a second
    /// time and lie here unread: that copy is nobody's now, and goes before its caller hears.
    pub(crate) fn settled(&self, items: &[Item], results: &[wire::CodeItem]) {
        let mut state = lock(&self.state);
        if state.again.is_empty() && state.held.is_none() {
            return;
        }
        for (item, result) in items.iter().zip(results) {
            let r = item.settlement();
            if result.code != 0 || *r.queue != *self.queue {
                continue;
            }
            if let Some(held) = &mut state.held {
                held.ids.remove(&r.id);
            }
            if state.again.remove(&r.id).is_some() {
                state.buffer.retain(|message| message.id != r.id);
            }
        }
    }

    /// The broker accepted the Consume.
    pub(crate) fn accepted(&self) {
        let mut state = lock(&self.state);
        state.hops = 0;
        state.open = true;
        wake(state.waker.take());
    }

    /// What was delivered over the old connection cannot be settled over a new one that consumes the same
    /// queue, so it waits for its redelivery.
    pub(crate) fn disconnected(&self) {
        let mut state = lock(&self.state);
        state.id = None;
        state.buffer.clear();
        state.again.clear();
        state.late.clear();
        if let Some(held) = &mut state.held {
            held.ids.clear();
        }
    }

    pub(crate) fn set_id(&self, id: u32) {
        lock(&self.state).id = Some(id);
    }

    /// The broker has ended the Consume.
    pub(crate) fn unset_id(&self) {
        lock(&self.state).id = None;
    }

    pub(crate) fn was_open(&self) -> bool {
        lock(&self.state).open
    }

    pub(crate) fn hops(&self) -> u32 {
        lock(&self.state).hops
    }

    pub(crate) fn hop(&self) -> u32 {
        let mut state = lock(&self.state);
        state.hops += 1;
        state.hops
    }

    /// Makes `link` the subscription's; false if it has ended meanwhile.
    fn joins(&self, link: &Arc<Link>) -> bool {
        let mut state = lock(&self.state);
        if !state.ended {
            state.link = Some(link.clone());
        }
        !state.ended
    }

    /// Ends it with an error its reader sees. The client's own close is not one.
    pub(crate) fn fail(&self, core: &Core, error: &Error) {
        let own = matches!(error, Error::Closed(_));
        let error = error.clone().during(&format!("consume queue {:?}", self.queue));
        self.finish(core, if own { None } else { Some(error) });
    }

    /// Ends it with an error its reader sees, and tells the broker.
    pub(crate) fn doom(self: &Arc<Self>, core: &Core, error: &Error) {
        let error = error.clone().during(&format!("consume queue {:?}", self.queue));
        let (link, unread) = self.finish(core, Some(error));
        if let Some(link) = link {
            link.unsubscribe(self, unread);
        }
    }

    /// Ends the subscription and hands back what nobody has read.
    pub(crate) fn close(self: &Arc<Self>, core: &Core) {
        let (link, unread) = self.finish(core, None);
        if let Some(link) = link {
            link.unsubscribe(self, unread);
        }
    }

    fn finish(&self, core: &Core, error: Option<Error>) -> (Option<Arc<Link>>, Vec<Message>) {
        let mut state = lock(&self.state);
        if state.ended {
            return (None, Vec::new());
        }
        state.ended = true;
        // What came before an error is read first; what the user gave up is not.
        let unread: Vec<_> = if error.is_none() { state.buffer.drain(..).collect() } else { Vec::new() };
        if let Some(held) = &mut state.held {
            for message in &unread {
                held.ids.remove(&message.id);
            }
        }
        state.error = error;
        let link = state.link.take();
        let waker = state.waker.take();
        drop(state);
        wake(waker);
        core.left(self);
        (link, unread)
    }

    fn closed(&self) -> Error {
        Error::ended(format!("the stream of queue {:?} was closed before it was open", self.queue))
            .during("consume")
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Link {
    /// Takes a subscription in; false if the link has ended.
    pub(crate) fn subscribe(self: &Arc<Self>, subscription: &Arc<Subscription>) -> bool {
        let mut state = lock(&self.state);
        if state.has_ended() {
            return false;
        }
        if subscription.joins(self) {
            state.subscriptions.insert(subscription.key, subscription.clone());
            if state.frame_max.is_some() {
                state.send_consume(subscription);
                self.wake.notify_one();
            }
        }
        true
    }

    /// Subscribes again after a pause, unless a new connection has done so before.
    pub(crate) fn subscribe_later(self: &Arc<Self>, subscription: Arc<Subscription>) {
        let link = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(shortened(RESUBSCRIBE)).await;
            let mut state = lock(&link.state);
            let idle = lock(&subscription.state).id.is_none();
            if idle && state.frame_max.is_some() && state.subscriptions.contains_key(&subscription.key) {
                state.send_consume(&subscription);
                link.wake.notify_one();
            }
        });
    }

    fn unsubscribe(&self, subscription: &Arc<Subscription>, mut unread: Vec<Message>) {
        let mut state = lock(&self.state);
        if state.subscriptions.remove(&subscription.key).is_none() || state.frame_max.is_none() {
            return;
        }
        let (id, late) = {
            let mut state = lock(&subscription.state);
            (state.id.take(), std::mem::take(&mut state.late))
        };
        let Some(id) = id else { return };
        state.send(opcode::CANCEL_CONSUME, id, &[]);
        state.pending.insert(id, Pending::Leaving(subscription.clone(), id));
        unread.extend(late);
        state.release(subscription, id, &unread);
        self.wake.notify_one();
    }

    /// Hands back what came for a subscription that has ended.
    pub(crate) fn release_late(&self, id: u32, messages: Vec<Message>) {
        let mut state = lock(&self.state);
        match state.pending.get(&id) {
            Some(Pending::Leaving(subscription, _)) => {
                let subscription = subscription.clone();
                state.release(&subscription, id, &messages);
                self.wake.notify_one();
            }
            // Whoever closes it has still to cancel it.
            Some(Pending::Subscription(subscription)) => lock(&subscription.state).late.extend(messages),
            _ => {}
        }
    }
}

impl crate::link::LinkState {
    /// Hands back what a closed consumer was sent and nobody read. It is sent also with nothing in it: its
    /// answer tells that no delivery is on its way any more.
    fn release(&mut self, subscription: &Arc<Subscription>, consume_id: u32, unread: &[Message]) {
        let mut body = (unread.len() as u32).to_be_bytes().to_vec();
        for message in unread {
            wire::put_string(&mut body, &message.queue);
            wire::put_string(&mut body, &message.id);
        }
        let id = self.next_id();
        self.send(opcode::RELEASE, id, &body);
        self.pending.insert(id, Pending::Leaving(subscription.clone(), consume_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::core::Config;
    use crate::message::decode_delivery;
    use crate::options::ConnectOptions;
    use bytes::{Bytes, BytesMut};

    fn delivery(id: &str) -> Bytes {
        let item = wire::DeliveryItem { id: id.to_owned(), queue: "q".to_owned(), ..Default::default() };
        Bytes::from(wire::encode(&wire::Delivery { messages: vec![item] }).unwrap())
    }

    #[test]
    fn what_is_delivered_while_a_beat_is_on_its_way_is_not_forgotten_with_its_answer() {
        let link = Link::new(&ConnectOptions::new("localhost"), Address::parse("localhost").unwrap(), true);
        let push = |subscription: &Subscription, id: &str| {
            let messages = decode_delivery(delivery(id), &subscription.names, &link).unwrap();
            assert!(subscription.push(messages).is_empty());
        };
        let subscription = Subscription::new(1, "q", 10, true);
        push(&subscription, "gone");
        push(&subscription, "again");
        assert_eq!(subscription.held().len(), 2);
        push(&subscription, "again"); // its lease ran out, and this consumer got it once more
        subscription.forget(&["gone", "again"].map(str::to_owned).into());
        assert_eq!(subscription.held(), ["again"]);
    }

    /// A delivery can come between the end of a subscription and its cancel: nobody has read it, so it
    /// goes back.
    #[test]
    fn a_delivery_in_the_moment_of_a_close_is_handed_back() {
        let options = ConnectOptions::new("localhost");
        let link = Link::new(&options, Address::parse("localhost").unwrap(), true);
        link.attach(1 << 20);
        let core = Core::new(Config { options, tls: None });
        core.set_seed(link.clone());
        let subscription = Subscription::new(1, "q", 10, false);
        core.join(&subscription);
        link.subscribe(&subscription);
        let id = lock(&subscription.state).id.unwrap();
        link.deliver(id, delivery("unread")).unwrap();
        let (left, unread) = subscription.finish(&core, None);
        link.deliver(id, delivery("in between")).unwrap();
        left.unwrap().unsubscribe(&subscription, unread);
        link.deliver(id, delivery("after the cancel")).unwrap();
        let mut sent = BytesMut::from(&lock(&link.state).out[..]);
        let mut frames = wire::FrameDecoder::new(wire::Limits::default());
        let mut released = Vec::new();
        while let Some(Ok(frame)) = frames.next(&mut sent) {
            if frame.opcode == opcode::RELEASE {
                let release: wire::Release = wire::decode(frame.body).unwrap();
                released.extend(release.messages.into_iter().map(|message| message.id));
            }
        }
        assert_eq!(released, ["unread", "in between", "after the cancel"]);
    }
}
