//! Leases that get more time.

use std::time::Duration;

use fila_client::{ConsumeOptions, CreateQueueOptions, Error, FilaClient};

use crate::broker::shared;

async fn brief(addr: &str, queue: &str) -> FilaClient {
    let client = FilaClient::connect(addr).await.unwrap();
    let options = CreateQueueOptions::default().visibility_timeout(Duration::from_secs(1));
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
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let stats = client.get_stats("slow").await.unwrap();
    assert_eq!((stats.depth, stats.in_flight), (0, 1));
    message.ack().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_extended_by_hand() {
    let broker = shared();
    let client = brief(&broker.addr, "by-hand").await;
    let mut stream = client.consume("by-hand").await.unwrap();
    let message = stream.recv().await.unwrap().unwrap();
    message.extend(Some(Duration::from_secs(60))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    message.ack().await.unwrap();
    assert!(matches!(message.extend(None).await, Err(Error::MessageNotFound(_))));
}
