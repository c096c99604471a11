//! What all handles of one client share: its links to nodes, which of them leads a queue, and the end.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{watch, Semaphore};

use crate::address::Address;
use crate::call::{Call, Item, Kind};
use crate::event::Event;
use crate::link::Link;
use crate::options::ConnectOptions;
use crate::subscription::Subscription;
use crate::{Error, Result};

/// Locks without minding a panic elsewhere: what is guarded is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Config {
    pub(crate) options: ConnectOptions,
    pub(crate) tls: Option<crate::tls::Connector>,
}

pub(crate) struct Core {
    pub(crate) config: Config,
    /// Bytes that may still be enqueued without an answer.
    pub(crate) room: Semaphore,
    /// All of them.
    pub(crate) room_total: usize,
    /// Calls under way, so that draining can wait for them.
    calls: watch::Sender<usize>,
    seed: OnceLock<Arc<Link>>,
    nodes: Mutex<Nodes>,
    next_key: AtomicU64,
}

#[derive(Default)]
struct Nodes {
    /// Links to other nodes than the seed, by address.
    leaders: HashMap<String, Arc<Link>>,
    /// Queues that another node leads.
    routes: HashMap<String, Arc<Link>>,
    subscriptions: HashMap<u64, Arc<Subscription>>,
    draining: bool,
    closed: bool,
}

/// Counts a call while it is under way.
pub(crate) struct UnderWay<'a>(&'a Core);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.calls.send_modify(|n| *n -= 1);
    }
}

impl Core {
    pub(crate) fn new(config: Config) -> Core {
        let room_total = config.options.in_flight_bytes.min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Core {
            room: Semaphore::new(room_total),
            room_total,
            config,
            calls: watch::Sender::new(0),
            seed: OnceLock::new(),
            nodes: Mutex::default(),
            next_key: AtomicU64::new(0),
        }
    }

    pub(crate) fn seed(&self) -> &Arc<Link> {
        self.seed.get().expect("set before anybody has a handle")
    }

    pub(crate) fn set_seed(&self, link: Arc<Link>) {
        let _ = self.seed.set(link);
    }

    /// Counts a call in. While the client drains, only settling is allowed.
    pub(crate) fn begin(&self, operation: &str, fresh: bool) -> Result<UnderWay<'_>> {
        let nodes = lock(&self.nodes);
        if nodes.closed || (fresh && nodes.draining) {
            return Err(Error::closed(&self.seed().name).during(operation));
        }
        self.calls.send_modify(|n| *n += 1);
        Ok(UnderWay(self))
    }

    /// Waits until no call is under way.
    pub(crate) async fn idle(&self) {
        let _ = self.calls.subscribe().wait_for(|n| *n == 0).await;
    }

    pub(crate) fn free(&self, charge: usize) {
        if charge > 0 {
            self.room.add_permits(charge);
        }
    }

    pub(crate) fn announce(&self, event: Event) {
        let Some(handler) = &self.config.options.on_event else { return };
        // A handler's panic must not end the task that serves everybody's calls.
        if catch_unwind(AssertUnwindSafe(|| handler(event))).is_err() {
            tracing::error!(addr = %self.seed().name, "the event handler panicked");
        }
    }

    /// The link for a queue.
    pub(crate) fn route(&self, queue: &str) -> Arc<Link> {
        let nodes = lock(&self.nodes);
        nodes.routes.get(queue).unwrap_or_else(|| self.seed()).clone()
    }

    /// Remembers that another node leads a queue and returns the link to it, `None` if there is no sense
    /// in following. The new connection has the same TLS settings and key: what was asked to be encrypted
    /// stays encrypted.
    pub(crate) fn redirect(self: &Arc<Self>, from: &Link, queue: &str, leader: &str) -> Option<Arc<Link>> {
        let addr = Address::parse(leader).ok()?;
        let name = addr.text();
        if name == from.name {
            return None;
        }
        let next = {
            let mut nodes = lock(&self.nodes);
            if nodes.closed {
                return None;
            }
            let next = if name == self.seed().name {
                self.seed().clone()
            } else if let Some(known) = nodes.leaders.get(&name) {
                known.clone()
            } else {
                let link = Link::new(&self.config.options, addr, false);
                nodes.leaders.insert(name.clone(), link.clone());
                tokio::spawn(link.clone().run(self.clone(), None));
                link
            };
            if next.seed {
                nodes.routes.remove(queue);
            } else if !queue.is_empty() {
                nodes.routes.insert(queue.to_owned(), next.clone());
            }
            next
        };
        tracing::info!(queue, from = %from.name, to = %name, "redirected to the leader");
        self.announce(Event::Redirected { addr: name });
        Some(next)
    }

    /// Takes a leader's link out of the routes.
    pub(crate) fn forget(&self, gone: &Arc<Link>) {
        let mut nodes = lock(&self.nodes);
        nodes.leaders.remove(&gone.name);
        nodes.routes.retain(|_, link| !Arc::ptr_eq(link, gone));
    }

    /// All links; once closed, the list does not grow.
    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        let nodes = lock(&self.nodes);
        std::iter::once(self.seed()).chain(nodes.leaders.values()).cloned().collect()
    }

    /// Gives items to the links of their queues, in order.
    pub(crate) fn dispatch(self: &Arc<Self>, kind: Kind, items: Vec<Item>) {
        let mut run: Vec<Item> = Vec::with_capacity(items.len());
        let mut via: Option<Arc<Link>> = None;
        for item in items {
            let same_queue = run.last().is_some_and(|last| last.queue() == item.queue());
            if !same_queue {
                let link = self.route(item.queue());
                if let Some(previous) = via.replace(link) {
                    if via.as_ref().is_some_and(|link| !Arc::ptr_eq(link, &previous)) {
                        self.submit(&previous, kind, std::mem::take(&mut run));
                    }
                }
            }
            run.push(item);
        }
        if let Some(link) = via {
            self.submit(&link, kind, run);
        }
    }

    /// Gives items to a link; if that has ended meanwhile, to where their queue is led now, or to the
    /// seed.
    pub(crate) fn submit(self: &Arc<Self>, link: &Arc<Link>, kind: Kind, items: Vec<Item>) {
        let Err(items) = link.submit(kind, items) else { return };
        let next = items.first().map_or_else(|| self.seed().clone(), |item| self.route(item.queue()));
        let Err(items) = next.submit(kind, items) else { return };
        if let Err(items) = self.seed().submit(kind, items) {
            self.fail_items(kind, &items, &self.seed().why_ended());
        }
    }

    pub(crate) fn fail_items(&self, kind: Kind, items: &[Item], error: &Error) {
        for item in items {
            item.fail(error);
        }
        if kind.enqueues() {
            self.free(items.iter().map(|item| item.charge).sum());
        }
    }

    /// Withdraws what a call has not sent yet.
    pub(crate) fn abandon(&self, call: &Arc<Call>) {
        call.abandon();
        for link in self.links() {
            link.abandon(self, call);
        }
    }

    pub(crate) fn new_key(&self) -> u64 {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a subscription the client's; false if the client has ended.
    pub(crate) fn join(&self, subscription: &Arc<Subscription>) -> bool {
        let mut nodes = lock(&self.nodes);
        nodes.subscriptions.insert(subscription.key, subscription.clone());
        !(nodes.draining || nodes.closed)
    }

    pub(crate) fn left(&self, subscription: &Subscription) {
        lock(&self.nodes).subscriptions.remove(&subscription.key);
    }

    /// No new calls; consumers end and hand back what nobody has read.
    pub(crate) fn start_draining(&self) {
        lock(&self.nodes).draining = true;
        self.stop_consumers();
        for link in self.links() {
            link.flush();
        }
    }

    fn stop_consumers(&self) {
        let subscriptions: Vec<_> = lock(&self.nodes).subscriptions.values().cloned().collect();
        for subscription in subscriptions {
            subscription.close(self);
        }
    }

    /// Says goodbye on every link without waiting; false if somebody did so before.
    pub(crate) fn start_closing(&self) -> bool {
        if std::mem::replace(&mut lock(&self.nodes).closed, true) {
            return false;
        }
        self.stop_consumers();
        for link in self.links() {
            link.start_closing(&Error::closed(&link.name));
        }
        true
    }

    /// The seed cannot be reached again, so the client has ended by itself.
    pub(crate) fn ended(&self, reason: &Error) {
        tracing::error!(addr = %self.seed().name, error = %reason, "the client has ended");
        for link in self.links().iter().filter(|link| !link.seed) {
            link.start_closing(reason);
        }
        self.announce(Event::Closed { addr: self.seed().name.clone(), error: Some(reason.clone()) });
    }
}
