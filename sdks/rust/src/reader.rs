//! The reading half of a link: takes operations until the connection ends. It never waits for anybody: a
//! consumer that does not read has its messages in its subscription's buffer.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

use crate::call::{answer, Item, Kind};
use crate::collector::split;
use crate::connection::{refusal, FrameReader, ReadError};
use crate::core::{lock, Core};
use crate::link::{Link, Pending, HOPS_MAX};
use crate::message::decode_delivery;
use crate::request::Request;
use crate::subscription::Subscription;
use crate::wire::{self, client_receives, opcode, BodyError, Incoming, State, Verdict};
use crate::{Error, Result};

impl Link {
    /// Takes operations until the connection ends and says why it did.
    pub(crate) async fn read(
        self: &Arc<Self>,
        core: &Arc<Core>,
        mut reader: FrameReader,
        opened: Instant,
    ) -> Error {
        let heard = || opened.elapsed().as_millis() as u64;
        self.heard.store(heard(), Ordering::Relaxed);
        loop {
            while let Some(next) = reader.ready() {
                match next {
                    Ok(message) => {
                        if let Err(reason) = self.receive(core, message) {
                            return reason;
                        }
                    }
                    Err(broken) if broken.fatal => {
                        let text = format!("{} sent bytes that are no frame: {broken}", self.name);
                        return Error::protocol(text).because(broken);
                    }
                    Err(broken) => {
                        let text = format!("{} sent a frame that cannot be accepted: {broken}", self.name);
                        self.unreadable(core, broken.request_id, Error::protocol(text).because(broken));
                    }
                }
            }
            match reader.fill().await {
                Ok(_) => self.heard.store(heard(), Ordering::Relaxed),
                Err(ReadError::Io(e)) => {
                    return Error::lost(format!("reading from {}: {e}", self.name)).because(e)
                }
                Err(_) => return Error::lost(format!("{} closed the connection", self.name)),
            }
        }
    }

    fn receive(self: &Arc<Self>, core: &Arc<Core>, message: Incoming) -> Result<()> {
        if let Verdict::Refused { .. } = client_receives(State::Open, message.opcode) {
            return Ok(()); // an operation of a later version: not for us
        }
        let Incoming { opcode: received, request_id, body } = message;
        let parsed = match received {
            opcode::DELIVERY => self.deliver(request_id, body),
            opcode::PING => {
                lock(&self.state).send(opcode::PONG, request_id, &[]);
                self.wake.notify_one();
                Ok(())
            }
            opcode::PONG => Ok(()),
            opcode::DISCONNECT => return Err(Error::lost(format!("{} said goodbye", self.name))),
            opcode::ERROR => refusal(body).map(|error| self.refused(core, request_id, error)),
            _ => self.reply(core, received, request_id, body),
        };
        parsed.map_err(|e| {
            let text = format!("{} sent a {} that does not parse: {e}", self.name, wire::name(received));
            Error::protocol(text).because(e)
        })
    }

    /// Hands messages to their subscription. What a closed one is still sent goes back at once.
    pub(crate) fn deliver(self: &Arc<Self>, id: u32, body: bytes::Bytes) -> Result<(), BodyError> {
        let (subscription, leaving) = match lock(&self.state).pending.get(&id) {
            Some(Pending::Subscription(subscription)) => (subscription.clone(), false),
            Some(Pending::Leaving(subscription, _)) => (subscription.clone(), true),
            _ => return Ok(()),
        };
        let messages = decode_delivery(body, &subscription.names, self)?;
        let unread = if leaving { messages } else { subscription.push(messages) };
        if !unread.is_empty() {
            self.release_late(id, unread);
        }
        Ok(())
    }

    fn reply(&self, core: &Core, received: u8, id: u32, body: bytes::Bytes) -> Result<(), BodyError> {
        let mut state = lock(&self.state);
        let Some(pending) = state.pending.get(&id) else { return Ok(()) };
        match pending {
            Pending::Frame(kind, items) => {
                let kind = *kind;
                expect(kind.opcode(), received)?;
                answer(kind, items, body, |results| {
                    for subscription in state.subscriptions.values() {
                        subscription.settled(items, results);
                    }
                })?;
                let charge = items.iter().map(|item| item.charge).sum();
                state.pending.remove(&id);
                state.collectors[kind as usize].in_flight -= 1;
                if kind.enqueues() {
                    core.free(charge);
                }
                self.wake.notify_one();
            }
            Pending::Request(request) => {
                expect(request.opcode, received)?;
                request.finish(Ok(body));
                state.pending.remove(&id);
            }
            Pending::Leaving(_, consume_id) => {
                // What was delivered before the broker heard of the cancel has come by now.
                let consume_id = *consume_id;
                state.pending.remove(&id);
                state.pending.remove(&consume_id);
            }
            Pending::Subscription(subscription) => {
                expect(opcode::CONSUME, received)?;
                subscription.accepted();
            }
        }
        Ok(())
    }

    /// The broker answered, but what it said is lost. That is no refusal: what was asked may have been
    /// carried out, and a stream is still open over there.
    fn unreadable(self: &Arc<Self>, core: &Arc<Core>, id: u32, error: Error) {
        {
            let mut state = lock(&self.state);
            if let Some(Pending::Subscription(_)) = state.pending.get(&id) {
                state.send(opcode::CANCEL_CONSUME, id, &[]);
                self.wake.notify_one();
            }
        }
        self.refused(core, id, error.sent());
    }

    /// The broker answered with an Error.
    fn refused(self: &Arc<Self>, core: &Arc<Core>, id: u32, error: Error) {
        let mut state = lock(&self.state);
        match state.pending.remove(&id) {
            // An answer to none of our requests says why the connection is about to end.
            None if id == 0 => state.complaint = Some(error),
            None => {}
            Some(Pending::Leaving(_, consume_id)) => {
                state.pending.remove(&consume_id);
            }
            Some(Pending::Frame(kind, items)) => {
                drop(state);
                self.refused_frame(core, kind, items, error);
            }
            Some(Pending::Request(request)) => {
                drop(state);
                self.refused_request(core, request, error);
            }
            Some(Pending::Subscription(subscription)) => {
                drop(state);
                self.refused_subscription(core, subscription, error);
            }
        }
    }

    fn refused_frame(self: &Arc<Self>, core: &Arc<Core>, kind: Kind, mut items: Vec<Item>, error: Error) {
        let one_queue = items.iter().all(|item| item.queue() == items[0].queue());
        let separable = match error {
            _ if error.maybe_applied() => false,
            Error::Forbidden(_) | Error::InvalidFrame(_) => true,
            Error::NotLeader(_) => !one_queue,
            _ => false,
        };
        let mut state = lock(&self.state);
        state.collectors[kind as usize].in_flight -= 1;
        self.wake.notify_one();
        if items.len() > 1 && separable {
            // The whole frame was refused and nothing of it applied: one caller's mistake must not cost
            // the others who shared it.
            for part in split(items) {
                state.send_items(core, kind, part);
            }
            return;
        }
        drop(state);
        if let (Error::NotLeader(_), Some(leader)) = (&error, error.leader_addr()) {
            if items[0].hops < HOPS_MAX {
                if let Some(next) = core.redirect(self, items[0].queue(), leader) {
                    for item in &mut items {
                        item.hops += 1;
                    }
                    core.submit(&next, kind, items);
                    return;
                }
            }
        }
        core.fail_items(kind, &items, &error);
    }

    fn refused_request(self: &Arc<Self>, core: &Arc<Core>, request: Arc<Request>, error: Error) {
        if let (Error::NotLeader(_), Some(leader)) = (&error, error.leader_addr()) {
            if request.hop() <= HOPS_MAX {
                if let Some(next) = core.redirect(self, &request.queue, leader) {
                    if next.ask(&request) || core.seed().ask(&request) {
                        return;
                    }
                }
            }
        }
        request.finish(Err(error));
    }

    fn refused_subscription(
        self: &Arc<Self>,
        core: &Arc<Core>,
        subscription: Arc<Subscription>,
        error: Error,
    ) {
        subscription.unset_id();
        if let (Error::NotLeader(_), Some(leader)) = (&error, error.leader_addr()) {
            if subscription.hop() <= HOPS_MAX {
                if let Some(next) = core.redirect(self, &subscription.queue, leader) {
                    lock(&self.state).subscriptions.remove(&subscription.key);
                    subscription.disconnected();
                    if next.subscribe(&subscription) || core.seed().subscribe(&subscription) {
                        return;
                    }
                }
            }
        }
        if subscription.was_open() && error.transient() {
            // No verdict on the consumer: the broker may accept it again in a moment.
            subscription.disconnected();
            self.subscribe_later(subscription);
            return;
        }
        lock(&self.state).subscriptions.remove(&subscription.key);
        subscription.fail(core, &error);
    }
}

fn expect(asked: u8, answered: u8) -> Result<(), BodyError> {
    if opcode::operation(asked).and_then(|operation| operation.reply) == Some(answered) {
        return Ok(());
    }
    let reason = format!("{} is not answered with it", wire::name(asked));
    Err(BodyError { field: "opcode".to_owned(), reason })
}
