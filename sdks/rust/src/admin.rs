//! Queues, statistics, runtime settings, pauses.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use crate::client::FilaClient;
use crate::enqueue::millis;
use crate::request::{check, Query};
use crate::wire;
use crate::Result;

/// What a queue is made of; the default takes every default.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CreateQueueOptions {
    /// Lua source that places every message.
    pub on_enqueue: Option<String>,
    /// Lua source that decides about failed messages.
    pub on_failure: Option<String>,
    /// How long a lease lasts; the broker's default is 30 s.
    pub visibility_timeout: Option<Duration>,
    /// A message that failed so many times is a dead letter, whatever the hook says; no limit by default.
    pub max_attempts: Option<u32>,
    /// What a message costs its fairness key: `messages` (1, the default) or `bytes`, those of its headers and
    /// payload, so that keys share bytes by weight.
    pub cost: Option<String>,
}

impl CreateQueueOptions {
    /// Sets the hook that places every message.
    pub fn on_enqueue(mut self, lua: impl Into<String>) -> Self {
        self.on_enqueue = Some(lua.into());
        self
    }

    /// Sets the hook that decides about failed messages.
    pub fn on_failure(mut self, lua: impl Into<String>) -> Self {
        self.on_failure = Some(lua.into());
        self
    }

    /// Sets how long a lease lasts.
    pub fn visibility_timeout(mut self, time: Duration) -> Self {
        self.visibility_timeout = Some(time);
        self
    }

    /// Sets after how many failures a message is a dead letter, whatever the hook says.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets what a message costs its fairness key: `messages` or `bytes`.
    pub fn cost(mut self, cost: impl Into<String>) -> Self {
        self.cost = Some(cost.into());
        self
    }
}

/// A line of the list of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueInfo {
    /// The queue's name.
    pub name: String,
    /// Messages that wait.
    pub depth: u64,
    /// Messages that are leased.
    pub in_flight: u64,
    /// Subscriptions.
    pub active_consumers: u32,
    /// The node that leads it, 0 for a broker that stands alone.
    pub leader_node_id: u64,
}

/// The state of one fairness key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FairnessKeyStats {
    /// The key.
    pub key: String,
    /// Its messages that wait.
    pub pending: u64,
    /// What is left of its turn.
    pub deficit: i64,
    /// Its weight.
    pub weight: u32,
}

/// The state of one bucket.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThrottleKeyStats {
    /// The key.
    pub key: String,
    /// Tokens in the bucket.
    pub tokens: f64,
    /// How many come in a second.
    pub rate_per_second: f64,
    /// How many it can hold.
    pub burst: f64,
}

/// The queues this client may see.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueList {
    /// One line each.
    pub queues: Vec<QueueInfo>,
    /// The number of the cluster's nodes, 0 for a broker that stands alone.
    pub cluster_node_count: u32,
}

/// A queue's present state.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueStats {
    /// Messages that wait.
    pub depth: u64,
    /// Messages that are leased.
    pub in_flight: u64,
    /// Fairness keys with messages.
    pub active_fairness_keys: u64,
    /// Subscriptions.
    pub active_consumers: u32,
    /// What a turn is worth.
    pub quantum: u32,
    /// The node that leads it.
    pub leader_node_id: u64,
    /// How many nodes hold it.
    pub replication_count: u32,
    /// The fairness keys.
    pub fairness_keys: Vec<FairnessKeyStats>,
    /// The buckets.
    pub throttle_keys: Vec<ThrottleKeyStats>,
}

/// What is to be explained; the default asks for all queues in short.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExplainQuery {
    queue: String,
    fairness_key: Option<String>,
    message_id: String,
    keys: u32,
}

impl ExplainQuery {
    /// Asks about a queue.
    pub fn queue(queue: impl Into<String>) -> ExplainQuery {
        ExplainQuery { queue: queue.into(), keys: 10, ..ExplainQuery::default() }
    }

    /// Asks about the next message of a key, which may be the empty one.
    pub fn fairness_key(mut self, key: impl Into<String>) -> Self {
        self.fairness_key = Some(key.into());
        self
    }

    /// Asks about one message.
    pub fn message(mut self, id: impl Into<String>) -> Self {
        self.message_id = id.into();
        self
    }

    /// How many of the longest-waiting keys are told; 10 by default.
    pub fn keys(mut self, keys: u32) -> Self {
        self.keys = keys;
        self
    }
}

impl FilaClient {
    /// Makes a queue and its dead letter queue, `<name>.dlq`, and returns the queue's id.
    pub async fn create_queue(&self, name: &str, options: CreateQueueOptions) -> Result<String> {
        let q = about(format!("create queue {name:?}"), name, false);
        let body = wire::CreateQueue {
            name: name.to_owned(),
            on_enqueue: options.on_enqueue,
            on_failure: options.on_failure,
            visibility_timeout_ms: options.visibility_timeout.map_or(0, millis),
            // What stands at the end may be left out only with all that follows.
            max_attempts: options.max_attempts.or(options.cost.as_ref().map(|_| 0)),
            cost: options.cost,
        };
        let reply: wire::CreateQueueResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(name), reply.code, reply.message.as_deref())?;
        Ok(reply.queue_id)
    }

    /// Removes a queue with everything in it. Its streams end with [`Error::QueueNotFound`](crate::Error).
    pub async fn delete_queue(&self, queue: &str) -> Result<()> {
        let q = about(format!("delete queue {queue:?}"), queue, false);
        let reply: wire::DeleteQueueResult =
            self.ask(&q, &wire::DeleteQueue { queue: queue.to_owned() }).await?;
        check(&q.operation, &subject(queue), reply.code, reply.message.as_deref())
    }

    /// Lists the queues this client may see.
    pub async fn list_queues(&self) -> Result<QueueList> {
        let q = about("list queues".to_owned(), "", true);
        let reply: wire::ListQueuesResult = self.ask(&q, &wire::ListQueues {}).await?;
        check(&q.operation, "", reply.code, reply.message.as_deref())?;
        let info = |q: wire::QueueSummary| QueueInfo {
            name: q.name,
            depth: q.depth,
            in_flight: q.in_flight,
            active_consumers: q.active_consumers,
            leader_node_id: q.leader_node_id,
        };
        let queues = reply.queues.into_iter().map(info).collect();
        Ok(QueueList { queues, cluster_node_count: reply.cluster_node_count })
    }

    /// Tells the state of a queue, its fairness keys and buckets.
    pub async fn get_stats(&self, queue: &str) -> Result<QueueStats> {
        let q = about(format!("stats of queue {queue:?}"), queue, true);
        let r: wire::GetStatsResult = self.ask(&q, &wire::GetStats { queue: queue.to_owned() }).await?;
        check(&q.operation, &subject(queue), r.code, None)?;
        Ok(QueueStats {
            depth: r.depth,
            in_flight: r.in_flight,
            active_fairness_keys: r.active_fairness_keys,
            active_consumers: r.active_consumers,
            quantum: r.quantum,
            leader_node_id: r.leader_node_id,
            replication_count: r.replication_count,
            fairness_keys: r
                .fairness_keys
                .into_iter()
                .map(|k| FairnessKeyStats {
                    key: k.key,
                    pending: k.pending,
                    deficit: k.deficit,
                    weight: k.weight,
                })
                .collect(),
            throttle_keys: r
                .throttle_keys
                .into_iter()
                .map(|k| ThrottleKeyStats {
                    key: k.key,
                    tokens: k.tokens,
                    rate_per_second: k.rate_per_second,
                    burst: k.burst,
                })
                .collect(),
        })
    }

    /// Sets a runtime setting, such as `throttle.provider:stripe`; an empty value removes it.
    pub async fn set_config(&self, key: &str, value: &str) -> Result<()> {
        let q = about(format!("set config {key:?}"), "", false);
        let body = wire::SetConfig { key: key.to_owned(), value: value.to_owned() };
        let reply: wire::SetConfigResult = self.ask(&q, &body).await?;
        check(&q.operation, &format!("config key {key:?}"), reply.code, reply.message.as_deref())
    }

    /// A runtime setting's value, `None` if it is not set.
    pub async fn get_config(&self, key: &str) -> Result<Option<String>> {
        let q = about(format!("get config {key:?}"), "", true);
        let reply: wire::GetConfigResult = self.ask(&q, &wire::GetConfig { key: key.to_owned() }).await?;
        check(&q.operation, &format!("config key {key:?}"), reply.code, reply.message.as_deref())?;
        Ok(Some(reply.value).filter(|value| !value.is_empty()))
    }

    /// Every runtime setting whose key has this prefix.
    pub async fn list_config(&self, prefix: &str) -> Result<HashMap<String, String>> {
        let q = about("list config".to_owned(), "", true);
        let reply: wire::ListConfigResult =
            self.ask(&q, &wire::ListConfig { prefix: prefix.to_owned() }).await?;
        check(&q.operation, "", reply.code, reply.message.as_deref())?;
        Ok(reply.entries.into_iter().map(|entry| (entry.key, entry.value)).collect())
    }

    /// Moves pending messages of a dead letter queue back to their queue, at most `limit` of them, all
    /// without one. Returns how many were moved.
    pub async fn redrive(&self, dlq: &str, limit: Option<u64>) -> Result<u64> {
        if limit == Some(0) {
            return Ok(0);
        }
        let q = about(format!("redrive {dlq:?}"), dlq, false);
        let body = wire::Redrive { dlq_queue: dlq.to_owned(), limit: limit.unwrap_or(0) };
        let reply: wire::RedriveResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(dlq), reply.code, None)?;
        Ok(reply.redriven)
    }

    /// Says why something waits, as a JSON document.
    pub async fn explain(&self, query: ExplainQuery) -> Result<Bytes> {
        let q = about(format!("explain queue {:?}", query.queue), &query.queue, true);
        let body = wire::Explain {
            queue: query.queue.clone(),
            fairness_key: query.fairness_key,
            message_id: query.message_id,
            keys_max: query.keys,
        };
        let reply: wire::ExplainResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(q.queue), reply.code, None)?;
        Ok(reply.document)
    }

    /// Hands out nothing of this queue until it is resumed; it still takes messages in.
    pub async fn pause_queue(&self, queue: &str, reason: &str) -> Result<()> {
        let q = about(format!("pause queue {queue:?}"), queue, false);
        let body = wire::PauseQueue { queue: queue.to_owned(), reason: reason.to_owned() };
        let reply: wire::PauseQueueResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)
    }

    /// Ends a pause.
    pub async fn resume_queue(&self, queue: &str) -> Result<()> {
        let q = about(format!("resume queue {queue:?}"), queue, false);
        let reply: wire::ResumeQueueResult =
            self.ask(&q, &wire::ResumeQueue { queue: queue.to_owned() }).await?;
        check(&q.operation, &subject(queue), reply.code, None)
    }

    /// Gives a fairness key no turns until it is resumed.
    pub async fn pause_key(&self, queue: &str, fairness_key: &str, reason: &str) -> Result<()> {
        let q = about(format!("pause key {fairness_key:?} of queue {queue:?}"), queue, false);
        let (queue_name, fairness_key) = (queue.to_owned(), fairness_key.to_owned());
        let body = wire::PauseKey { queue: queue_name, fairness_key, reason: reason.to_owned() };
        let reply: wire::PauseKeyResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)
    }

    /// Ends a key's pause.
    pub async fn resume_key(&self, queue: &str, fairness_key: &str) -> Result<()> {
        let q = about(format!("resume key {fairness_key:?} of queue {queue:?}"), queue, false);
        let body = wire::ResumeKey { queue: queue.to_owned(), fairness_key: fairness_key.to_owned() };
        let reply: wire::ResumeKeyResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, None)
    }

    /// Drops what is pending in a queue; what is leased stays. Returns how many were dropped.
    pub async fn purge(&self, queue: &str) -> Result<u64> {
        self.purge_some(queue, None).await
    }

    /// Drops what is pending of one fairness key.
    pub async fn purge_key(&self, queue: &str, fairness_key: &str) -> Result<u64> {
        self.purge_some(queue, Some(fairness_key.to_owned())).await
    }

    async fn purge_some(&self, queue: &str, fairness_key: Option<String>) -> Result<u64> {
        let q = about(format!("purge queue {queue:?}"), queue, false);
        let reply: wire::PurgeResult =
            self.ask(&q, &wire::Purge { queue: queue.to_owned(), fairness_key }).await?;
        check(&q.operation, &subject(queue), reply.code, None)?;
        Ok(reply.purged)
    }
}

pub(crate) fn about(operation: String, queue: &str, repeatable: bool) -> Query<'_> {
    Query { operation, queue, repeatable, wait: Duration::ZERO, settles: false }
}

pub(crate) fn subject(queue: &str) -> String {
    format!("queue {queue:?}")
}
