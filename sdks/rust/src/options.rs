//! How a client is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::event::Event;

/// How calls made at the same time share frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BatchMode {
    /// A lone call leaves at once. While an answer is on its way, further calls are collected and leave
    /// together when it comes, or when there are a hundred of them. No call waits for company.
    #[default]
    Auto,
    /// Enqueues are collected for this long, or until a batch is full: fewer, larger frames, and that
    /// much more latency. Acks never linger.
    Linger(Duration),
    /// One frame for every call.
    Disabled,
}

type EventHandler = Arc<dyn Fn(Event) + Send + Sync>;
type TraceparentProvider = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Where a client connects, and how.
///
/// ```
/// use std::time::Duration;
/// use fila_client::{BatchMode, ConnectOptions};
///
/// let options = ConnectOptions::new("localhost:5555")
///     .with_api_key("secret")
///     .with_call_timeout(Duration::from_secs(5))
///     .with_batch_mode(BatchMode::Linger(Duration::from_millis(5)));
/// ```
#[derive(Clone)]
pub struct ConnectOptions {
    pub(crate) addr: String,
    pub(crate) api_key: Option<String>,
    pub(crate) tls: crate::tls::TlsOptions,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) batch: BatchMode,
    pub(crate) batch_messages: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) in_flight_bytes: usize,
    pub(crate) reconnect: bool,
    pub(crate) pause_min: Duration,
    pub(crate) pause_max: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) keep_alive_timeout: Duration,
    pub(crate) on_event: Option<EventHandler>,
    pub(crate) traceparent: Option<TraceparentProvider>,
}

impl ConnectOptions {
    /// Options for a broker: `host:port`, `host` (port 5555) or `[ipv6]:port`. A leading `https://`
    /// switches TLS on.
    pub fn new(addr: impl Into<String>) -> ConnectOptions {
        ConnectOptions {
            addr: addr.into(),
            api_key: None,
            tls: crate::tls::TlsOptions::default(),
            call_timeout: Some(Duration::from_secs(30)),
            connect_timeout: Duration::from_secs(10),
            batch: BatchMode::Auto,
            batch_messages: 1000,
            batch_bytes: 1 << 20,
            in_flight_bytes: 64 << 20,
            reconnect: true,
            pause_min: Duration::from_millis(50),
            pause_max: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            keep_alive_timeout: Duration::from_secs(10),
            on_event: None,
            traceparent: None,
        }
    }

    /// Sends a key with the handshake.
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Encrypts the connection and verifies the broker against the system's certificates (feature
    /// `rustls-native-roots`) or Mozilla's (`rustls-webpki-roots`).
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self) -> Self {
        self.tls.enabled = true;
        self
    }

    /// Encrypts the connection and trusts the certificates in this PEM text alone.
    #[cfg(feature = "rustls")]
    pub fn with_tls_ca_cert(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.tls.enabled = true;
        self.tls.ca = Some(pem.as_ref().to_vec());
        self
    }

    /// Encrypts the connection and shows this certificate, both parts as PEM text.
    #[cfg(feature = "rustls")]
    pub fn with_tls_identity(mut self, cert_pem: impl AsRef<[u8]>, key_pem: impl AsRef<[u8]>) -> Self {
        self.tls.enabled = true;
        self.tls.identity = Some((cert_pem.as_ref().to_vec(), key_pem.as_ref().to_vec()));
        self
    }

    /// Encrypts the connection with a configuration of your own; the client sets the protocol's name
    /// (ALPN). Certificates given otherwise are then ignored. The crate's [`rustls`](crate::rustls) has the
    /// right version.
    #[cfg(feature = "rustls")]
    pub fn with_tls_config(mut self, config: crate::rustls::ClientConfig) -> Self {
        self.tls.enabled = true;
        self.tls.config = Some(config);
        self
    }

    /// Bounds every call, waiting for room and for a connection included; 30 s by default.
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// Lets calls wait for ever; bound them with `tokio::time::timeout`.
    pub fn without_call_timeout(mut self) -> Self {
        self.call_timeout = None;
        self
    }

    /// Bounds opening a connection, handshake included; 10 s by default.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How calls made at the same time share frames.
    pub fn with_batch_mode(mut self, mode: BatchMode) -> Self {
        self.batch = mode;
        self
    }

    /// Bounds one frame: 1,000 messages and 1 MiB by default. A larger message goes alone.
    pub fn with_batch_limits(mut self, messages: usize, bytes: usize) -> Self {
        (self.batch_messages, self.batch_bytes) = (messages, bytes);
        self
    }

    /// Bounds what has been enqueued and not been answered, 64 MiB by default; further enqueues wait.
    /// A message larger than the bound goes alone.
    pub fn with_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight_bytes = bytes;
        self
    }

    /// The pauses between attempts to reconnect: they double from the first to the second, each
    /// shortened at random by up to half. 50 ms to 5 s by default.
    pub fn with_reconnect_pause(mut self, lowest: Duration, highest: Duration) -> Self {
        (self.pause_min, self.pause_max) = (lowest, highest.max(lowest));
        self
    }

    /// Ends the client when its connection is lost.
    pub fn without_reconnect(mut self) -> Self {
        self.reconnect = false;
        self
    }

    /// Sends a ping after this much silence and gives the connection up when nothing comes back within
    /// the timeout; 15 s and 10 s by default.
    pub fn with_keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        (self.keep_alive, self.keep_alive_timeout) = (interval, timeout);
        self
    }

    /// Calls `handler` with every connection event, in order, on the client's own task: it must not
    /// block.
    pub fn with_event_handler(mut self, handler: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(handler));
        self
    }

    /// Asks `provider` for the present trace context at every enqueue. It is sent as the `traceparent`
    /// header, unless the message has one.
    pub fn with_traceparent_provider(
        mut self,
        provider: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.traceparent = Some(Arc::new(provider));
        self
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let zero = |what: &str| Err(format!("{what} must be more than 0"));
        if let Some(key) = &self.api_key {
            crate::wire::check_string("the API key", key)?;
        }
        match self {
            _ if self.connect_timeout.is_zero() => zero("the connect timeout"),
            _ if self.call_timeout.is_some_and(|d| d.is_zero()) => zero("the call timeout"),
            _ if self.batch_messages == 0 || self.batch_bytes == 0 => zero("a batch limit"),
            _ if self.in_flight_bytes == 0 => zero("the bound on bytes in flight"),
            _ if self.pause_min.is_zero() => zero("the reconnect pause"),
            _ if self.keep_alive.is_zero() || self.keep_alive_timeout.is_zero() => {
                zero("the keep-alive time")
            }
            _ => Ok(()),
        }
    }

    /// Doubles the shortest pause with every attempt, up to the longest.
    pub(crate) fn pause_after(&self, attempts: u32) -> Duration {
        self.pause_min.saturating_mul(1 << attempts.min(20)).min(self.pause_max)
    }
}

impl From<&str> for ConnectOptions {
    fn from(addr: &str) -> Self {
        ConnectOptions::new(addr)
    }
}

impl From<String> for ConnectOptions {
    fn from(addr: String) -> Self {
        ConnectOptions::new(addr)
    }
}

impl fmt::Debug for ConnectOptions {
    /// Without the key: options end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("addr", &self.addr)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("tls", &self.tls.enabled)
            .field("call_timeout", &self.call_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("batch", &self.batch)
            .field("in_flight_bytes", &self.in_flight_bytes)
            .field("reconnect", &self.reconnect)
            .finish_non_exhaustive()
    }
}
