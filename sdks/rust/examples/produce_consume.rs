//! Produces ten messages and consumes them.
//!
//!     cargo run --example produce_consume -- [address]

use std::collections::HashMap;

use fila_client::{CreateQueueOptions, Error, FilaClient, Result};
use futures_util::TryStreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "localhost:5555".to_owned());
    let client = FilaClient::connect(addr).await?;
    match client.create_queue("greetings", CreateQueueOptions::default()).await {
        Ok(_) | Err(Error::QueueAlreadyExists(_)) => {}
        Err(error) => return Err(error),
    }
    client.purge("greetings").await?;

    for number in 0..10 {
        client.enqueue("greetings", HashMap::new(), format!("message {number}")).await?;
    }

    let mut messages = client.consume("greetings").await?;
    for _ in 0..10 {
        let Some(message) = messages.try_next().await? else { break };
        println!("received {}", String::from_utf8_lossy(&message.payload));
        message.ack().await?;
    }
    client.close().await;
    Ok(())
}
