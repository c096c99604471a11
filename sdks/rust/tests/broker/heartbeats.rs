//! Leases that get more time.

use std::time::Duration;

use fila_client::{ConsumeOptions, CreateQueueOptions, Error, FilaClient, Message};

use crate::broker::shared;

/// Long enough that a busy machine does not miss two of three beats.
const VISIBILITY: Duration = Duration::from_secs(3);

async fn brief(addr: &str, queue: &str) -> FilaClient {
    let client = FilaClient::connect(addr).await.unwrap();
    let options = CreateQueueOptions::default().visibility_timeout(VISIBILITY);
    client.create_queue(queue, options).await.unwrap();
    client.enqueue(queue, Default::default(), "x").await.unwrap();
    client
}

#[tokio::test]
async fn a_heart_beat_keeps_what_a_slow_consumer_holds() {
    let broker = shared();
    let client = brief(&broker.addr, "slow").await;
    let options = ConsumeOptions::new().with_heartbeat();
    let mut stream = client.consume_with_options("slow", options).await.unwrap();
    let message = stream.recv().await.unwrap().unwrap();
    tokio::time::sleep(2 * VISIBILITY).await;
    let stats = client.get_stats("slow").await.unwrap();
    assert_eq!((stats.depth, stats.in_flight), (0, 1));
    message.ack().await.unwrap();
}

#[tokio::test]
async fn a_heart_beat_keeps_what_handlers_have_while_the_client_drains() {
    let broker = shared();
    let client = brief(&broker.addr, "drained-slowly").await;
    let other = FilaClient::connect(&broker.addr).await.unwrap();
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let worker = client.clone();
    let working = tokio::spawn(async move {
        let handler = move |message: Message| {
            let _ = begun.send(());
            async move {
                tokio::time::sleep(2 * VISIBILITY).await;
                message.extend(None).await?; // settling, and what concerns it, goes on
                message.ack().await
            }
        };
        worker.process("drained-slowly", ConsumeOptions::new().with_heartbeat(), 1, handler).await
    });
    begins.recv().await.unwrap();
    client.drain(crate::PATIENCE).await.unwrap();
    working.await.unwrap().unwrap();
    let stats = other.get_stats("drained-slowly").await.unwrap();
    assert_eq!((stats.depth, stats.in_flight), (0, 0));
}

#[tokio::test]
async fn a_lease_is_extended_by_hand() {
    let broker = shared();
    let client = brief(&broker.addr, "by-hand").await;
    let mut stream = client.consume("by-hand").await.unwrap();
    let message = stream.recv().await.unwrap().unwrap();
    message.extend(Some(Duration::from_secs(60))).await.unwrap();
    tokio::time::sleep(VISIBILITY + VISIBILITY / 2).await;
    message.ack().await.unwrap();
    assert!(matches!(message.extend(None).await, Err(Error::MessageNotFound(_))));
}
