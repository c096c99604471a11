//! Receiving messages.

use std::fmt;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use crate::call::Kind;
use crate::client::FilaClient;
use crate::heartbeat::Heartbeat;
use crate::message::Message;
use crate::race::race;
use crate::subscription::Subscription;
use crate::wire::check_string;
use crate::{Error, Result};

/// How a queue is consumed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsumeOptions {
    /// How many messages the broker may have delivered without their being settled, from 1 to 65,535; 256
    /// by default.
    pub prefetch: u32,
    /// Whether the leases of what is not settled, read or not, are extended, however long that takes; not by
    /// default.
    pub heartbeat: bool,
}

impl Default for ConsumeOptions {
    fn default() -> ConsumeOptions {
        ConsumeOptions { prefetch: 256, heartbeat: false }
    }
}

impl ConsumeOptions {
    /// The defaults.
    pub fn new() -> ConsumeOptions {
        ConsumeOptions::default()
    }

    /// How many messages the broker may have delivered without their being settled.
    pub fn with_prefetch(mut self, prefetch: u32) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Extends the leases of what is not settled, three times within the queue's visibility timeout; in
    /// [`process`](FilaClient::process) also while the client drains.
    pub fn with_heartbeat(mut self) -> Self {
        self.heartbeat = true;
        self
    }
}

/// A subscription: a [`Stream`] of messages. It ends without an error when it is cancelled or the client
/// is closed or drained; whatever else ends it is its last item. After a lost connection it subscribes
/// again by itself. Dropping it ends the subscription and hands back what was fetched and not read.
///
/// ```no_run
/// # async fn example(client: fila_client::FilaClient) -> fila_client::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let mut messages = client.consume("orders").await?;
/// while let Some(message) = messages.try_next().await? {
///     println!("{}: {} bytes", message.id, message.payload.len());
///     message.ack().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the subscription"]
pub struct ConsumeStream {
    subscription: Arc<Subscription>,
    client: FilaClient,
    heartbeat: Option<Heartbeat>,
}

/// Ends a [`ConsumeStream`] from elsewhere.
#[derive(Clone)]
pub struct ConsumeHandle {
    subscription: Arc<Subscription>,
    client: FilaClient,
}

impl FilaClient {
    /// Subscribes to a queue and waits until the broker has accepted it.
    pub async fn consume(&self, queue: &str) -> Result<ConsumeStream> {
        self.consume_with_options(queue, ConsumeOptions::default()).await
    }

    /// Subscribes to a queue with options.
    pub async fn consume_with_options(&self, queue: &str, options: ConsumeOptions) -> Result<ConsumeStream> {
        let operation = format!("consume queue {queue:?}");
        check_string("the queue's name", queue).map_err(|e| Error::invalid("consume", e))?;
        if !(1..=65_535).contains(&options.prefetch) {
            let text = format!("prefetch must be from 1 to 65535, not {}", options.prefetch);
            return Err(Error::invalid("consume", text));
        }
        let core = self.core();
        let _under_way = core.begin(&operation, true)?;
        let subscription = Subscription::new(core.new_key(), queue, options.prefetch, options.heartbeat);
        // Closes it if we fail.
        let mut stream = ConsumeStream { subscription, client: self.clone(), heartbeat: None };
        if !core.join(&stream.subscription) {
            return Err(Error::closed(&core.seed().name).during(&operation));
        }
        if !core.route(queue).subscribe(&stream.subscription) && !core.seed().subscribe(&stream.subscription)
        {
            return Err(core.seed().why_ended().during(&operation));
        }
        self.bounded(&operation, queue, poll_fn(|context| stream.subscription.poll_open(context))).await??;
        if options.heartbeat {
            stream.heartbeat = Some(Heartbeat::start(self.clone(), stream.subscription.clone()));
        }
        Ok(stream)
    }

    /// Subscribes and calls `handler` for every message, `concurrency` of them at a time. A message is
    /// acknowledged when the handler returns `Ok` and rejected with the error's text when it does not, unless
    /// the handler has settled it itself. The handler runs in the message's trace [`scope`](crate::trace::scope).
    ///
    /// It returns `Ok` when the client is drained or closed, after the handlers have returned and their
    /// settlements are answered; else the error that ended the subscription. A handler's panic is passed on.
    /// Dropping the future stops the handlers where they are; their messages are delivered again when their
    /// leases run out. A handler must not wait for [`drain`](FilaClient::drain), which waits for it.
    ///
    /// ```no_run
    /// # async fn example(client: fila_client::FilaClient) -> fila_client::Result<()> {
    /// use fila_client::ConsumeOptions;
    ///
    /// client
    ///     .process("orders", ConsumeOptions::new(), 8, |message| async move {
    ///         let text = std::str::from_utf8(&message.payload)?.to_owned();
    ///         println!("{text}");
    ///         Ok::<(), std::str::Utf8Error>(())
    ///     })
    ///     .await
    /// # }
    /// ```
    pub async fn process<F, Fut, E>(
        &self,
        queue: &str,
        options: ConsumeOptions,
        concurrency: usize,
        handler: F,
    ) -> Result<()>
    where
        F: Fn(Message) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send,
        E: fmt::Display + Send,
    {
        if concurrency == 0 {
            return Err(Error::invalid("process", "the concurrency must be more than 0"));
        }
        let mut messages = self.consume_with_options(queue, options).await?;
        let _under_way = self.core().begin("process", false)?; // draining waits for the handlers
        messages.subscription.at_work();
        let handler = Arc::new(handler);
        let slots = Arc::new(Semaphore::new(concurrency));
        let mut tasks = tokio::task::JoinSet::new();
        let outcome = loop {
            let taken = async {
                let slot = slots.clone().acquire_owned().await;
                (slot, messages.recv().await)
            };
            // A handler that ends is looked at when it ends, not when the next message comes. What is given
            // up for that has lost neither a slot nor a message.
            let (slot, next) = match tasks.is_empty() {
                true => taken.await,
                false => match race(taken, tasks.join_next()).await {
                    Ok(taken) => taken,
                    Err(ended) => {
                        pass_on(ended);
                        continue;
                    }
                },
            };
            let message = match next {
                Some(Ok(message)) => message,
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            };
            let handler = handler.clone();
            tasks.spawn(async move { handle(&*handler, message, slot).await });
        };
        while pass_on(tasks.join_next().await) {}
        outcome
    }
}

/// A handler that panicked must not do so where nobody sees it. False: there was none.
fn pass_on(ended: Option<Result<(), JoinError>>) -> bool {
    match ended.map(|result| result.map_err(JoinError::try_into_panic)) {
        Some(Err(Ok(panic))) => std::panic::resume_unwind(panic),
        Some(_) => true,
        None => false,
    }
}

/// Runs a handler in its slot, then settles its message: the next handler need not wait for the answer,
/// the prefetch bounds how many are under way.
async fn handle<F, Fut, E, S>(handler: &F, mut message: Message, slot: S)
where
    F: Fn(Message) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: fmt::Display,
{
    let settled = Arc::new(AtomicBool::new(false));
    message.settled = Some(settled.clone());
    let receipt = message.receipt();
    let (queue, id) = (receipt.queue.clone(), receipt.id.clone());
    let traceparent = message.traceparent().map(str::to_owned);
    let work = handler(message);
    let result = match traceparent {
        Some(traceparent) => crate::trace::scope(traceparent, work).await,
        None => work.await,
    };
    drop(slot);
    if settled.load(Ordering::Relaxed) {
        return; // by the handler itself
    }
    let settled = match result {
        Ok(()) => receipt.settle(Kind::Ack, "").await,
        Err(error) => receipt.settle(Kind::Nack, &error.to_string()).await,
    };
    if let Err(error) = settled {
        tracing::warn!(queue = &*queue, message_id = id, %error, "a handled message was not settled");
    }
}

impl ConsumeStream {
    /// The queue's name.
    pub fn queue(&self) -> &str {
        &self.subscription.queue
    }

    /// Waits for the next message, as the stream's `next` does. It may be dropped while it waits without
    /// losing a message.
    pub async fn recv(&mut self) -> Option<Result<Message>> {
        poll_fn(|context| self.poll_message(context)).await
    }

    /// Waits for a message and adds what else is here already, up to `limit` messages (1 if it is 0): the fast
    /// form for those who settle in batches.
    pub async fn recv_many(&mut self, limit: usize) -> Option<Result<Vec<Message>>> {
        let first = match self.recv().await? {
            Ok(message) => message,
            Err(error) => return Some(Err(error)),
        };
        let mut messages = vec![first];
        messages.extend(self.subscription.take(limit.saturating_sub(1)));
        for message in &mut messages[1..] {
            message.client = Some(self.client.clone());
        }
        Some(Ok(messages))
    }

    /// Ends the subscription and hands back what was fetched and not read. Messages received before can
    /// still be settled.
    pub fn cancel(&self) {
        self.subscription.close(self.client.core());
    }

    /// A handle that ends the subscription from elsewhere.
    pub fn handle(&self) -> ConsumeHandle {
        ConsumeHandle { subscription: self.subscription.clone(), client: self.client.clone() }
    }

    fn poll_message(&self, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        self.subscription.poll_next(context).map(|next| {
            next.map(|result| {
                result.map(|mut message| {
                    message.client = Some(self.client.clone());
                    message
                })
            })
        })
    }
}

impl ConsumeHandle {
    /// Ends the subscription; the stream then ends without an error.
    pub fn cancel(&self) {
        self.subscription.close(self.client.core());
    }
}

impl Stream for ConsumeStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        self.poll_message(context)
    }
}

impl Drop for ConsumeStream {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for ConsumeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumeStream").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConsumeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumeHandle").field("queue", &self.subscription.queue).finish_non_exhaustive()
    }
}
