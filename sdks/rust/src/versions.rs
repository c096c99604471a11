//! Settings of a queue that works, and their versions.

use std::collections::HashMap;

use crate::admin::{about, subject};
use crate::client::FilaClient;
use crate::request::check;
use crate::wire;
use crate::Result;

/// A change of a queue's settings: all of it is made, or none.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueUpdate {
    settings: HashMap<String, String>,
    expected_version: u32,
    from_version: u32,
    note: String,
    unrehearsed: bool,
}

impl QueueUpdate {
    /// Changes a setting: `on_enqueue`, `on_failure`, `visibility_timeout_ms`, `max_attempts`,
    /// `hook_timeout_ms`, `hook_memory_limit_bytes`, `fail_mode`. An empty text is none, or the default.
    pub fn set(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.settings.insert(name.into(), value.to_string());
        self
    }

    /// Refuses, with [`Error::VersionConflict`](crate::Error), if the queue has another version by now.
    pub fn expected_version(mut self, version: u32) -> Self {
        self.expected_version = version;
        self
    }

    /// Brings that version back, with what is set on top.
    pub fn from_version(mut self, version: u32) -> Self {
        self.from_version = version;
        self
    }

    /// Says why, for the history.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Leaves out trying new hooks on messages that the present ones decided.
    pub fn unrehearsed(mut self) -> Self {
        self.unrehearsed = true;
        self
    }
}

/// What a queue is told to be, in one version of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueSettings {
    /// By name; empty where there is none.
    pub settings: HashMap<String, String>,
    /// Which version it is.
    pub version: u32,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who made it, if that is known.
    pub who: String,
    /// Why.
    pub note: String,
}

/// A line of a queue's history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueVersion {
    /// Which version it is.
    pub version: u32,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who made it, if that is known.
    pub who: String,
    /// Why.
    pub note: String,
    /// The settings that differ from the version before.
    pub changed: Vec<String>,
}

impl FilaClient {
    /// Changes a queue while it works, and returns the version that holds then.
    pub async fn update_queue(&self, queue: &str, update: QueueUpdate) -> Result<u32> {
        let q = about(format!("update queue {queue:?}"), queue, false);
        let body = wire::UpdateQueue {
            queue: queue.to_owned(),
            settings: update.settings.into_iter().collect(),
            expected_version: update.expected_version,
            from_version: update.from_version,
            note: update.note,
            unrehearsed: update.unrehearsed,
        };
        let reply: wire::UpdateQueueResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, reply.message.as_deref())?;
        Ok(reply.version)
    }

    /// Tells a queue's settings as they are, or as they were in an older version.
    pub async fn get_queue(&self, queue: &str, version: Option<u32>) -> Result<QueueSettings> {
        let q = about(format!("settings of queue {queue:?}"), queue, true);
        let body = wire::GetQueue { queue: queue.to_owned(), version: version.unwrap_or(0) };
        let reply: wire::GetQueueResult = self.ask(&q, &body).await?;
        check(&q.operation, &subject(queue), reply.code, reply.message.as_deref())?;
        Ok(QueueSettings {
            settings: reply.settings.into_iter().map(|one| (one.key, one.value)).collect(),
            version: reply.version,
            at_ms: reply.at_ms,
            who: reply.who,
            note: reply.note,
        })
    }

    /// Lists the versions of a queue's settings that are kept, the newest first.
    pub async fn list_versions(&self, queue: &str) -> Result<Vec<QueueVersion>> {
        let q = about(format!("versions of queue {queue:?}"), queue, true);
        let reply: wire::ListVersionsResult =
            self.ask(&q, &wire::ListVersions { queue: queue.to_owned() }).await?;
        check(&q.operation, &subject(queue), reply.code, reply.message.as_deref())?;
        let line = |one: wire::QueueVersion| QueueVersion {
            version: one.version,
            at_ms: one.at_ms,
            who: one.who,
            note: one.note,
            changed: one.changed,
        };
        Ok(reply.versions.into_iter().map(line).collect())
    }
}
