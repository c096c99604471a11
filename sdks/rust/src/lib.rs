//! A client for [Fila](https://github.com/faiscadev/fila), a message broker with fair scheduling and
//! per-key throttling.
//!
//! ```no_run
//! use std::collections::HashMap;
//!
//! use fila_client::{CreateQueueOptions, FilaClient};
//! use futures_util::TryStreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> fila_client::Result<()> {
//! let client = FilaClient::connect("localhost:5555").await?;
//! client.create_queue("orders", CreateQueueOptions::default()).await?;
//! client.enqueue("orders", HashMap::new(), "hello").await?;
//!
//! let mut messages = client.consume("orders").await?;
//! while let Some(message) = messages.try_next().await? {
//!     println!("{:?}", message.payload);
//!     message.ack().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What happens by itself
//!
//! - **Batching**: calls made at the same time share frames ([`BatchMode`]).
//! - **Back-pressure**: enqueues wait when too many bytes are under way
//!   ([`ConnectOptions::with_in_flight_bytes`]); a stream that is not read gets no more than its prefetch.
//! - **Deadlines**: every call has one ([`ConnectOptions::with_call_timeout`],
//!   [`FilaClient::with_timeout`]). Dropping a call's future cancels it.
//! - **Reconnecting**: with growing, jittered pauses; streams subscribe again. What was not sent waits and is
//!   sent. Reads and enqueues with an idempotency key are repeated; any other call that was sent and not
//!   answered fails with [`Error::ConnectionLost`], because it may or may not have been carried out.
//! - **Leaders**: a node that does not lead a queue names the one that does, and calls and streams move there
//!   with the same TLS settings and key.
//!
//! # Errors
//!
//! Every failure is an [`Error`] by its cause, with the broker's text:
//!
//! ```no_run
//! # async fn example(client: fila_client::FilaClient) -> fila_client::Result<()> {
//! use fila_client::Error;
//!
//! match client.ack("orders", "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b").await {
//!     Ok(()) => {}
//!     Err(Error::MessageNotFound(_)) => println!("its lease ran out"),
//!     Err(error) if error.retryable() => println!("later: {error}"),
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `rustls-native-roots` (default) | TLS with the system's certificates |
//! | `rustls-webpki-roots` | TLS with Mozilla's certificates |
//! | `rustls` | TLS with certificates you give |
//!
//! What happens to connections is told by [`tracing`] events and by
//! [`ConnectOptions::with_event_handler`]. Payloads, header values and keys are never logged.

#![forbid(unsafe_code)]
#![warn(missing_docs, rust_2018_idioms, unreachable_pub)]

mod address;
mod admin;
mod batches;
mod browse;
mod call;
mod client;
mod collector;
mod connection;
mod consume;
mod core;
mod enqueue;
mod error;
mod event;
mod heartbeat;
mod keys;
mod leaders;
mod link;
mod message;
mod options;
mod race;
mod reader;
mod request;
mod settle;
mod subscription;
mod tls;
pub mod trace;
mod versions;
#[doc(hidden)]
pub mod wire;
mod writer;

pub use bytes::Bytes;
/// The TLS library, for [`ConnectOptions::with_tls_config`].
#[cfg(feature = "rustls")]
pub use tokio_rustls::rustls;

pub use admin::{
    CreateQueueOptions, ExplainQuery, FairnessKeyStats, QueueInfo, QueueList, QueueStats, ThrottleKeyStats,
};
pub use batches::{BatchCount, LeaseOptions, LeasedBatch, OpenBatch};
pub use browse::{
    BrowseOptions, BrowsePage, BrowseRange, BrowseState, BrowsedMessage, PageOptions, Snapshot,
};
pub use client::FilaClient;
pub use consume::{ConsumeHandle, ConsumeOptions, ConsumeStream};
pub use enqueue::{EnqueueMessage, Enqueued};
pub use error::{Details, Error, Result};
pub use event::Event;
pub use keys::{Acl, ApiKey, ApiKeyInfo, CreateApiKeyOptions, Permission};
pub use message::Message;
pub use options::{BatchMode, ConnectOptions};
pub use versions::{QueueSettings, QueueUpdate, QueueVersion};

/// The README's programs are compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
