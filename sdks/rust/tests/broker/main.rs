//! The client against a real broker, and against a scripted peer for what a real broker does not do.

#[path = "../support/broker.rs"]
mod broker;
mod certificates;
mod consuming;
mod endings;
mod examples;
mod heartbeats;
mod leaders;
mod peer;
mod producing;
mod secured;
mod trouble;
mod versions;

use std::future::Future;
use std::time::Duration;

use fila_client::{CreateQueueOptions, FilaClient};

/// For what must happen, however slow the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it did not happen in time")
}

/// A client and a fresh queue on the shared broker.
pub async fn with_queue(addr: &str, queue: &str) -> FilaClient {
    let client = FilaClient::connect(addr).await.unwrap();
    client.create_queue(queue, CreateQueueOptions::default()).await.unwrap();
    client
}
