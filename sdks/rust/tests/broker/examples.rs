//! The examples do what they say.

use std::path::PathBuf;

use crate::broker::shared;

/// Cargo builds the examples beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}

async fn run(name: &str, wanted: &[&str]) {
    let broker = shared();
    let command = tokio::process::Command::new(example(name)).arg(&broker.addr).kill_on_drop(true).output();
    let output = crate::soon(command).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in wanted {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[tokio::test]
async fn produce_consume_receives_all_ten() {
    run("produce_consume", &["received message 0", "received message 9"]).await;
}

#[tokio::test]
async fn fairness_serves_the_quiet_tenant_early() {
    run("fairness", &["all ten of the quiet tenant were served among the first 20 of 1010"]).await;
}

#[tokio::test]
async fn throttling_slows_only_what_is_throttled() {
    run("throttling", &["took at least 400 ms: true; the free ones were done before them: true"]).await;
}

#[tokio::test]
async fn retries_end_in_the_dead_letter_queue_and_come_back() {
    run("retries", &["attempt 0 fails", "attempt 2 fails", "1 dead letter moved back", "job is done"]).await;
}
