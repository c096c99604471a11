//! Receiving and settling.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use fila_client::{
    BrowseOptions, ConsumeOptions, CreateQueueOptions, EnqueueMessage, Error, ExplainQuery, FilaClient,
    LeaseOptions, PageOptions,
};
use futures_util::{StreamExt, TryStreamExt};

use crate::broker::shared;
use crate::{soon, with_queue};

async fn fill(client: &FilaClient, queue: &str, count: usize) {
    let messages = (0..count).map(|n| EnqueueMessage::new(queue, n.to_string())).collect();
    for result in client.enqueue_many(messages).await {
        result.unwrap();
    }
}

#[tokio::test]
async fn several_streams_share_a_client_and_each_message_goes_to_one_of_them() {
    let broker = shared();
    let client = with_queue(&broker.addr, "several").await;
    fill(&client, "several", 60).await;
    let seen = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (client, seen) = (client.clone(), seen.clone());
            tokio::spawn(async move {
                let options = ConsumeOptions::new().with_prefetch(4);
                let mut stream = client.consume_with_options("several", options).await.unwrap();
                while let Some(message) = stream.try_next().await.unwrap() {
                    message.ack().await.unwrap();
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    soon(async {
        while seen.load(Ordering::Relaxed) < 60 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    client.drain(crate::PATIENCE).await.unwrap();
    for reader in readers {
        soon(reader).await.unwrap();
    }
    assert_eq!(seen.load(Ordering::Relaxed), 60);
}

#[tokio::test]
async fn a_dropped_stream_hands_back_what_nobody_read_without_counting_an_attempt() {
    let broker = shared();
    let client = with_queue(&broker.addr, "handed-back").await;
    fill(&client, "handed-back", 10).await;
    let mut stream = client.consume("handed-back").await.unwrap();
    let first = soon(stream.recv()).await.unwrap().unwrap();
    drop(stream);
    let mut again = client.consume("handed-back").await.unwrap();
    for _ in 0..9 {
        let message = soon(again.recv()).await.unwrap().unwrap();
        assert_eq!(message.attempt_count, 0);
        message.ack().await.unwrap();
    }
    first.ack().await.unwrap(); // its stream is gone; it can still be settled
    assert_eq!(client.get_stats("handed-back").await.unwrap().depth, 0);
}

#[tokio::test]
async fn a_stream_ends_when_it_is_cancelled_from_elsewhere() {
    let broker = shared();
    let client = with_queue(&broker.addr, "cancelled").await;
    let mut stream = client.consume("cancelled").await.unwrap();
    let handle = stream.handle();
    let waiting = tokio::spawn(async move { stream.next().await.is_none() });
    handle.cancel();
    assert!(soon(waiting).await.unwrap());
}

#[tokio::test]
async fn a_stream_error_reaches_the_reader_once_and_then_the_stream_is_over() {
    let broker = shared();
    let client = with_queue(&broker.addr, "deleted").await;
    let mut stream = client.consume("deleted").await.unwrap();
    client.delete_queue("deleted").await.unwrap();
    let error = soon(stream.recv()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::QueueNotFound(_)), "{error}");
    assert!(error.to_string().contains("deleted") && !error.retryable(), "{error}");
    assert!(stream.recv().await.is_none());
    assert!(matches!(client.consume("deleted").await, Err(Error::QueueNotFound(_))));
}

#[tokio::test]
async fn settling_answers_for_each_message() {
    let broker = shared();
    let client = with_queue(&broker.addr, "settled").await;
    fill(&client, "settled", 3).await;
    let mut stream = client.consume("settled").await.unwrap();
    let message = soon(stream.recv()).await.unwrap().unwrap();
    message.nack("no paper").await.unwrap();
    let mut ids = Vec::new();
    while ids.len() < 3 {
        let batch = soon(stream.recv_many(10)).await.unwrap().unwrap();
        ids.extend(batch.into_iter().map(|message| message.id));
    }
    client.release("settled", &ids[0]).await.unwrap();
    let back = soon(stream.recv()).await.unwrap().unwrap();
    assert_eq!(back.id, ids[0]);
    ids.push("0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b".to_owned());
    let results = client.ack_many("settled", &ids).await;
    assert!(results[..3].iter().all(Result::is_ok));
    let unknown = results[3].as_ref().unwrap_err();
    assert!(matches!(unknown, Error::MessageNotFound(_)) && unknown.code() == Some(2), "{unknown}");
}

#[tokio::test]
async fn process_acknowledges_what_works_and_rejects_what_fails() {
    let broker = shared();
    let client = FilaClient::connect(&broker.addr).await.unwrap();
    let to_dlq = "function on_failure(msg) return { action = 'dlq' } end";
    client.create_queue("handled", CreateQueueOptions::default().on_failure(to_dlq)).await.unwrap();
    fill(&client, "handled", 20).await;
    let worker = client.clone();
    let working = tokio::spawn(async move {
        worker
            .process("handled", ConsumeOptions::new(), 4, |message| async move {
                let number: u32 = std::str::from_utf8(&message.payload).unwrap().parse().unwrap();
                if number % 5 == 0 {
                    Err("divisible by five")
                } else {
                    Ok(())
                }
            })
            .await
    });
    soon(async {
        while client.get_stats("handled.dlq").await.unwrap().depth < 4
            || client.get_stats("handled").await.unwrap().in_flight > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(client.get_stats("handled").await.unwrap().depth, 0);
    client.drain(crate::PATIENCE).await.unwrap();
    soon(working).await.unwrap().unwrap();
    assert!(matches!(client.enqueue("handled", HashMap::new(), "x").await, Err(Error::Closed(_))));
}

#[tokio::test]
async fn batches_are_leased_by_name_and_queues_browsed_without_taking() {
    let broker = shared();
    let client = with_queue(&broker.addr, "bulk").await;
    fill(&client, "bulk", 5).await;
    let snapshot = client.browse("bulk", BrowseOptions::default().parts(2)).await.unwrap();
    let mut browsed = 0;
    for range in &snapshot.ranges {
        let mut next = Some(range.clone());
        while let Some(range) = next {
            let page = client.browse_page(&snapshot.token, &range, &PageOptions::default()).await.unwrap();
            browsed += page.messages.len();
            next = page.rest;
        }
    }
    client.browse_close(&snapshot.token).await.unwrap();
    assert_eq!((browsed, snapshot.messages), (5, 5));
    let batch = client.lease_batch("bulk", "s/1", LeaseOptions::new(3)).await.unwrap();
    let again = client.lease_batch("bulk", "s/1", LeaseOptions::new(3)).await.unwrap();
    assert_eq!((batch.messages.len(), batch.again, again.again), (3, false, true));
    assert_eq!(client.list_batches("bulk").await.unwrap()[0].name, "s/1");
    client.extend_batch("bulk", "s/1", Some(Duration::from_secs(60)), None).await.unwrap();
    assert_eq!(client.ack_batch("bulk", "s", Some(2)).await.unwrap().messages, 3);
    assert!(matches!(client.release_batch("bulk", "s/1", None).await, Err(Error::BatchNotFound(_))));
    let document = client.explain(ExplainQuery::queue("bulk")).await.unwrap();
    assert!(document.starts_with(b"{"));
}

#[tokio::test]
async fn a_handlers_panic_reaches_whoever_awaits_process() {
    let broker = shared();
    let client = with_queue(&broker.addr, "panicking").await;
    fill(&client, "panicking", 1).await;
    let worker = client.clone();
    let working = tokio::spawn(async move {
        let handler = |_| async { panic!("the handler broke") };
        let _: Result<(), Error> =
            worker.process::<_, _, String>("panicking", ConsumeOptions::new(), 4, handler).await;
    });
    assert!(soon(working).await.unwrap_err().is_panic());
}
