//! A subscription's heart-beat: what it was handed keeps its lease until it is settled. It ends with the
//! subscription, or when handlers that were at work then have settled what they had.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::client::FilaClient;
use crate::settle::EXTEND_MAX;
use crate::subscription::Subscription;
use crate::Error;

const BEATS: u32 = 3; // within the visibility timeout
const AGAIN: Duration = Duration::from_secs(1); // until the timeout is known

/// Ends with its stream.
pub(crate) struct Heartbeat(AbortHandle);

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Heartbeat {
    pub(crate) fn start(client: FilaClient, subscription: Arc<Subscription>) -> Heartbeat {
        Heartbeat(tokio::spawn(beat(client, subscription)).abort_handle())
    }
}

async fn beat(client: FilaClient, subscription: Arc<Subscription>) {
    let mut pause = None;
    while subscription.is_alive() {
        let ids = subscription.held();
        if pause.is_none() || !ids.is_empty() {
            // Without ids it tells how long a lease lasts.
            let asked: Vec<&[String]> =
                if ids.is_empty() { vec![&[]] } else { ids.chunks(EXTEND_MAX).collect() };
            for some in asked {
                match client.extend_some(&subscription.queue, some, None).await {
                    Ok((lasting, missing)) => {
                        subscription.forget(&missing);
                        pause = Some(lasting / BEATS);
                    }
                    // It will not be otherwise next time.
                    Err(error @ (Error::InvalidFrame(_) | Error::Forbidden(_) | Error::QueueNotFound(_))) => {
                        subscription.doom(client.core(), &error);
                        return;
                    }
                    Err(_) => break,
                }
            }
        }
        tokio::time::sleep(pause.unwrap_or(AGAIN)).await;
    }
}
