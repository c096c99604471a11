//! Following a queue's leader.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fila_client::wire::{self, opcode};
use fila_client::{ConnectOptions, Error, Event, FilaClient};

use crate::peer::{not_leader, stored, Peer};
use crate::soon;

#[tokio::test]
async fn calls_batches_and_streams_move_to_the_leader() {
    let leader = Peer::start(|code, body| match code {
        opcode::ENQUEUE => stored(body),
        opcode::CONSUME => {
            let ok = wire::ConsumeOk { consumer_id: "c".to_owned() };
            Some((opcode::CONSUME_OK, wire::encode(&ok).unwrap()))
        }
        opcode::PURGE => {
            let reply = wire::PurgeResult { code: 0, purged: 7 };
            Some((opcode::PURGE_RESULT, wire::encode(&reply).unwrap()))
        }
        _ => None,
    })
    .await;
    let addr = leader.addr.clone();
    let follower = Peer::start(move |_, _| not_leader(&addr)).await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let options = ConnectOptions::new(&follower.addr).with_event_handler(move |event| {
        if let Event::Redirected { addr, .. } = event {
            seen.lock().unwrap().push(addr);
        }
    });
    let client = FilaClient::connect_with_options(options).await.unwrap();
    soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap();
    let _stream = soon(client.consume("q")).await.unwrap();
    assert_eq!(soon(client.purge("q")).await.unwrap(), 7);
    soon(client.enqueue("q", HashMap::new(), "y")).await.unwrap();
    // The batcher has left the old connection: only the first enqueue went there.
    assert_eq!((follower.received(opcode::ENQUEUE), leader.received(opcode::ENQUEUE)), (1, 2));
    assert_eq!(leader.connections(), 1);
    assert_eq!(events.lock().unwrap().as_slice(), std::slice::from_ref(&leader.addr));
}

#[tokio::test]
async fn a_redirect_loop_ends_with_the_brokers_error() {
    let other = Arc::new(Mutex::new(String::new()));
    let name = other.clone();
    let first = Peer::start(move |_, _| not_leader(&name.lock().unwrap())).await;
    let back = first.addr.clone();
    let second = Peer::start(move |_, _| not_leader(&back)).await;
    second.addr.clone_into(&mut other.lock().unwrap());
    let client = FilaClient::connect(&first.addr).await.unwrap();
    let error = soon(client.enqueue("q", HashMap::new(), "x")).await.unwrap_err();
    assert!(matches!(error, Error::NotLeader(_)) && error.retryable(), "{error}");
}
