//! W3C trace context in and out, without a dependency on a tracing system.
//!
//! Out: messages get a `traceparent` header from [`scope`] or from the provider in
//! [`ConnectOptions::with_traceparent_provider`](crate::ConnectOptions::with_traceparent_provider), which
//! asks your tracing system for the present span. In: [`Message::traceparent`](crate::Message::traceparent).

use std::future::Future;

/// The header that carries a W3C trace context.
pub const TRACEPARENT_HEADER: &str = "traceparent";

tokio::task_local! {
    static TRACEPARENT: String;
}

/// Runs a future under which messages are enqueued with this `traceparent`, unless they have one.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// fila_client::trace::scope(traceparent, async {
///     assert_eq!(fila_client::trace::current().as_deref(), Some(traceparent));
///     // client.enqueue(…).await
/// })
/// .await;
/// # });
/// ```
pub async fn scope<F: Future>(traceparent: impl Into<String>, future: F) -> F::Output {
    TRACEPARENT.scope(traceparent.into(), future).await
}

/// The `traceparent` of the [`scope`] this task is in.
pub fn current() -> Option<String> {
    TRACEPARENT.try_with(Clone::clone).ok()
}
