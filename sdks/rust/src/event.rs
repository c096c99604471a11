//! What happens to a client's connections.

use std::time::Duration;

use crate::Error;

/// Something that happened to a client's connections; see
/// [`ConnectOptions::with_event_handler`](crate::ConnectOptions::with_event_handler).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A handshake was accepted.
    #[non_exhaustive]
    Connected {
        /// The node.
        addr: String,
    },
    /// A connection was lost.
    #[non_exhaustive]
    Disconnected {
        /// The node.
        addr: String,
        /// Why.
        error: Error,
    },
    /// The next attempt to connect comes after a pause.
    #[non_exhaustive]
    Reconnecting {
        /// The node.
        addr: String,
        /// How long the client waits.
        pause: Duration,
        /// Why there is no connection.
        error: Error,
    },
    /// Another node leads a queue.
    #[non_exhaustive]
    Redirected {
        /// The leader.
        addr: String,
    },
    /// The client has ended.
    #[non_exhaustive]
    Closed {
        /// The node the client was made for.
        addr: String,
        /// Why, if nobody closed it.
        error: Option<Error>,
    },
}

impl Event {
    /// The kind of event in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Connected { .. } => "connected",
            Event::Disconnected { .. } => "disconnected",
            Event::Reconnecting { .. } => "reconnecting",
            Event::Redirected { .. } => "redirected",
            Event::Closed { .. } => "closed",
        }
    }
}
