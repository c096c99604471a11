//! A hook decides what happens to failed messages: two more attempts, then the dead letter queue, from which
//! they are moved back.
//!
//!     cargo run --example retries -- [address]

use std::collections::HashMap;
use std::time::Duration;

use fila_client::{CreateQueueOptions, Error, FilaClient, Result};
use futures_util::TryStreamExt;

const TWO_MORE: &str = r#"
function on_failure(msg)
  if msg.attempts >= 3 then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 50 * msg.attempts }
end"#;

#[tokio::main]
async fn main() -> Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "localhost:5555".to_owned());
    let client = FilaClient::connect(addr).await?;
    match client.delete_queue("jobs").await {
        Ok(()) | Err(Error::QueueNotFound(_)) => {}
        Err(error) => return Err(error),
    }
    client.create_queue("jobs", CreateQueueOptions::default().on_failure(TWO_MORE)).await?;
    client.enqueue("jobs", HashMap::new(), "job").await?;

    let mut messages = client.consume("jobs").await?;
    for _ in 0..3 {
        let Some(message) = messages.try_next().await? else { break };
        println!("attempt {} fails", message.attempt_count);
        message.nack("the printer is on fire").await?;
    }
    while client.get_stats("jobs.dlq").await?.depth == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    println!("{} dead letter moved back", client.redrive("jobs.dlq", None).await?);
    if let Some(message) = messages.try_next().await? {
        println!("{} is done", String::from_utf8_lossy(&message.payload));
        message.ack().await?;
    }
    client.close().await;
    Ok(())
}
