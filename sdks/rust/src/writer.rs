//! The writing half of a link: sends what is due, many frames in one write, and pings a silent broker.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::call::{Item, Kind};
use crate::collector::Collector;
use crate::core::{lock, Core};
use crate::link::{Link, LinkState, Pending};
use crate::options::ConnectOptions;
use crate::race::race;
use crate::request::Request;
use crate::subscription::Subscription;
use crate::wire::{self, opcode};
use crate::Error;

/// Frames written together.
const COMPOSE_BYTES: usize = 1 << 20;
/// One write; progress is seen between two of them.
const WRITE_BYTES: usize = 256 << 10;

impl Link {
    /// Writes until it fails and says why it did.
    pub(crate) async fn write(&self, core: &Core, mut sink: Box<dyn AsyncWrite + Send + Unpin>) -> Error {
        let mut buf = Vec::new();
        loop {
            buf.clear();
            if buf.capacity() > 4 * COMPOSE_BYTES {
                buf = Vec::new(); // one large message must not cost its memory for ever
            }
            let wait = {
                let mut state = lock(&self.state);
                state.compose(core);
                std::mem::swap(&mut state.out, &mut buf);
                state.collectors.iter().filter_map(Collector::wait).min()
            };
            if buf.is_empty() {
                match wait {
                    Some(time) => drop(race(self.wake.notified(), tokio::time::sleep(time)).await),
                    None => self.wake.notified().await,
                }
                continue;
            }
            if let Err(e) = self.write_all(&mut sink, &buf).await {
                return Error::lost(format!("writing to {}: {e}", self.name)).because(e);
            }
        }
    }

    async fn write_all(
        &self,
        sink: &mut Box<dyn AsyncWrite + Send + Unpin>,
        buf: &[u8],
    ) -> std::io::Result<()> {
        for piece in buf.chunks(WRITE_BYTES) {
            sink.write_all(piece).await?;
            self.moved.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        sink.flush().await
    }

    /// Pings a silent broker and gives the connection up when nothing comes back.
    pub(crate) async fn keep_alive(&self, options: &ConnectOptions, opened: Instant) -> Error {
        let (interval, timeout) = (options.keep_alive, options.keep_alive_timeout);
        let mut pinged: Option<(Instant, u64)> = None;
        let mut pause = interval;
        loop {
            tokio::time::sleep(pause).await;
            let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
            let silent = opened.elapsed().saturating_sub(heard);
            if silent < interval {
                pinged = None;
                pause = interval - silent;
                continue;
            }
            let moved = self.moved.load(Ordering::Relaxed);
            let since = match pinged {
                // A large message on a slow line: our ping stands behind it, but bytes are moving.
                Some((_, before)) if before != moved => Instant::now(),
                Some((since, _)) => since,
                None => {
                    let mut state = lock(&self.state);
                    let id = state.next_id();
                    state.send(opcode::PING, id, &[]);
                    self.wake.notify_one();
                    Instant::now()
                }
            };
            pinged = Some((since, moved));
            if since.elapsed() >= timeout {
                return Error::lost(format!("{} was silent for {silent:.1?}", self.name));
            }
            pause = (timeout - since.elapsed()).min(timeout / 4).max(Duration::from_millis(1));
        }
    }
}

impl LinkState {
    /// Makes frames of what is due, up to about a MiB of them.
    fn compose(&mut self, core: &Core) {
        for kind in Kind::ALL {
            while self.out.len() < COMPOSE_BYTES && self.collectors[kind as usize].due() {
                let items = self.collectors[kind as usize].take();
                self.send_items(core, kind, items);
            }
        }
    }

    /// Writes one frame. Messages of callers that have gone are left out.
    pub(crate) fn send_items(&mut self, core: &Core, kind: Kind, mut items: Vec<Item>) {
        let Some(frame_max) = self.frame_max else {
            self.collectors[kind as usize].put_back(items);
            return;
        };
        let mut charge = 0;
        items.retain(|item| {
            let stays = !item.call.is_abandoned();
            if !stays {
                charge += item.charge;
            }
            stays
        });
        core.free(charge);
        if items.is_empty() {
            return;
        }
        let id = self.next_id();
        self.out.reserve(16 + items.iter().map(|item| item.size).sum::<usize>());
        let start = wire::begin_frame(&mut self.out, kind.opcode(), id);
        self.out.extend_from_slice(&(items.len() as u32).to_be_bytes());
        for item in &items {
            item.append_to(&mut self.out);
        }
        wire::end_frame(&mut self.out, start, frame_max);
        self.pending.insert(id, Pending::Frame(kind, items));
        self.collectors[kind as usize].in_flight += 1;
    }

    /// Writes one frame if there is a connection.
    pub(crate) fn send(&mut self, opcode: u8, id: u32, body: &[u8]) {
        if let Some(frame_max) = self.frame_max {
            wire::append_frame(&mut self.out, opcode, id, body, frame_max);
        }
    }

    pub(crate) fn send_request(&mut self, request: Arc<Request>) {
        let id = self.next_id();
        self.send(request.opcode, id, &request.body);
        self.pending.insert(id, Pending::Request(request));
    }

    pub(crate) fn send_consume(&mut self, subscription: &Arc<Subscription>) {
        let id = self.next_id();
        let mut body = Vec::new();
        wire::put_string(&mut body, &subscription.queue);
        body.extend_from_slice(&subscription.prefetch.to_be_bytes());
        self.send(opcode::CONSUME, id, &body);
        subscription.set_id(id);
        self.pending.insert(id, Pending::Subscription(subscription.clone()));
    }
}
