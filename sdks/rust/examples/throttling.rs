//! Keeps a provider's limit: its messages are delivered at ten a second, others are not slowed down.
//!
//!     cargo run --example throttling -- [address]

use std::time::{Duration, SystemTime};

use fila_client::{CreateQueueOptions, EnqueueMessage, Error, FilaClient, Result};
use futures_util::TryStreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "localhost:5555".to_owned());
    let client = FilaClient::connect(addr).await?;
    match client.delete_queue("calls").await {
        Ok(()) | Err(Error::QueueNotFound(_)) => {}
        Err(error) => return Err(error),
    }
    client.create_queue("calls", CreateQueueOptions::default()).await?;
    client.set_config("throttle.provider:slow", "10,1").await?; // ten tokens a second, at most one saved up

    for _ in 0..6 {
        let slow = EnqueueMessage::new("calls", "slow").throttle_keys(["provider:slow"]);
        client.enqueue_message(slow).await?;
    }
    for _ in 0..6 {
        client.enqueue_message(EnqueueMessage::new("calls", "free")).await?;
    }

    let began = SystemTime::now();
    let (mut slow, mut free) = (Duration::ZERO, Duration::ZERO);
    let mut messages = client.consume("calls").await?;
    for _ in 0..12 {
        let Some(message) = messages.try_next().await? else { break };
        let took = message.leased_at.duration_since(began).unwrap_or_default();
        match &message.payload[..] {
            b"slow" => slow = took,
            _ => free = took,
        }
        message.ack().await?;
    }
    println!(
        "six throttled calls took at least 400 ms: {}; the free ones were done before them: {}",
        slow >= Duration::from_millis(400),
        free < slow
    );
    client.close().await;
    Ok(())
}
