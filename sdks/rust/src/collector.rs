//! Holds items of one kind until they become a frame, and decides when that is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::call::Item;
use crate::options::BatchMode;

/// So many items need not wait for company.
const ENOUGH: usize = 100;

/// - auto: due at once when nothing of this kind is under way or when there is enough for a frame of
///   its own, else when an answer comes.
/// - linger: due when the oldest item has waited long enough or the frame is full.
/// - disabled: one frame for every call.
pub(crate) struct Collector {
    pub(crate) mode: BatchMode,
    pub(crate) in_flight: usize, // frames
    max_items: usize,
    max_bytes: usize,
    items: VecDeque<Item>,
    bytes: usize,
    /// Items of callers who have gone, at most, and their bytes; see `forget`.
    left: (usize, usize),
    oldest: Instant,
}

impl Collector {
    pub(crate) fn new(mode: BatchMode, max_items: usize, max_bytes: usize) -> Collector {
        Collector {
            mode,
            in_flight: 0,
            max_items,
            max_bytes,
            items: VecDeque::new(),
            bytes: 0,
            left: (0, 0),
            oldest: Instant::now(),
        }
    }

    pub(crate) fn add(&mut self, items: Vec<Item>) {
        if self.items.is_empty() && matches!(self.mode, BatchMode::Linger(_)) {
            self.oldest = Instant::now();
        }
        self.bytes += size_of(&items);
        self.items.extend(items);
    }

    /// Takes items that must be sent before the others.
    pub(crate) fn put_back(&mut self, items: Vec<Item>) {
        self.bytes += size_of(&items);
        for item in items.into_iter().rev() {
            self.items.push_front(item);
        }
    }

    pub(crate) fn due(&self) -> bool {
        if self.items.is_empty() {
            return false;
        }
        if self.items.len() >= self.max_items || self.bytes >= self.max_bytes {
            return true;
        }
        match self.mode {
            BatchMode::Auto => self.in_flight == 0 || self.items.len() >= ENOUGH,
            BatchMode::Linger(time) => self.oldest.elapsed() >= time,
            BatchMode::Disabled => true,
        }
    }

    /// How long a lingering frame is not due yet.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self.mode {
            BatchMode::Linger(time) if !self.items.is_empty() => {
                Some(time.saturating_sub(self.oldest.elapsed()))
            }
            _ => None,
        }
    }

    /// The next frame's items.
    pub(crate) fn take(&mut self) -> Vec<Item> {
        let (mut count, mut size) = (0, 0);
        for item in &self.items {
            let full = count >= self.max_items || size + item.size > self.max_bytes;
            let alone = self.mode == BatchMode::Disabled && !Arc::ptr_eq(&item.call, &self.items[0].call);
            if count > 0 && (full || alone) {
                break;
            }
            count += 1;
            size += item.size;
        }
        self.bytes -= size;
        self.items.drain(..count).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Item> {
        self.bytes = 0;
        self.items.drain(..).collect()
    }

    /// A caller has gone, and up to so many items and bytes here are its. They are never sent, but dropped
    /// only once they may be an eighth of what waits: thousands of callers can reach their deadline in one
    /// moment, and looking for each one's items would take all of them the square of that. Returns the
    /// charge of what was dropped.
    pub(crate) fn forget(&mut self, items: usize, bytes: usize) -> usize {
        self.left.0 += items;
        self.left.1 += bytes;
        if 8 * self.left.0 < self.items.len() && 8 * self.left.1 < self.bytes {
            return 0;
        }
        self.left = (0, 0);
        let (mut charge, mut bytes) = (0, 0);
        self.items.retain(|item| {
            let stays = !item.call.is_abandoned();
            if !stays {
                charge += item.charge;
                bytes += item.size;
            }
            stays
        });
        self.bytes -= bytes;
        charge
    }

    /// How often what waits here has been sent on, at most.
    pub(crate) fn hops(&self) -> u32 {
        self.items.iter().map(|item| item.hops).max().unwrap_or(0)
    }
}

fn size_of(items: &[Item]) -> usize {
    items.iter().map(|item| item.size).sum()
}

/// Cuts a refused frame into smaller ones: one for each queue, or halves of a single queue's.
pub(crate) fn split(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    let one_queue = items.iter().all(|item| item.queue() == items[0].queue());
    if one_queue {
        let rest = items.split_off(items.len() / 2);
        return vec![items, rest];
    }
    let mut parts: Vec<Vec<Item>> = Vec::new();
    for item in items {
        match parts.iter_mut().find(|part| part[0].queue() == item.queue()) {
            Some(part) => part.push(item),
            None => parts.push(vec![item]),
        }
    }
    parts
}
