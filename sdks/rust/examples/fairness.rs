//! A hook sorts messages by tenant: one tenant with a thousand messages does not make another with ten wait.
//!
//!     cargo run --example fairness -- [address]

use fila_client::{ConsumeOptions, CreateQueueOptions, EnqueueMessage, Error, FilaClient, Result};
use futures_util::TryStreamExt;

const BY_TENANT: &str = r#"
function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"] }
end"#;

#[tokio::main]
async fn main() -> Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "localhost:5555".to_owned());
    let client = FilaClient::connect(addr).await?;
    match client.delete_queue("fair").await {
        Ok(()) | Err(Error::QueueNotFound(_)) => {}
        Err(error) => return Err(error),
    }
    client.create_queue("fair", CreateQueueOptions::default().on_enqueue(BY_TENANT)).await?;

    let of = |tenant: &str| EnqueueMessage::new("fair", "").header("tenant", tenant);
    let mut messages = vec![of("noisy"); 1000];
    messages.extend(vec![of("quiet"); 10]);
    for result in client.enqueue_many(messages).await {
        result?;
    }

    let (mut handled, mut quiet) = (0, 0);
    let mut stream = client.consume_with_options("fair", ConsumeOptions::new().with_prefetch(1)).await?;
    while quiet < 10 {
        let Some(message) = stream.try_next().await? else { break };
        handled += 1;
        quiet += usize::from(&*message.fairness_key == "quiet");
        message.ack().await?;
    }
    println!("all ten of the quiet tenant were served among the first {handled} of 1010");
    client.close().await;
    Ok(())
}
