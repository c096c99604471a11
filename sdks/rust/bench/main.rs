//! Produces and consumes messages in batches and prints what that cost, one JSON line for each role.
//!
//!     cargo run --release --example bench -- --addr localhost:5555 --role both --messages 100000

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use fila_client::{Bytes, ConsumeOptions, CreateQueueOptions, EnqueueMessage, Error, FilaClient, Result};

#[derive(Clone)]
struct Settings {
    addr: String,
    role: String,
    queue: String,
    messages: usize,
    batch: usize,
    size: usize,
    in_flight: usize,
    prefetch: u32,
}

fn settings() -> Settings {
    let arguments: Vec<String> = std::env::args().collect();
    let get = |name: &str, default: &str| -> String {
        let at = arguments.iter().position(|argument| argument.trim_start_matches('-') == name);
        at.and_then(|at| arguments.get(at + 1)).map_or(default, String::as_str).to_owned()
    };
    let number =
        |name: &str, default: &str| get(name, default).parse().unwrap_or_else(|_| panic!("--{name}"));
    Settings {
        addr: get("addr", "localhost:5555"),
        role: get("role", "both"),
        queue: get("queue", "bench-rust"),
        messages: number("messages", "100000"),
        batch: number("batch", "100"),
        size: number("size", "1024"),
        in_flight: number("in-flight", "8"),
        prefetch: number("prefetch", "2000") as u32,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let s = settings();
    let client = FilaClient::connect(&s.addr).await?;
    match client.create_queue(&s.queue, CreateQueueOptions::default()).await {
        Ok(_) | Err(Error::QueueAlreadyExists(_)) => {}
        Err(error) => return Err(error),
    }
    for role in ["produce", "consume"] {
        if s.role != role && s.role != "both" {
            continue;
        }
        let (began, cpu) = (Instant::now(), cpu_seconds());
        if role == "produce" {
            produce(&client, &s).await?;
        } else {
            consume(&client, &s).await?;
        }
        println!(
            r#"{{"lang":"rust","role":"{role}","messages":{},"seconds":{:.3},"cpu_seconds":{:.3},"rss_mb":{:.1}}}"#,
            s.messages,
            began.elapsed().as_secs_f64(),
            cpu_seconds() - cpu,
            rss_mb()
        );
    }
    client.close().await;
    Ok(())
}

async fn produce(client: &FilaClient, s: &Settings) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(s.messages));
    let payload = Bytes::from(vec![b'x'; s.size]);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..s.in_flight {
        let (client, s, left, payload) = (client.clone(), s.clone(), left.clone(), payload.clone());
        workers.spawn(async move {
            loop {
                let taken = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(s.batch)));
                let count = taken.unwrap_or(0).min(s.batch);
                if count == 0 {
                    return Ok(());
                }
                let messages = vec![EnqueueMessage::new(s.queue.as_str(), payload.clone()); count];
                for result in client.enqueue_many(messages).await {
                    result?;
                }
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.expect("a worker panicked")?;
    }
    Ok(())
}

async fn consume(client: &FilaClient, s: &Settings) -> Result<()> {
    let options = ConsumeOptions::new().with_prefetch(s.prefetch);
    let mut stream = client.consume_with_options(&s.queue, options).await?;
    let mut settling = tokio::task::JoinSet::new();
    let mut received = 0;
    while received < s.messages {
        let Some(messages) = stream.recv_many(s.batch).await else { break };
        let messages = messages?;
        received += messages.len();
        while settling.len() >= s.in_flight {
            settling.join_next().await.expect("there is one").expect("settling panicked")?;
        }
        let client = client.clone();
        settling
            .spawn(async move { client.ack_messages(&messages).await.into_iter().collect::<Result<()>>() });
    }
    while let Some(ended) = settling.join_next().await {
        ended.expect("settling panicked")?;
    }
    Ok(())
}

/// User and system time of this process, from /proc; the clock tick there is always 1/100 s.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = most.and_then(|kib| kib.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}
