//! The client's side of one node: the present connection, what waits for it and what it still owes an
//! answer. The seed link, to the address the user gave, reconnects; a link to a leader hands everything
//! back to the seed when it ends.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{watch, Notify};

use crate::address::Address;
use crate::call::{Call, Item, Kind};
use crate::collector::Collector;
use crate::connection::{connect, Connection};
use crate::core::{lock, Core};
use crate::event::Event;
use crate::options::{BatchMode, ConnectOptions};
use crate::race::race;
use crate::request::Request;
use crate::subscription::Subscription;
use crate::wire::{self, opcode};
use crate::{Error, Result};

/// A connection that lived this long resets the pause.
const STABLE_AFTER: Duration = Duration::from_secs(1);
/// For the broker to close after Disconnect.
const GOODBYE: Duration = Duration::from_secs(1);
/// How often an item, request or stream is sent on to another node.
pub(crate) const HOPS_MAX: u32 = 8;

pub(crate) struct Link {
    pub(crate) addr: Address,
    pub(crate) name: String,
    pub(crate) seed: bool,
    /// Why the link was told to end.
    closing: watch::Sender<Option<Error>>,
    over: watch::Sender<bool>,
    /// There is something to write.
    pub(crate) wake: Notify,
    /// Milliseconds since the connection was opened when bytes last came in.
    pub(crate) heard: AtomicU64,
    /// Bytes written so far.
    pub(crate) moved: AtomicU64,
    pub(crate) state: Mutex<LinkState>,
}

pub(crate) struct LinkState {
    /// The largest frame of the present connection; `None` without one.
    pub(crate) frame_max: Option<usize>,
    /// No call can succeed here any more.
    ended: Option<Error>,
    /// Why there is no connection.
    failure: Option<String>,
    /// An Error that belongs to no request: why the connection is about to end.
    pub(crate) complaint: Option<Error>,
    last_id: u32,
    pub(crate) pending: HashMap<u32, Pending>,
    /// Waiting for a connection, in the order they were made.
    pub(crate) requests: BTreeMap<u64, Arc<Request>>,
    pub(crate) subscriptions: HashMap<u64, Arc<Subscription>>,
    pub(crate) collectors: [Collector; 5],
    /// Frames that are ready to be written.
    pub(crate) out: Vec<u8>,
}

/// What a request id stands for.
pub(crate) enum Pending {
    Frame(Kind, Vec<Item>),
    Request(Arc<Request>),
    Subscription(Arc<Subscription>),
    /// A subscription that was closed while deliveries may be on their way to it, with its Consume's id.
    Leaving(Arc<Subscription>, u32),
}

impl Link {
    pub(crate) fn new(options: &ConnectOptions, addr: Address, seed: bool) -> Arc<Link> {
        let collectors = Kind::ALL.map(|kind| {
            // Lingering would only keep leases longer than needed.
            let settles = !kind.enqueues() && matches!(options.batch, BatchMode::Linger(_));
            let mode = if settles { BatchMode::Auto } else { options.batch };
            Collector::new(mode, options.batch_messages, options.batch_bytes)
        });
        Arc::new(Link {
            name: addr.text(),
            addr,
            seed,
            closing: watch::Sender::new(None),
            over: watch::Sender::new(false),
            wake: Notify::new(),
            heard: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            state: Mutex::new(LinkState {
                frame_max: None,
                ended: None,
                failure: None,
                complaint: None,
                last_id: 0,
                pending: HashMap::new(),
                requests: BTreeMap::new(),
                subscriptions: HashMap::new(),
                collectors,
                out: Vec::new(),
            }),
        })
    }

    /// Serves connections, beginning with this one, until the link ends. Without a first connection it
    /// opens one.
    pub(crate) async fn run(self: Arc<Self>, core: Arc<Core>, first: Option<Connection>) {
        let mut next = first;
        let mut pauses = 0;
        loop {
            let (reason, was_open) = match next.take() {
                Some(connection) => {
                    let opened = Instant::now();
                    let reason = self.serve(&core, connection).await;
                    if opened.elapsed() >= STABLE_AFTER {
                        pauses = 0;
                    }
                    (reason, true)
                }
                None => match race(connect(&self.addr, &core.config), self.closed()).await {
                    Ok(Ok(connection)) => {
                        next = Some(connection);
                        continue;
                    }
                    Ok(Err(error)) => {
                        tracing::warn!(addr = %self.name, %error, "connect failed");
                        (error, false)
                    }
                    Err(reason) => (reason, false),
                },
            };
            if !self.retry(&core, reason, was_open, &mut pauses).await {
                break;
            }
        }
        self.over.send_replace(true);
    }

    /// Decides what follows a connection that ended or was not opened, and pauses before the next
    /// attempt. False: the link has ended.
    async fn retry(
        self: &Arc<Self>,
        core: &Arc<Core>,
        reason: Error,
        was_open: bool,
        pauses: &mut u32,
    ) -> bool {
        if let Some(told) = self.told_to_end() {
            self.end(core, &told);
            return false;
        }
        if !self.seed {
            self.retire(core, reason, was_open).await;
            return false;
        }
        if reason.permanent() || !core.config.options.reconnect {
            self.end(core, &reason);
            core.ended(&reason);
            return false;
        }
        let pause = shortened(core.config.options.pause_after(*pauses));
        *pauses += 1;
        lock(&self.state).failure = Some(reason.message().to_owned());
        core.announce(Event::Reconnecting { addr: self.name.clone(), pause, error: reason });
        self.sleep(core, pause).await
    }

    /// False: the link was closed meanwhile.
    pub(crate) async fn sleep(&self, core: &Arc<Core>, pause: Duration) -> bool {
        match race(tokio::time::sleep(pause), self.closed()).await {
            Ok(()) => true,
            Err(reason) => {
                self.end(core, &reason);
                false
            }
        }
    }

    /// Runs one connection to its end and says why it ended.
    async fn serve(self: &Arc<Self>, core: &Arc<Core>, connection: Connection) -> Error {
        let Connection { reader, writer, frame_max, node_id } = connection;
        if !self.attach(frame_max) {
            return Error::closed(&self.name);
        }
        tracing::info!(addr = %self.name, node_id, "connected");
        core.announce(Event::Connected { addr: self.name.clone() });
        let opened = Instant::now();
        let moving = race(self.read(core, reader, opened), self.write(core, writer));
        let watching = race(self.keep_alive(&core.config.options, opened), self.linger_goodbye());
        let mut reason = match race(moving, watching).await {
            Ok(Ok(reason) | Err(reason)) | Err(Ok(reason) | Err(reason)) => reason,
        };
        if let (Some(complaint), None) = (lock(&self.state).complaint.take(), reason.code()) {
            reason = complaint; // the broker said why before it closed
        }
        self.detach(core, &reason);
        if !self.is_closing() {
            tracing::warn!(addr = %self.name, error = %reason, "connection lost");
        }
        core.announce(Event::Disconnected { addr: self.name.clone(), error: reason.clone() });
        reason
    }

    /// Ends a connection that was told goodbye and is not closed by the broker.
    async fn linger_goodbye(&self) -> Error {
        let reason = self.closed().await;
        tokio::time::sleep(GOODBYE).await;
        reason
    }

    /// Makes a connection the present one; false if the link was closed meanwhile.
    pub(crate) fn attach(&self, frame_max: usize) -> bool {
        let mut state = lock(&self.state);
        if state.frame_max.is_some() {
            return true; // the first one, attached before anybody could call
        }
        if self.is_closing() {
            return false;
        }
        state.frame_max = Some(frame_max);
        (state.failure, state.complaint) = (None, None);
        state.out.clear();
        let subscriptions: Vec<_> = state.subscriptions.values().cloned().collect();
        for subscription in &subscriptions {
            state.send_consume(subscription);
        }
        for request in std::mem::take(&mut state.requests).into_values() {
            state.send_request(request);
        }
        self.wake.notify_one();
        true
    }

    /// Fails what was sent and not answered, keeps what may be sent again.
    fn detach(&self, core: &Core, reason: &Error) {
        let lost = match self.told_to_end() {
            Some(closed @ Error::Closed(_)) => closed.sent(),
            told => {
                let reason = told.unwrap_or_else(|| reason.clone());
                let why = format!("lost before the broker answered: {}", reason.message());
                Error::lost(format!("connection to {} {why}", self.name)).because(reason)
            }
        };
        let mut state = lock(&self.state);
        state.frame_max = None;
        state.failure = Some(reason.message().to_owned());
        let mut unanswered: Vec<_> = std::mem::take(&mut state.pending).into_iter().collect();
        unanswered.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id)); // what is put back last goes first
        for (_, pending) in unanswered {
            match pending {
                Pending::Frame(kind, items) => state.lose(core, kind, items, &lost),
                Pending::Request(request) if request.repeatable => state.hold(request),
                Pending::Request(request) => request.finish(Err(lost.clone())),
                Pending::Subscription(_) | Pending::Leaving(..) => {}
            }
        }
        for subscription in state.subscriptions.values() {
            subscription.disconnected();
        }
    }

    /// Hands items in; gives them back if the link has ended.
    pub(crate) fn submit(&self, kind: Kind, items: Vec<Item>) -> Result<(), Vec<Item>> {
        let mut state = lock(&self.state);
        if state.ended.is_some() {
            return Err(items);
        }
        state.collectors[kind as usize].add(items);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Hands a request in; false if the link has ended.
    pub(crate) fn ask(&self, request: &Arc<Request>) -> bool {
        let mut state = lock(&self.state);
        if state.ended.is_some() {
            return false;
        }
        if state.frame_max.is_none() {
            state.hold(request.clone());
        } else {
            state.send_request(request.clone());
            self.wake.notify_one();
        }
        true
    }

    /// Withdraws what a call has not sent yet.
    pub(crate) fn abandon(&self, core: &Core, call: &Arc<Call>) {
        let (items, bytes) = call.extent();
        let charge = lock(&self.state).collectors[call.kind as usize].forget(items, bytes);
        core.free(charge);
    }

    pub(crate) fn withdraw(&self, request: &Arc<Request>) {
        lock(&self.state).requests.remove(&request.key);
    }

    /// Sends what lingers at once, now and later.
    pub(crate) fn flush(&self) {
        for collector in &mut lock(&self.state).collectors {
            if matches!(collector.mode, BatchMode::Linger(_)) {
                collector.mode = BatchMode::Auto;
            }
        }
        self.wake.notify_one();
    }

    pub(crate) fn why_ended(&self) -> Error {
        lock(&self.state).ended.clone().unwrap_or_else(|| Error::closed(&self.name))
    }

    /// Whether the link ended before anybody closed it.
    pub(crate) fn ended_by_itself(&self) -> bool {
        lock(&self.state).ended.as_ref().is_some_and(|error| !matches!(error, Error::Closed(_)))
    }

    /// Says for people why a call may have had no answer.
    pub(crate) fn describe(&self) -> String {
        let state = lock(&self.state);
        match &state.failure {
            _ if state.frame_max.is_some() => String::new(),
            Some(failure) => format!("; not connected: {failure}"),
            None => "; still connecting".to_owned(),
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.borrow().is_some()
    }

    fn told_to_end(&self) -> Option<Error> {
        self.closing.borrow().clone()
    }

    /// Waits until the link is told to end, and says why.
    async fn closed(&self) -> Error {
        let mut closing = self.closing.subscribe();
        let told = closing.wait_for(Option::is_some).await;
        told.ok().and_then(|told| told.clone()).unwrap_or_else(|| Error::closed(&self.name))
    }

    /// Says goodbye, which hands leased messages back. What is left open fails with the reason.
    pub(crate) fn start_closing(&self, reason: &Error) {
        let mut state = lock(&self.state);
        // Under the lock: from here on no new connection is attached.
        self.closing.send_if_modified(|told| told.is_none() && told.replace(reason.clone()).is_none());
        if let Some(frame_max) = state.frame_max {
            wire::append_frame(&mut state.out, opcode::DISCONNECT, 0, &[], frame_max);
            self.wake.notify_one();
        }
    }

    /// Waits until the link's task has ended.
    pub(crate) async fn join(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Fails everything, now and later.
    pub(crate) fn end(&self, core: &Core, reason: &Error) {
        let (items, requests, subscriptions) = self.take_all(reason);
        for item in &items {
            core.fail_items(item.call.kind, std::slice::from_ref(item), reason);
        }
        for request in requests {
            request.finish(Err(reason.clone()));
        }
        for subscription in subscriptions {
            subscription.fail(core, reason);
        }
    }

    pub(crate) fn take_all(&self, reason: &Error) -> (Vec<Item>, Vec<Arc<Request>>, Vec<Arc<Subscription>>) {
        let mut state = lock(&self.state);
        state.ended.get_or_insert_with(|| reason.clone());
        let items = state.collectors.iter_mut().flat_map(Collector::take_all).collect();
        let requests = std::mem::take(&mut state.requests).into_values().collect();
        let subscriptions = std::mem::take(&mut state.subscriptions).into_values().collect();
        (items, requests, subscriptions)
    }
}

impl LinkState {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Keeps a request until there is a connection.
    fn hold(&mut self, request: Arc<Request>) {
        self.requests.insert(request.key, request);
    }

    /// Settles a frame that will not be answered; items with an idempotency key are sent again.
    fn lose(&mut self, core: &Core, kind: Kind, items: Vec<Item>, lost: &Error) {
        let (again, gone): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.repeatable() && !item.call.is_abandoned());
        self.collectors[kind as usize].in_flight -= 1;
        core.fail_items(kind, &gone, lost);
        self.collectors[kind as usize].put_back(again);
    }

    /// Never an id that is in use: a stream may live for more than 2^32 requests.
    pub(crate) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.pending.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

/// By up to half at random: many clients lose one node at the same moment and must not come back at one
/// moment.
pub(crate) fn shortened(longest: Duration) -> Duration {
    let bits = RandomState::new().build_hasher().finish();
    let random = (bits >> 11) as f64 / (1_u64 << 53) as f64; // from 0 to 1
    longest - longest.mul_f64(random / 2.0)
}
