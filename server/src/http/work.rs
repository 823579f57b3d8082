//! Whether a connection has work at hand: a request that is being handled, or a response that its client still has to take.
//!
//! On shutdown, a connection with neither only waits for a request, of which a part of the head may be there.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The work of one connection.
#[derive(Clone, Default)]
pub(super) struct Work(Arc<State>);

#[derive(Default)]
struct State {
    requests: AtomicUsize,
    /// The last write found the client's window full.
    is_blocked: AtomicBool,
}

impl Work {
    /// Begins a request, which ends when the returned value is dropped.
    pub(super) fn begin(&self) -> Working {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }

    pub(super) fn is_at_hand(&self) -> bool {
        self.0.requests.load(Ordering::Relaxed) > 0 || self.0.is_blocked.load(Ordering::Relaxed)
    }
}

/// A request that is being handled.
pub(super) struct Working(Work);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that notes whether a write waits.
pub(super) struct Observed<S> {
    stream: S,
    work: Work,
}

impl<S> Observed<S> {
    pub(super) fn new(stream: S, work: Work) -> Self {
        Self { stream, work }
    }

    fn noted<T>(&self, written: Poll<T>) -> Poll<T> {
        self.work.0.is_blocked.store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_request_and_a_response_that_waits_are_work() {
        let (near, mut far) = duplex(4);
        let work = Work::default();
        let mut near = Observed::new(near, work.clone());
        assert!(!work.is_at_hand());
        let (first, second) = (work.begin(), work.begin());
        drop(first);
        assert!(work.is_at_hand());
        drop(second);
        assert!(!work.is_at_hand());

        near.write_all(b"four").await.unwrap();
        assert!(!work.is_at_hand());
        let mut writing = std::pin::pin!(near.write_all(b"more"));
        assert!(futures_util::poll!(&mut writing).is_pending() && work.is_at_hand());
        far.read_exact(&mut [0; 4]).await.unwrap();
        writing.await.unwrap();
        assert!(!work.is_at_hand());
    }
}
