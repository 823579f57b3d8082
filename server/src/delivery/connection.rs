//! A connection to an endpoint that remembers what went over it.
//!
//! An endpoint may close a connection that is kept open just as the next request is sent on it. Whether that was so, the
//! HTTP client does not say: it says that a request failed. So each connection remembers whether a request on it was
//! answered before, and whether anything came since the last request was written.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What went over one connection. The client gives it out with each answer and each failure.
#[derive(Clone, Default)]
pub(super) struct Traffic(Arc<Inner>);

#[derive(Default)]
struct Inner {
    has_answered: AtomicBool,
    /// Whether part of a request was written that is not answered yet.
    is_under_way: AtomicBool,
    read: AtomicU64,
    read_before_request: AtomicU64,
}

impl Traffic {
    /// A request was answered: the next one finds the connection used.
    pub(super) fn answered(&self) {
        self.0.has_answered.store(true, Ordering::Release);
        self.0.is_under_way.store(false, Ordering::Release);
    }

    /// Whether the last request went over a used connection and nothing came back.
    pub(super) fn was_stale(&self) -> bool {
        let read = self.0.read.load(Ordering::Acquire);
        self.0.has_answered.load(Ordering::Acquire) && read == self.0.read_before_request.load(Ordering::Acquire)
    }

    fn read(&self, bytes: usize) {
        self.0.read.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Part of a request is written. What came before the first part belongs to an earlier one, what comes after it does not.
    fn written(&self) {
        if !self.0.is_under_way.swap(true, Ordering::AcqRel) {
            self.0.read_before_request.store(self.0.read.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

/// One of so many open connections, for as long as this lives.
pub(super) struct Counted {
    all: Arc<AtomicUsize>,
    nth: usize,
}

impl Counted {
    pub(super) fn new(all: &Arc<AtomicUsize>) -> Self {
        Self { nth: all.fetch_add(1, Ordering::AcqRel) + 1, all: Arc::clone(all) }
    }

    /// How many were open with this one when it was opened.
    pub(super) fn nth(&self) -> usize {
        self.nth
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection, watched above TLS: what it counts belongs to requests and answers.
pub(super) struct Watched<S> {
    stream: S,
    traffic: Traffic,
    may_stay: bool,
    _counted: Counted,
}

impl<S> Watched<S> {
    /// `may_stay` is whether it is kept open for another request.
    pub(super) fn new(stream: S, counted: Counted, may_stay: bool) -> Self {
        Self { stream, traffic: Traffic::default(), may_stay, _counted: counted }
    }
}

impl<S: Connection> Connection for Watched<S> {
    fn connected(&self) -> Connected {
        let connected = self.stream.connected().extra(self.traffic.clone());
        if !self.may_stay {
            connected.poison();
        }
        connected
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.traffic.read(buf.filled().len() - before);
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.traffic.written();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.traffic.written();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
    async fn a_used_connection_is_stale_only_if_nothing_came_since_the_first_part_of_the_request_was_written() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(near, Counted::new(&Arc::default()), true);
        let (traffic, mut byte) = (near.traffic.clone(), [0]);
        near.write_all(b"a request").await.unwrap();
        assert!(!traffic.was_stale(), "it is new");
        far.write_all(b"ab").await.unwrap();
        near.read_exact(&mut byte).await.unwrap();
        traffic.answered();
        near.read_exact(&mut byte).await.unwrap();

        near.write_all(b"a head").await.unwrap();
        assert!(traffic.was_stale());
        far.write_all(b"c").await.unwrap();
        near.read_exact(&mut byte).await.unwrap();
        near.write_all(b"a body").await.unwrap();
        assert!(!traffic.was_stale(), "the answer had begun");
    }
}
