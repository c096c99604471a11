//! The end of a link to another node than the seed.

use std::sync::Arc;

use crate::collector::Collector;
use crate::core::{lock, Core};
use crate::link::{shortened, Link, LinkState};
use crate::Error;

impl Link {
    /// Ends a leader's link and gives what it had to the seed, which knows who leads now. A leader that
    /// can never be talked to (its certificate is wrong, it refuses the key) fails it all instead.
    pub(crate) async fn retire(self: &Arc<Self>, core: &Arc<Core>, reason: Error, was_open: bool) {
        if !was_open && (reason.permanent() || reason.details().lasting) {
            core.forget(self);
            self.end(core, &reason);
            return;
        }
        if !was_open {
            // The seed may go on naming a node that is gone until another is elected.
            let hops = lock(&self.state).hops();
            if !self.sleep(core, shortened(core.config.options.pause_after(hops))).await {
                return;
            }
        }
        core.forget(self);
        let (items, requests, subscriptions) = self.take_all(&reason);
        let seed = core.seed();
        for item in items {
            let kind = item.call.kind;
            if let Err(items) = seed.submit(kind, vec![item]) {
                core.fail_items(kind, &items, &reason);
            }
        }
        for request in requests {
            if !seed.ask(&request) {
                request.finish(Err(reason.clone()));
            }
        }
        for subscription in subscriptions {
            if !seed.subscribe(&subscription) {
                subscription.fail(core, &reason);
            }
        }
    }
}

impl LinkState {
    /// How often what waits here has been sent on, at most.
    fn hops(&self) -> u32 {
        let items = self.collectors.iter().map(Collector::hops);
        let requests = self.requests.values().map(|request| request.hops());
        let subscriptions = self.subscriptions.values().map(|subscription| subscription.hops());
        items.chain(requests).chain(subscriptions).max().unwrap_or(0)
    }
}
