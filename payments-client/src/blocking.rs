//! Blocking calls, for programs without `async`.

use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};

use crate::{Result, error::Kind};

/// The program's runtime. It is never dropped, because dropping a runtime inside another one panics.
static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Runs a future on the runtime and waits for it with a channel, because `block_on` panics inside another runtime.
pub(crate) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("payments-client").enable_all().build().map_err(|error| error.to_string())
    };
    let runtime = RUNTIME.get_or_init(start).as_ref().map_err(|error| Kind::Request(error.clone()))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(|_| Kind::Lost(None).into())
}
