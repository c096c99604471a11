//! Waits for the first of two futures, without a macro.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;

/// `Ok` if the first future ends first, `Err` if the second does. The other is dropped.
pub(crate) async fn race<A: Future, B: Future>(a: A, b: B) -> Result<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| {
        if let Poll::Ready(done) = a.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        b.as_mut().poll(context).map(Err)
    })
    .await
}
