//! Lost connections, deadlines, back-pressure, the end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fila_client::wire::opcode;
use fila_client::{ConnectOptions, EnqueueMessage, Error, FilaClient};

use crate::broker::{shared, Broker};
use crate::peer::{stored, Peer};
use crate::{soon, with_queue};

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let error = FilaClient::connect("127.0.0.1:1").await.unwrap_err();
    assert!(matches!(error, Error::ConnectFailed(_)) && error.retryable(), "{error}");
    assert!(error.to_string().contains("is the broker running there?"), "{error}");
    assert!(matches!(FilaClient::connect("no port:x").await, Err(Error::InvalidArgument(_))));
}

#[tokio::test]
async fn a_killed_broker_is_found_again_and_streams_go_on() {
    let mut broker = Broker::start(&[]);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let options = ConnectOptions::new(&broker.addr)
        .with_reconnect_pause(Duration::from_millis(10), Duration::from_millis(100))
        .with_event_handler(move |event| seen.lock().unwrap().push(event.name()));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    client.create_queue("q", Default::default()).await.unwrap();
    let mut stream = client.consume("q").await.unwrap();
    client.enqueue("q", HashMap::new(), "before").await.unwrap();
    soon(stream.recv()).await.unwrap().unwrap().ack().await.unwrap();
    broker.kill();
    // Not sent yet: it waits for the new connection.
    let waiting = client.clone();
    let waiting = tokio::spawn(async move {
        let message = EnqueueMessage::new("q", "after").idempotency_key("after");
        waiting.enqueue_message(message).await
    });
    broker.restart();
    soon(waiting).await.unwrap().unwrap();
    let message = soon(stream.recv()).await.unwrap().unwrap();
    assert_eq!(&message.payload[..], b"after");
    message.ack().await.unwrap();
    client.close().await;
    assert!(soon(stream.recv()).await.is_none());
    let events = events.lock().unwrap().clone();
    let important: Vec<_> = events.into_iter().filter(|name| *name != "reconnecting").collect();
    assert_eq!(important, ["connected", "disconnected", "connected", "disconnected", "closed"]);
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_ambiguous_and_says_so() {
    let peer = Peer::start(|_, _| Some((opcode::DISCONNECT, Vec::new()))).await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let error = soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost(_)), "{error}");
    assert!(error.retryable() && error.maybe_applied() && error.code().is_none());
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn a_call_has_a_deadline_and_a_late_answer_harms_nobody() {
    let peer = Peer::start(|_, _| None).await;
    let client = FilaClient::connect(&peer.addr).await.unwrap().with_timeout(Duration::from_millis(100));
    let error = soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout(_)) && error.to_string().contains("100ms"), "{error}");
    assert!(matches!(soon(client.list_queues()).await, Err(Error::Timeout(_))));
    assert!(matches!(soon(client.consume("q")).await, Err(Error::Timeout(_))));
}

#[tokio::test]
async fn bytes_without_an_answer_are_bounded() {
    let peer = Peer::start(|_, _| None).await;
    let options = ConnectOptions::new(&peer.addr).with_in_flight_bytes(10_000).with_batch_limits(1, 1 << 20);
    let client =
        FilaClient::connect_with_options(options).await.unwrap().with_timeout(Duration::from_millis(500));
    let messages = (0..100).map(|_| EnqueueMessage::new("q", vec![0; 1000])).collect();
    let results = soon(client.enqueue_many(messages)).await;
    assert!(results.iter().all(|result| matches!(result, Err(Error::Timeout(_)))));
    let sent = peer.received(opcode::ENQUEUE);
    assert!((1..=10).contains(&sent), "{sent} messages of 1000 bytes were sent");
}

#[tokio::test]
async fn a_silent_connection_is_given_up_and_replaced() {
    // It answers enqueues and nothing else: pings go unheard.
    let peer = Peer::start(|code, body| if code == opcode::ENQUEUE { stored(body) } else { None }).await;
    let options = ConnectOptions::new(&peer.addr)
        .with_keep_alive(Duration::from_millis(50), Duration::from_millis(100))
        .with_reconnect_pause(Duration::from_millis(1), Duration::from_millis(10));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    soon(async {
        while peer.connections() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(peer.received(opcode::PING) >= 1);
    soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap();
}

#[tokio::test]
async fn closing_hands_leased_messages_back_and_fails_later_calls() {
    let broker = shared();
    let client = with_queue(&broker.addr, "closing").await;
    client.enqueue("closing", HashMap::new(), "x").await.unwrap();
    let mut stream = client.consume("closing").await.unwrap();
    let held = soon(stream.recv()).await.unwrap().unwrap();
    client.close().await;
    client.close().await;
    assert!(matches!(held.ack().await, Err(Error::Closed(_))));
    assert!(matches!(client.list_queues().await, Err(Error::Closed(_))));
    let other = FilaClient::connect(&broker.addr).await.unwrap();
    let mut again = other.consume("closing").await.unwrap();
    let message = soon(again.recv()).await.unwrap().unwrap();
    assert_eq!((message.id.as_str(), message.attempt_count), (held.id.as_str(), 0));
}

#[tokio::test]
async fn dropping_the_last_handle_says_goodbye() {
    let broker = shared();
    let client = with_queue(&broker.addr, "dropped").await;
    client.enqueue("dropped", HashMap::new(), "x").await.unwrap();
    let mut stream = client.consume("dropped").await.unwrap();
    let held = soon(stream.recv()).await.unwrap().unwrap();
    drop((stream, client));
    let id = held.id.clone(); // it keeps the client alive until here
    drop(held);
    let other = FilaClient::connect(&broker.addr).await.unwrap();
    let mut again = other.consume("dropped").await.unwrap();
    assert_eq!(soon(again.recv()).await.unwrap().unwrap().id, id);
}

#[tokio::test]
async fn draining_answers_what_is_under_way() {
    let broker = shared();
    let admin = with_queue(&broker.addr, "drained").await;
    let options = ConnectOptions::new(&broker.addr)
        .with_batch_mode(fila_client::BatchMode::Linger(Duration::from_secs(3600)));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    let lingering = client.clone();
    let call = tokio::spawn(async move { lingering.enqueue("drained", HashMap::new(), "x").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.drain(crate::PATIENCE).await.unwrap();
    soon(call).await.unwrap().unwrap();
    assert_eq!(admin.get_stats("drained").await.unwrap().depth, 1);
}
