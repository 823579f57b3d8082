//! A connection to an endpoint that counts its traffic.
//!
//! An endpoint may close an idle connection just as the next request is sent on it, and the HTTP client reports only a
//! failed request. So each connection records whether it has carried a response before, and whether it received any byte
//! since the last request was written.

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

/// The traffic of one connection. The HTTP client attaches it to each response and error.
#[derive(Clone, Default)]
pub(super) struct Traffic(Arc<Inner>);

#[derive(Default)]
struct Inner {
    has_answered: AtomicBool,
    /// Whether a request was written, at least in part, that has no response yet.
    is_under_way: AtomicBool,
    read: AtomicU64,
    read_before_request: AtomicU64,
}

impl Traffic {
    /// Records a response.
    pub(super) fn answered(&self) {
        self.0.has_answered.store(true, Ordering::Release);
        self.0.is_under_way.store(false, Ordering::Release);
    }

    /// Whether the last request went over a used connection and got no byte back.
    pub(super) fn was_stale(&self) -> bool {
        let read = self.0.read.load(Ordering::Acquire);
        self.0.has_answered.load(Ordering::Acquire) && read == self.0.read_before_request.load(Ordering::Acquire)
    }

    fn read(&self, bytes: usize) {
        self.0.read.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Records that part of a request is written. Bytes read before its first part belong to an earlier response.
    fn written(&self) {
        if !self.0.is_under_way.swap(true, Ordering::AcqRel) {
            self.0.read_before_request.store(self.0.read.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

/// Counts one open connection until it is dropped.
pub(super) struct Counted {
    all: Arc<AtomicUsize>,
    nth: usize,
}

impl Counted {
    pub(super) fn new(all: &Arc<AtomicUsize>) -> Self {
        Self { nth: all.fetch_add(1, Ordering::AcqRel) + 1, all: Arc::clone(all) }
    }

    /// How many connections were open when this one opened, itself included.
    pub(super) fn nth(&self) -> usize {
        self.nth
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection that counts its traffic, above TLS: the bytes of requests and responses only.
pub(super) struct Watched<S> {
    stream: S,
    traffic: Traffic,
    is_reusable: bool,
    _counted: Counted,
}

impl<S> Watched<S> {
    /// `is_reusable`: whether it stays open for another request.
    pub(super) fn new(stream: S, counted: Counted, is_reusable: bool) -> Self {
        Self { stream, traffic: Traffic::default(), is_reusable, _counted: counted }
    }
}

impl<S: Connection> Connection for Watched<S> {
    fn connected(&self) -> Connected {
        let connected = self.stream.connected().extra(self.traffic.clone());
        if !self.is_reusable {
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
    async fn a_used_connection_is_stale_if_it_received_nothing_since_the_request_was_first_written() {
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
        assert!(!traffic.was_stale(), "the response has begun");
    }
}
