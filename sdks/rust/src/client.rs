//! The client: connecting and ending.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::connection::connect;
use crate::core::{Config, Core};
use crate::event::Event;
use crate::link::Link;
use crate::options::ConnectOptions;
use crate::{Error, Result};

/// How much longer than the broker's own wait its answer may take.
const WAIT_MARGIN: Duration = Duration::from_secs(10);

/// A connection to a broker. Clones share it: cloning is cheap, and a clone may go to another task or
/// thread. When the last clone and the last [`ConsumeStream`](crate::ConsumeStream) and
/// [`Message`](crate::Message) are dropped, the connection is closed.
///
/// Dropping the future of a call cancels it: what was not sent yet is not sent.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> fila_client::Result<()> {
/// use fila_client::FilaClient;
///
/// let client = FilaClient::connect("localhost:5555").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FilaClient {
    handle: Arc<Handle>,
    call_timeout: Option<Duration>,
    /// The deadline was given with `with_timeout`.
    own_timeout: bool,
}

/// Closes the client when its last owner is gone.
struct Handle {
    core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.start_closing();
    }
}

impl FilaClient {
    /// Connects to a broker: `host:port`, `host` (port 5555) or `[ipv6]:port`; a leading `https://`
    /// switches TLS on. It fails at once if the broker cannot be reached, does not speak the protocol or
    /// refuses the key; only later connections are retried.
    pub async fn connect(addr: impl Into<String>) -> Result<FilaClient> {
        FilaClient::connect_with_options(ConnectOptions::new(addr)).await
    }

    /// Connects with options.
    pub async fn connect_with_options(options: ConnectOptions) -> Result<FilaClient> {
        let mut options = options;
        let invalid = |text: String| Error::invalid("connect", text);
        let addr = Address::parse(&options.addr).map_err(invalid)?;
        options.tls.enabled |= addr.encrypted;
        options.check().map_err(invalid)?;
        let tls = crate::tls::connector(&options.tls).map_err(invalid)?;
        let call_timeout = options.call_timeout;
        let config = Config { options, tls };
        let connection = connect(&addr, &config).await?;
        let link = Link::new(&config.options, addr, true);
        link.attach(connection.frame_max); // before anybody can call or close
        let core = Arc::new(Core::new(config));
        core.set_seed(link.clone());
        tokio::spawn(link.run(core.clone(), Some(connection)));
        Ok(FilaClient { handle: Arc::new(Handle { core }), call_timeout, own_timeout: false })
    }

    /// The same client with another deadline for its calls.
    ///
    /// ```no_run
    /// # async fn example(client: fila_client::FilaClient) -> fila_client::Result<()> {
    /// use std::time::Duration;
    ///
    /// let stats = client.with_timeout(Duration::from_secs(2)).get_stats("orders").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> FilaClient {
        FilaClient { handle: self.handle.clone(), call_timeout: Some(timeout), own_timeout: true }
    }

    /// Ends the client at once: it says goodbye, which hands every leased message back without a counted
    /// attempt, and fails what is under way with [`Error::Closed`]. Streams end without an error. See
    /// [`drain`](FilaClient::drain) for an end that loses nothing. May be called more than once.
    pub async fn close(&self) {
        let core = self.core();
        let first = core.start_closing();
        for link in core.links() {
            link.join().await;
        }
        if first && !core.seed().ended_by_itself() {
            core.announce(Event::Closed { addr: core.seed().name.clone(), error: None });
        }
    }

    /// Ends the client in order: streams end and hand back what nobody has read, handlers of
    /// [`process`](FilaClient::process) and calls under way finish; then it closes. New calls other than
    /// settling are refused with [`Error::Closed`]. When that takes longer than `timeout`, it closes and
    /// fails with [`Error::Timeout`].
    pub async fn drain(&self, timeout: Duration) -> Result<()> {
        let core = self.core();
        core.start_draining();
        let idle = tokio::time::timeout(timeout, core.idle()).await;
        self.close().await;
        idle.map_err(|_| Error::timeout("drain", format!("not everything was answered within {timeout:?}")))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// Waits for a call under its deadline.
    pub(crate) async fn bounded<F: Future>(
        &self,
        operation: &str,
        queue: &str,
        future: F,
    ) -> Result<F::Output> {
        self.bounded_after(Duration::ZERO, operation, queue, future).await
    }

    /// Waits for a call that the broker answers after a wait of its own. A deadline the user gave for this
    /// call stands.
    pub(crate) async fn bounded_after<F: Future>(
        &self,
        wait: Duration,
        operation: &str,
        queue: &str,
        future: F,
    ) -> Result<F::Output> {
        let Some(mut timeout) = self.call_timeout else { return Ok(future.await) };
        if !wait.is_zero() && !self.own_timeout {
            timeout = timeout.max(wait.saturating_add(WAIT_MARGIN));
        }
        match tokio::time::timeout(timeout, future).await {
            Ok(output) => Ok(output),
            Err(_) => {
                let core = self.core();
                let link = core.route(queue);
                let full = if core.room.available_permits() == 0 {
                    format!("; {} bytes are under way without an answer", core.room_total)
                } else {
                    String::new()
                };
                let text =
                    format!("no answer from {} within {timeout:?}{full}{}", link.name, link.describe());
                Err(Error::timeout(operation, text))
            }
        }
    }
}

impl fmt::Debug for FilaClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilaClient").field("addr", &self.core().seed().name).finish_non_exhaustive()
    }
}
