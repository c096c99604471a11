//! How calls and streams end when nobody means well: many deadlines in one moment, answers that cannot be
//! read, connections that die with work on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fila_client::wire::{self, opcode};
use fila_client::{ConnectOptions, ConsumeOptions, EnqueueMessage, Error, FilaClient, LeaseOptions};

use crate::broker::shared;
use crate::peer::{frame, not_leader, Peer, HANG_UP};
use crate::{soon, with_queue};

/// A frame whose flags nobody knows.
fn unreadable(code: u8, id: u32) -> Vec<u8> {
    [&[0, 0, 0, 6, code, 0x80][..], &id.to_be_bytes()[..]].concat()
}

/// Connected to a peer that has gone since and does not come back.
async fn left_alone(options: impl FnOnce(ConnectOptions) -> ConnectOptions) -> FilaClient {
    let peer = Peer::start_raw(|_, _, _| HANG_UP.to_vec()).await;
    let hour = Duration::from_secs(3600);
    let options = options(ConnectOptions::new(&peer.addr).with_reconnect_pause(hour, hour));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    soon(client.ack("q", "id")).await.unwrap_err();
    client
}

#[tokio::test]
async fn thousands_who_give_up_together_take_no_time() {
    const CALLERS: usize = 30_000;
    let client = left_alone(|options| options).await.with_timeout(Duration::from_secs(2));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let producer = client.clone();
        tasks.spawn(async move { producer.enqueue("q", HashMap::new(), "x").await.map(drop) });
        let reader = client.clone();
        tasks.spawn(async move { reader.get_stats("q").await.map(drop) });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = cpu_seconds();
    while let Some(ended) = tasks.join_next().await {
        assert!(matches!(ended.unwrap(), Err(Error::Timeout(_))));
    }
    let took = cpu_seconds() - started;
    assert!(took < 20.0, "{CALLERS} callers took {took} s of CPU time to give up");
    // it was a minute
}

/// What this thread has spent; everything of a test runs on it, and others' load does not count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: f64 = after_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

#[tokio::test]
async fn what_was_given_up_makes_room_for_others() {
    let client = left_alone(|options| options.with_in_flight_bytes(100_000)).await;
    for _ in 0..30 {
        let patient = client.with_timeout(Duration::from_millis(10));
        let error = patient.enqueue("q", HashMap::new(), vec![0; 90_000]).await.unwrap_err();
        assert!(!error.to_string().contains("under way"), "{error}");
    }
}

/// An answer that cannot be read is no refusal: sending the messages again would store them twice.
#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_taken_for_a_refusal() {
    let peer = Peer::start_raw(|_, id, _| unreadable(opcode::ENQUEUE_RESULT, id)).await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let messages = ["q", "q", "r", "q"].map(|queue| EnqueueMessage::new(queue, "x")).to_vec();
    for result in soon(client.enqueue_many(messages)).await {
        let error = result.unwrap_err();
        assert!(
            matches!(error, Error::InvalidFrame(_)) && error.maybe_applied() && !error.retryable(),
            "{error}"
        );
    }
    assert_eq!(peer.received(opcode::ENQUEUE), 1);
}

#[tokio::test]
async fn a_delivery_that_cannot_be_read_ends_the_stream_on_both_sides() {
    let peer = Peer::start_raw(|code, id, _| match code {
        opcode::CONSUME => {
            let accepted = wire::ConsumeOk { consumer_id: "c-1".to_owned() };
            [frame(opcode::CONSUME_OK, id, &accepted), unreadable(opcode::DELIVERY, id)].concat()
        }
        _ => Vec::new(),
    })
    .await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let mut stream = client.consume("q").await.unwrap();
    assert!(matches!(soon(stream.recv()).await, Some(Err(Error::InvalidFrame(_)))));
    assert!(soon(stream.recv()).await.is_none());
    soon(async {
        while peer.received(opcode::CANCEL_CONSUME) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_sent_again_keeps_its_order() {
    let stored = Arc::new(Mutex::new((false, Vec::new())));
    let seen = stored.clone();
    let peer = Peer::start_raw(move |code, id, body| {
        if code != opcode::ENQUEUE_WITH {
            return Vec::new();
        }
        let request: wire::EnqueueWith = wire::decode(body).unwrap();
        let keys: Vec<_> = request.messages.into_iter().map(|message| message.idempotency_key).collect();
        let mut seen = seen.lock().unwrap();
        if !seen.0 {
            seen.0 = keys.last().is_some_and(|key| key == "199");
            return if seen.0 { HANG_UP.to_vec() } else { Vec::new() };
        }
        let item = wire::EnqueueWithResultItem { code: 0, message_id: "id".to_owned(), duplicate: false };
        let reply = wire::EnqueueWithResult { results: vec![item; keys.len()] };
        seen.1.extend(keys);
        frame(opcode::ENQUEUE_WITH_RESULT, id, &reply)
    })
    .await;
    let pause = Duration::from_millis(1);
    let options =
        ConnectOptions::new(&peer.addr).with_batch_limits(10, 1 << 20).with_reconnect_pause(pause, pause);
    let client = FilaClient::connect_with_options(options).await.unwrap();
    let messages = (0..200).map(|n| EnqueueMessage::new("q", "x").idempotency_key(n.to_string())).collect();
    assert!(soon(client.enqueue_many(messages)).await.iter().all(Result::is_ok));
    let expected: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(stored.lock().unwrap().1, expected);
}

#[tokio::test]
async fn streams_at_a_leader_learn_why_the_client_ended() {
    let leader = Peer::start_raw(|code, id, _| match code {
        opcode::CONSUME => frame(opcode::CONSUME_OK, id, &wire::ConsumeOk { consumer_id: "c-1".to_owned() }),
        _ => Vec::new(),
    })
    .await;
    let addr = leader.addr.clone();
    let seed = Peer::start_raw(move |code, id, _| match code {
        opcode::LIST_QUEUES => {
            let text = "the key was revoked".to_owned();
            frame(opcode::ERROR, 0, &wire::Error { code: 10, message: text, metadata: Vec::new() })
                .into_iter()
                .chain(frame(opcode::DISCONNECT, 0, &wire::Disconnect {}))
                .collect()
        }
        _ => {
            let (code, body) = not_leader(&addr).unwrap();
            let mut frame = Vec::new();
            wire::append_frame(&mut frame, code, id, &body, 1 << 20);
            frame
        }
    })
    .await;
    let client = FilaClient::connect(&seed.addr).await.unwrap();
    let mut stream = soon(client.consume("q")).await.unwrap();
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.enqueue("q", HashMap::new(), "x").await });
    soon(async {
        while leader.received(opcode::ENQUEUE) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    soon(client.list_queues()).await.unwrap_err();
    let ended = soon(stream.recv()).await;
    assert!(matches!(ended, Some(Err(Error::Unauthorized(_)))), "{ended:?}");
    let lost = soon(call).await.unwrap();
    assert!(matches!(lost, Err(Error::ConnectionLost(_))), "{lost:?}");
}

#[tokio::test]
async fn what_was_sent_before_close_may_have_been_carried_out() {
    let peer = Peer::start(|_, _| None).await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.enqueue("q", HashMap::new(), "x").await });
    soon(async {
        while peer.received(opcode::ENQUEUE) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    client.close().await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Closed(_)) && error.maybe_applied(), "{error}");
    let error = client.enqueue("q", HashMap::new(), "x").await.unwrap_err();
    assert!(matches!(error, Error::Closed(_)) && !error.maybe_applied(), "{error}");
}

#[tokio::test]
async fn a_lease_may_wait_longer_than_the_call_timeout() {
    let (broker, queue) = (shared(), "a-lease-waits");
    let witness = with_queue(&broker.addr, queue).await;
    let options = ConnectOptions::new(&broker.addr).with_call_timeout(Duration::from_millis(300));
    let client = FilaClient::connect_with_options(options).await.unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(600)).await;
        witness.enqueue(queue, HashMap::new(), "late").await.unwrap();
    });
    let options = LeaseOptions::new(1).wait(Duration::from_secs(20)).count_only();
    let batch = soon(client.lease_batch(queue, "job", options)).await.unwrap();
    assert!(batch.message_count == 1 && batch.messages.is_empty() && batch.arrow.is_none(), "{batch:?}");
    let weeks = LeaseOptions::new(1).wait(Duration::from_secs(1_000_000));
    assert!(matches!(client.lease_batch(queue, "job", weeks).await, Err(Error::InvalidArgument(_))));
}

#[tokio::test]
async fn what_a_handler_has_settled_itself_is_left_alone() {
    let peer = Peer::start_raw(|code, id, _| match code {
        opcode::CONSUME => {
            let accepted = wire::ConsumeOk { consumer_id: "c-1".to_owned() };
            let item =
                wire::DeliveryItem { id: "one".to_owned(), queue: "q".to_owned(), ..Default::default() };
            let delivery = wire::Delivery { messages: vec![item] };
            [frame(opcode::CONSUME_OK, id, &accepted), frame(opcode::DELIVERY, id, &delivery)].concat()
        }
        opcode::RELEASE => frame(
            opcode::RELEASE_RESULT,
            id,
            &wire::ReleaseResult { results: vec![wire::ReleaseCode { code: 0 }] },
        ),
        _ => Vec::new(),
    })
    .await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let worker = client.clone();
    let work = tokio::spawn(async move {
        worker.process("q", ConsumeOptions::new(), 1, |message| async move { message.release().await }).await
    });
    soon(async {
        while peer.received(opcode::RELEASE) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    client.drain(Duration::from_secs(30)).await.unwrap();
    soon(work).await.unwrap().unwrap();
    assert_eq!(peer.received(opcode::ACK) + peer.received(opcode::NACK), 0);
}

#[tokio::test]
async fn the_next_handler_does_not_wait_for_the_answer_to_an_ack() {
    let peer = Peer::start_raw(|code, id, _| match code {
        opcode::CONSUME => {
            let accepted = wire::ConsumeOk { consumer_id: "c-1".to_owned() };
            let one = |id: &str| wire::DeliveryItem {
                id: id.to_owned(),
                queue: "q".to_owned(),
                ..Default::default()
            };
            let delivery = wire::Delivery { messages: vec![one("first"), one("second")] };
            [frame(opcode::CONSUME_OK, id, &accepted), frame(opcode::DELIVERY, id, &delivery)].concat()
        }
        _ => Vec::new(), // acks are never answered
    })
    .await;
    let client = FilaClient::connect(&peer.addr).await.unwrap();
    let (started, mut handled) = tokio::sync::mpsc::unbounded_channel();
    let running = Arc::new(Mutex::new(0));
    let work = tokio::spawn(async move {
        let handler = move |message: fila_client::Message| {
            let (started, running) = (started.clone(), running.clone());
            async move {
                *running.lock().unwrap() += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
                assert_eq!(*running.lock().unwrap(), 1, "one at a time");
                *running.lock().unwrap() -= 1;
                started.send(message.id.clone()).unwrap();
                Ok::<(), Error>(())
            }
        };
        client.process("q", ConsumeOptions::new(), 1, handler).await
    });
    assert_eq!(soon(handled.recv()).await.as_deref(), Some("first"));
    assert_eq!(soon(handled.recv()).await.as_deref(), Some("second"));
    work.abort();
}
