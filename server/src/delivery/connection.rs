//! A connection to an endpoint that tells whether the endpoint has closed it as idle.
//!
//! An endpoint may close an idle connection just as the next request is sent on it. The HTTP client reports only a failed
//! request. So each connection records whether it received any byte since the last request was written.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::StatusCode;
use hyper_util::client::legacy::connect::{Connected, Connection};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
};

/// The state of one connection. The HTTP client attaches it to each response and error.
#[derive(Clone, Default)]
pub(super) struct Traffic(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    state: State,
    /// The first bytes of the last response.
    begin: Vec<u8>,
}

/// The length of a status line up to its status, such as `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// The connection is new, or bytes have arrived since the last request was written.
    #[default]
    Active,
    /// The last request has its response.
    Idle,
    /// At least a part of a request was written on an idle connection, and no byte has arrived since.
    Unanswered,
}

impl Traffic {
    pub(super) fn answered(&self) {
        self.0.lock().state = State::Idle;
    }

    /// Whether the last request went over a used connection and got no byte back.
    pub(super) fn was_stale(&self) -> bool {
        self.0.lock().state == State::Unanswered
    }

    /// The final status that the last response began with.
    pub(super) fn status(&self) -> Option<StatusCode> {
        let seen = self.0.lock();
        let code = seen.begin.strip_prefix(b"HTTP/1.1 ").or_else(|| seen.begin.strip_prefix(b"HTTP/1.0 "))?;
        StatusCode::from_bytes(code).ok().filter(|status| !status.is_informational())
    }

    fn wrote(&self) {
        let mut seen = self.0.lock();
        if seen.state == State::Idle {
            seen.state = State::Unanswered;
            seen.begin.clear();
        }
    }

    fn read(&self, bytes: &[u8]) {
        let mut seen = self.0.lock();
        if seen.state == State::Unanswered && !bytes.is_empty() {
            seen.state = State::Active;
        }
        let missing = STATUS_BYTES.saturating_sub(seen.begin.len()).min(bytes.len());
        seen.begin.extend_from_slice(&bytes[..missing]);
    }
}

/// A connection that records its traffic above TLS: only the bytes of requests and responses.
pub(super) struct Watched<S> {
    stream: S,
    traffic: Traffic,
    /// Held while the connection may stay open for another request. Without it, the connection serves one request.
    reusable: Option<OwnedSemaphorePermit>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, reusable: Option<OwnedSemaphorePermit>) -> Self {
        Self { stream, traffic: Traffic::default(), reusable }
    }
}

impl<S: Connection> Connection for Watched<S> {
    fn connected(&self) -> Connected {
        let connected = self.stream.connected().extra(self.traffic.clone());
        if self.reusable.is_none() {
            connected.poison();
        }
        connected
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.traffic.read(&buf.filled()[before..]);
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.traffic.wrote();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.traffic.wrote();
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter, duplex};

    use super::*;

    #[tokio::test]
    async fn a_used_connection_is_stale_until_bytes_of_a_response_arrive() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(near, None);
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

    #[tokio::test]
    async fn a_connection_that_ends_without_a_byte_stays_stale() {
        let (near, far) = duplex(64);
        let mut near = Watched::new(near, None);
        let traffic = near.traffic.clone();
        traffic.answered();
        near.write_all(b"a request").await.unwrap();
        drop(far);
        assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(traffic.was_stale());
    }

    #[tokio::test]
    async fn parts_written_by_one_call_count_as_a_request_and_all_arrive() {
        let (near, mut far) = duplex(64);
        let mut near = Watched::new(BufWriter::new(near), None);
        let traffic = near.traffic.clone();
        traffic.answered();
        assert!(near.is_write_vectored());
        let written = near.write_vectored(&[IoSlice::new(b"a head, "), IoSlice::new(b"a body")]).await.unwrap();
        assert_eq!(written, 14);
        assert!(traffic.was_stale());
        near.flush().await.unwrap();
        let mut read = [0; 14];
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"a head, a body");
        near.shutdown().await.unwrap();
        assert_eq!(far.read(&mut read).await.unwrap(), 0, "it is closed");
    }
}
