//! Reads on, for a moment, what a client still sends of a request that was refused.
//!
//! A connection that is closed while bytes of the client wait to be read is reset, and the client may lose the answer: it
//! sees a broken pipe instead of 413. So whoever drops a body before its end, the rest of it is read and thrown away.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{runtime::Handle, time::timeout};

/// How much of a body is read that nobody wants.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How long.
const AT_MOST: Duration = Duration::from_secs(5);

/// A request's body. When it is dropped before its end, the rest is read for a moment.
pub(super) struct Lingering {
    /// `None` after the end.
    body: Option<Incoming>,
    /// The client waits for `100 Continue`, which reading would send: it is told to send nothing instead.
    waits: bool,
}

impl Lingering {
    /// `waits`: the request has `Expect: 100-continue`.
    pub(super) fn new(body: Incoming, waits: bool) -> Self {
        Self { body: Some(body), waits }
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.waits = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !self.waits && !body.is_end_stream()) else { return };
        // Outside of the runtime it is being shut down, and the connection with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(AT_MOST, read_on(body)));
        }
    }
}

/// Ends with the body, at its bound, or when the connection breaks.
async fn read_on(mut body: Incoming) {
    let mut read = 0;
    while read < MAX_BYTES {
        match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, Buf::remaining),
            Some(Err(_)) | None => return,
        }
    }
}
