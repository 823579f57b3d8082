//! The work of one connection: requests, a response that its client still has to take, and bytes that were read.
//!
//! On shutdown, a connection without a request and a response only waits for the next request. It may have read part of the
//! head.

use std::{
    io::{self, IoSlice},
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{input::Input, pace::Pace, reply::ApiError};
use crate::process::budget::Budget;

pub(super) struct Work {
    requests: AtomicUsize,
    /// Whether the last write found the client's window full.
    is_blocked: AtomicBool,
    input: Input,
}

impl Work {
    /// The work of a new connection, whose input counts against this budget.
    pub(super) fn new(budget: Arc<Budget<IpAddr>>, peer: IpAddr) -> Arc<Self> {
        let (requests, is_blocked) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { requests, is_blocked, input: Input::new(budget, peer) })
    }

    /// Begins a request. It ends when all its parts are dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Working {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(self))
    }

    pub(super) fn is_at_hand(&self) -> bool {
        self.has_request() || self.is_blocked.load(Ordering::Relaxed)
    }

    fn has_request(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }
}

/// A request that is being handled, or whose body is read to its end.
pub(super) struct Working(Arc<Work>);

impl Working {
    pub(super) fn part(&self) -> Self {
        self.0.begin()
    }

    pub(super) fn is_refused(&self) -> bool {
        self.0.input.is_refused()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.input.request_ended();
        }
    }
}

/// The response to a request whose head has no room. Nobody parses the head, so it has no id.
static BUSY: LazyLock<String> = LazyLock::new(|| {
    let body = ApiError::busy().body();
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncache-control: no-store\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
});

/// A connection that notes reads and waiting writes, and closes if its client takes a response too slowly.
pub(super) struct Observed<S> {
    stream: S,
    work: Arc<Work>,
    pace: Pace,
    too_slow: Counter,
    /// Whether a refusal was sent. Then the rest of the client's bytes is dropped.
    is_refusing: bool,
}

impl<S> Observed<S> {
    /// `window` is the time in which the client must take a part of its response. `too_slow` counts clients that do not.
    pub(super) fn new(stream: S, work: Arc<Work>, window: Duration, too_slow: Counter) -> Self {
        Self { stream, work, pace: Pace::new(window), too_slow, is_refusing: false }
    }

    fn noted(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.work.is_blocked.store(written.is_pending(), Ordering::Relaxed);
        match written {
            Poll::Ready(Ok(bytes)) => self.pace.wrote(bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                ready!(self.pace.poll_too_slow(cx));
                self.too_slow.inc();
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")));
            }
        }
        written
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Observed<S> {
    /// Refuses a head for which there is no room, and ends the connection's input. The client may still be sending: closing
    /// now would reset the connection, and the client might not see the answer.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_refusing {
            self.is_refusing = true;
            // The client's window is empty, because no response waits. If it is not, the connection just ends.
            let _ = Pin::new(&mut self.stream).poll_write(cx, BUSY.as_bytes());
            let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        loop {
            let mut dropped = [0; 4096];
            let mut dropped = ReadBuf::new(&mut dropped);
            // The deadline for the head ends this loop.
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut dropped))?;
            if dropped.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_refusing {
            return self.poll_refuse(cx);
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let has_room = self.work.input.read(buf.filled().len() - before);
        // During a request, its handler refuses the body.
        if has_room || self.work.has_request() {
            return Poll::Ready(Ok(()));
        }
        buf.set_filled(before);
        self.poll_refuse(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.noted(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.noted(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes once everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pace.flushed();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::{Instant, sleep},
    };

    use super::*;
    use crate::metrics::BudgetMetrics;

    const WINDOW: Duration = Duration::from_secs(30);
    const KIB: usize = 1024;

    fn work(budget: &Arc<Budget<IpAddr>>) -> Arc<Work> {
        Work::new(Arc::clone(budget), Ipv4Addr::LOCALHOST.into())
    }

    fn budget(kib: i64) -> Arc<Budget<IpAddr>> {
        Budget::new(kib * 1024, BudgetMetrics::default())
    }

    #[tokio::test]
    async fn a_request_and_a_response_that_waits_are_work() {
        let (near, mut far) = duplex(4);
        let work = work(&budget(1));
        let mut near = Observed::new(near, work.clone(), WINDOW, Counter::default());
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

    /// Writes 100 KiB to a client that reads this many bytes a second. Returns whether it got all, and after how long.
    async fn write_to(bytes_per_second: usize) -> (bool, u64) {
        let (near, mut far) = duplex(KIB);
        let closed = Counter::default();
        let mut near = Observed::new(near, work(&budget(1)), WINDOW, closed.clone());
        let reading = tokio::spawn(async move {
            loop {
                sleep(Duration::from_secs(1)).await;
                if far.read_exact(&mut vec![0; bytes_per_second]).await.is_err() {
                    break;
                }
            }
        });
        let begun = Instant::now();
        let written = near.write_all(&[0; 100 * KIB]).await;
        reading.abort();
        assert_eq!(closed.get(), u64::from(written.is_err()));
        (written.is_ok(), begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_less_than_16_kib_in_30_seconds_is_cut_off() {
        assert_eq!(write_to(0).await, (false, 30));
        assert_eq!(write_to(500).await, (false, 30));
        assert!(write_to(600).await.0);
        assert!(write_to(10 * KIB).await.0);
    }

    #[tokio::test]
    async fn a_head_without_room_gets_503_and_a_body_without_room_reaches_its_handler() {
        for is_body in [false, true] {
            let (near, mut far) = duplex(64 * KIB);
            let work = work(&budget(16));
            let mut near = Observed::new(near, work.clone(), WINDOW, Counter::default());
            let working = is_body.then(|| work.begin());
            far.write_all(&[b'x'; 40 * KIB]).await.unwrap();
            let mut read = vec![0; 40 * KIB];
            let length = near.read(&mut read[..16 * KIB]).await.unwrap();
            assert_eq!(length, 16 * KIB);
            let reading = tokio::spawn(async move { near.read(&mut read).await.unwrap() });
            if let Some(working) = working {
                assert_eq!(reading.await.unwrap(), 24 * KIB);
                assert!(working.is_refused());
                drop(working);
                continue;
            }
            let mut answer = String::new();
            far.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
            assert!(answer.ends_with(r#""code":"too_many_in_progress"}"#), "{answer}");
            drop(far);
            assert_eq!(reading.await.unwrap(), 0);
        }
    }
}
