//! An administrative call: sent when there is a connection, answered by one result.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::client::FilaClient;
use crate::core::{lock, Core};
use crate::wire::{self, Body};
use crate::{Error, Result};

pub(crate) struct Request {
    pub(crate) key: u64,
    operation: String,
    /// Whose leader is asked; empty if it concerns none.
    pub(crate) queue: String,
    pub(crate) opcode: u8,
    pub(crate) body: Vec<u8>,
    /// A read: may be sent again after a lost connection.
    pub(crate) repeatable: bool,
    hops: AtomicU32,
    done: Mutex<Option<oneshot::Sender<Result<Bytes>>>>,
}

impl Request {
    pub(crate) fn finish(&self, result: Result<Bytes>) {
        if let Some(done) = lock(&self.done).take() {
            // The caller may have gone.
            let _ = done.send(result.map_err(|error| error.during(&self.operation)));
        }
    }

    pub(crate) fn hops(&self) -> u32 {
        self.hops.load(Ordering::Relaxed)
    }

    pub(crate) fn hop(&self) -> u32 {
        self.hops.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Withdraws a request whose caller has gone.
struct Withdrawal<'a>(&'a Core, &'a Arc<Request>);

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if lock(&self.1.done).is_some() {
            for link in self.0.links() {
                link.withdraw(self.1);
            }
        }
    }
}

/// What is said about a request.
pub(crate) struct Query<'a> {
    pub(crate) operation: String,
    /// Whose leader is asked.
    pub(crate) queue: &'a str,
    /// A read: sent again by itself after a lost connection.
    pub(crate) repeatable: bool,
    /// How long the broker waits before it answers.
    pub(crate) wait: Duration,
    /// It concerns what is leased already: allowed while the client drains.
    pub(crate) settles: bool,
}

impl FilaClient {
    /// Sends a request and waits for its reply. The reply's code is the caller's to look at.
    pub(crate) async fn ask<B: Body, R: Body>(&self, query: &Query<'_>, body: &B) -> Result<R> {
        let operation = &query.operation;
        let body_bytes = wire::encode(body).map_err(|e| Error::invalid(operation, e))?;
        let core = self.core();
        let _under_way = core.begin(operation, !query.settles)?;
        let (done, answer) = oneshot::channel();
        let request = Arc::new(Request {
            key: core.new_key(),
            operation: operation.clone(),
            queue: query.queue.to_owned(),
            opcode: B::OPCODE,
            body: body_bytes,
            repeatable: query.repeatable,
            hops: AtomicU32::new(0),
            done: Mutex::new(Some(done)),
        });
        let _withdrawal = Withdrawal(core, &request);
        if !core.route(query.queue).ask(&request) && !core.seed().ask(&request) {
            return Err(core.seed().why_ended().during(operation));
        }
        let answered = self.bounded_after(query.wait, operation, query.queue, answer).await?;
        let reply = answered.unwrap_or_else(|_| Err(core.seed().why_ended().during(operation)))?;
        wire::decode(reply).map_err(|e| {
            Error::protocol(format!("the broker's answer does not parse: {e}")).because(e).during(operation)
        })
    }
}

/// The error for a reply whose code is not Ok.
pub(crate) fn check(operation: &str, subject: &str, code: u8, text: Option<&str>) -> Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(Error::refused(code, text.unwrap_or(""), subject, Default::default()).during(operation)),
    }
}
