//! Storing messages.

use std::collections::HashMap;
use std::time::Duration;

use fila_client::{trace, BatchMode, Bytes, ConnectOptions, EnqueueMessage, Error, FilaClient};

use crate::broker::shared;
use crate::{soon, with_queue};

#[test]
fn the_client_is_clone_send_and_sync() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    fn check_send<T: Send + 'static>() {}
    check::<FilaClient>();
    check::<fila_client::Message>();
    check::<Error>();
    check_send::<fila_client::ConsumeStream>();
}

#[tokio::test]
async fn what_is_enqueued_is_delivered_with_its_headers_and_options() {
    let broker = shared();
    let client = with_queue(&broker.addr, "whole").await;
    let headers = HashMap::from([("a".to_owned(), "ä".to_owned()), (String::new(), String::new())]);
    let id = client.enqueue("whole", headers.clone(), Bytes::from_static(b"one")).await.unwrap();
    let placed = EnqueueMessage::new("whole", "two").fairness_key("k").weight(3).throttle_keys(["t"]);
    client.enqueue_message(placed).await.unwrap();
    let mut stream = client.consume("whole").await.unwrap();
    let mut found =
        vec![soon(stream.recv()).await.unwrap().unwrap(), soon(stream.recv()).await.unwrap().unwrap()];
    found.sort_by_key(|message| message.payload.clone());
    assert_eq!((&found[0].id, &found[0].headers, &found[0].payload[..]), (&id, &headers, &b"one"[..]));
    assert_eq!((&*found[1].fairness_key, found[1].weight, &*found[1].throttle_keys[0]), ("k", 3, "t"));
    for result in client.ack_messages(&found).await {
        result.unwrap();
    }
    assert_eq!(client.get_stats("whole").await.unwrap().in_flight, 0);
}

#[tokio::test]
async fn many_have_results_in_order_and_a_refused_one_costs_only_itself() {
    let broker = shared();
    let client = with_queue(&broker.addr, "partly").await;
    let long = "x".repeat(70_000);
    let results = client
        .enqueue_many(vec![
            EnqueueMessage::new("partly", "0"),
            EnqueueMessage::new("nowhere", "1"),
            EnqueueMessage::new("partly", "2").header("h", long),
            EnqueueMessage::new("partly", "3"),
        ])
        .await;
    assert!(results[0].is_ok() && results[3].is_ok());
    let missing = results[1].as_ref().unwrap_err();
    assert!(
        matches!(missing, Error::QueueNotFound(_)) && missing.to_string().contains("nowhere"),
        "{missing}"
    );
    let refused = results[2].as_ref().unwrap_err();
    assert!(
        matches!(refused, Error::InvalidArgument(_)) && refused.to_string().contains("65535"),
        "{refused}"
    );
    assert_eq!(client.get_stats("partly").await.unwrap().depth, 2);
    assert!(client.enqueue_many(Vec::new()).await.is_empty());
}

#[tokio::test]
async fn an_idempotency_key_stores_once() {
    let broker = shared();
    let client = with_queue(&broker.addr, "once").await;
    let message = EnqueueMessage::new("once", "x").idempotency_key("k");
    let first = client.enqueue_message(message.clone()).await.unwrap();
    let second = client.enqueue_message(message).await.unwrap();
    assert_eq!((first.duplicate, second.duplicate), (false, true));
    assert_eq!(first.message_id, second.message_id);
}

#[tokio::test]
async fn a_message_larger_than_a_frame_makes_the_round_trip() {
    let broker = shared();
    let client = with_queue(&broker.addr, "large").await;
    let payload: Bytes = (0..20_u32 << 20).map(|n| (n / 7) as u8).collect::<Vec<_>>().into();
    client.enqueue("large", HashMap::new(), payload.clone()).await.unwrap();
    let mut stream = client.consume("large").await.unwrap();
    let message = soon(stream.recv()).await.unwrap().unwrap();
    assert!(message.payload == payload);
    message.ack().await.unwrap();
}

#[tokio::test]
async fn every_batch_mode_stores_everything_and_keeps_a_callers_order() {
    let broker = shared();
    for (queue, mode) in [
        ("auto", BatchMode::Auto),
        ("linger", BatchMode::Linger(Duration::from_millis(5))),
        ("disabled", BatchMode::Disabled),
    ] {
        let admin = with_queue(&broker.addr, queue).await;
        let options = ConnectOptions::new(&broker.addr).with_batch_mode(mode);
        let client = FilaClient::connect_with_options(options).await.unwrap();
        let calls: Vec<_> = (0..200)
            .map(|n| {
                let client = client.clone();
                let queue = queue.to_owned();
                tokio::spawn(async move { client.enqueue(&queue, HashMap::new(), n.to_string()).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!(admin.get_stats(queue).await.unwrap().depth, 200, "{queue}");
    }
}

#[tokio::test]
async fn a_dropped_call_does_not_harm_the_others_of_its_batch() {
    let broker = shared();
    let admin = with_queue(&broker.addr, "shared-batch").await;
    let linger = BatchMode::Linger(Duration::from_millis(300));
    let options = ConnectOptions::new(&broker.addr).with_batch_mode(linger);
    let client = FilaClient::connect_with_options(options).await.unwrap();
    let (first, second) = (client.clone(), client.clone());
    let first = tokio::spawn(async move { first.enqueue("shared-batch", HashMap::new(), "first").await });
    tokio::task::yield_now().await;
    let second = tokio::spawn(async move { second.enqueue("shared-batch", HashMap::new(), "second").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.abort(); // the batch was opened by this one
    assert!(first.await.unwrap_err().is_cancelled());
    soon(second).await.unwrap().unwrap();
    assert_eq!(admin.get_stats("shared-batch").await.unwrap().depth, 1);
}

#[tokio::test]
async fn a_trace_context_goes_out_and_comes_in() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let broker = shared();
    let client = with_queue(&broker.addr, "traced").await;
    trace::scope(PARENT, client.enqueue("traced", HashMap::new(), "x")).await.unwrap();
    let provider = ConnectOptions::new(&broker.addr).with_traceparent_provider(|| Some(PARENT.to_owned()));
    let provided = FilaClient::connect_with_options(provider).await.unwrap();
    provided.enqueue("traced", HashMap::new(), "y").await.unwrap();
    let mut stream = client.consume("traced").await.unwrap();
    for _ in 0..2 {
        let message = soon(stream.recv()).await.unwrap().unwrap();
        assert_eq!(message.traceparent(), Some(PARENT));
    }
}
