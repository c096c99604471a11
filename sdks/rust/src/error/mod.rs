//! Errors by cause: the broker's, generated from its catalogue, and the client's own.

mod causes;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use causes::meaning;
pub use causes::Error;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What an [`Error`] is about.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Details {
    /// What was asked, such as `enqueue` or `create queue "orders"`.
    pub operation: String,
    /// The broker's text, or the client's own.
    pub message: String,
    /// What the broker added, such as `retry_after_ms` or `leader_addr`.
    pub metadata: HashMap<String, String>,
    pub(crate) source: Option<Arc<dyn StdError + Send + Sync>>,
    /// Connecting again cannot help: a certificate that is not trusted, a port that speaks no TLS.
    pub(crate) lasting: bool,
    /// It failed after it was sent, and not by the broker's verdict.
    pub(crate) sent: bool,
}

impl Error {
    /// The broker's text, or the client's own.
    pub fn message(&self) -> &str {
        &self.details().message
    }

    /// What was asked, such as `enqueue` or `create queue "orders"`.
    pub fn operation(&self) -> &str {
        &self.details().operation
    }

    /// What the broker added, such as `retry_after_ms` or `leader_addr`.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.details().metadata
    }

    /// Whether the broker may have carried the call out although it failed. A repeated enqueue is then
    /// stored twice, unless it has an idempotency key.
    pub fn maybe_applied(&self) -> bool {
        self.details().sent || matches!(self, Error::ConnectionLost(_) | Error::Timeout(_))
    }

    /// How long the broker asks to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        self.metadata().get("retry_after_ms")?.parse().ok().map(Duration::from_millis)
    }

    /// The address of the node that leads the queue, if a `NotLeader` error named one.
    pub fn leader_addr(&self) -> Option<&str> {
        self.metadata().get("leader_addr").map(String::as_str).filter(|addr| !addr.is_empty())
    }

    /// A broker's refusal. Without the broker's own text, `subject` says what it met.
    pub(crate) fn refused(
        code: u8,
        message: &str,
        subject: &str,
        metadata: HashMap<String, String>,
    ) -> Error {
        let message = if message.is_empty() { text_for(code, subject) } else { message.to_owned() };
        Error::from_code(code, Details { message, metadata, ..Details::default() })
    }

    pub(crate) fn invalid(operation: &str, message: impl Into<String>) -> Error {
        Error::InvalidArgument(details(message.into())).during(operation)
    }

    pub(crate) fn closed(addr: &str) -> Error {
        Error::ended(format!("the client for {addr} is closed"))
    }

    pub(crate) fn ended(message: String) -> Error {
        Error::Closed(details(message))
    }

    pub(crate) fn lost(message: String) -> Error {
        Error::ConnectionLost(details(message))
    }

    pub(crate) fn timeout(operation: &str, message: String) -> Error {
        Error::Timeout(details(message)).during(operation)
    }

    pub(crate) fn connect_failed(message: String) -> Error {
        Error::ConnectFailed(details(message)).during("connect")
    }

    pub(crate) fn protocol(message: String) -> Error {
        Error::InvalidFrame(details(message))
    }

    pub(crate) fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.details_mut().source = Some(Arc::new(source));
        self
    }

    pub(crate) fn lasting(mut self) -> Error {
        self.details_mut().lasting = true;
        self
    }

    /// What failed may have been carried out all the same.
    pub(crate) fn sent(mut self) -> Error {
        self.details_mut().sent = true;
        self
    }

    /// The same error, about this call.
    pub(crate) fn during(mut self, operation: &str) -> Error {
        operation.clone_into(&mut self.details_mut().operation);
        self
    }

    /// Whether connecting again cannot help.
    pub(crate) fn permanent(&self) -> bool {
        matches!(self, Error::Unauthorized(_) | Error::Forbidden(_) | Error::UnsupportedVersion(_))
    }

    /// Whether the broker may accept the same request in a moment.
    pub(crate) fn transient(&self) -> bool {
        matches!(self, Error::ChannelFull(_) | Error::NodeNotReady(_) | Error::NotLeader(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation() {
            "" => f.write_str(self.message()),
            operation => write!(f, "{operation}: {}", self.message()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.details().source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}

fn details(message: String) -> Box<Details> {
    Box::new(Details { message, ..Details::default() })
}

fn text_for(code: u8, subject: &str) -> String {
    match code {
        _ if subject.is_empty() => meaning(code).to_owned(),
        1 => format!("{subject} does not exist"),
        3 => format!("{subject} already exists"),
        _ => format!("{subject}: {}", meaning(code)),
    }
}
