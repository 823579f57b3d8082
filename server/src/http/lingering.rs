//! Drains the rest of a request body that the handler did not read.
//!
//! Closing a connection with unread bytes resets it. The client may then see a broken pipe instead of the response, such
//! as 413. So the rest of a dropped body is read and discarded.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming};
use tokio::{runtime::Handle, time::timeout};

use super::work::Working;

const MAX_BYTES: usize = 8 * 1024 * 1024;
const MAX_DURATION: Duration = Duration::from_secs(5);

/// A request body. Dropping it before its end drains the rest.
pub(super) struct Lingering {
    /// `None` after the end.
    body: Option<Incoming>,
    /// The client waits for `100 Continue`. Reading the body would send it, so do not drain.
    expects_continue: bool,
    /// The request, which goes on until the body's end.
    working: Option<Working>,
}

impl Lingering {
    pub(super) fn new(body: Incoming, expects_continue: bool, working: &Working) -> Self {
        let working = (!body.is_end_stream()).then(|| working.part());
        Self { body: Some(body), expects_continue, working }
    }

    pub(super) fn is_refused(&self) -> bool {
        self.working.as_ref().is_some_and(Working::is_refused)
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.expects_continue = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            (self.body, self.working) = (None, None);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !self.expects_continue && !body.is_end_stream()) else {
            return;
        };
        // Without a runtime, the connection is shutting down too.
        if let Ok(runtime) = Handle::try_current() {
            let working = self.working.take();
            runtime.spawn(async move {
                let _ = timeout(MAX_DURATION, drain(body)).await;
                drop(working);
            });
        }
    }
}

async fn drain(mut body: Incoming) {
    let mut read = 0;
    while read < MAX_BYTES {
        match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, Buf::remaining),
            Some(Err(_)) | None => return,
        }
    }
}
