//! The tasks of a running server, and the order in which they end.
//!
//! 1. The server is told to stop (`stopping`): no request and no delivery begins, and those under way may end.
//! 2. The workers are cancelled, each at the point where it waits. The next start takes up the rest of their work.
//! 3. The tasks that requests began end by themselves, such as a refund whose client has hung up.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// All tasks that use the stores.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) tracker: TaskTracker,
    /// Cancelled when the server is told to stop.
    pub(super) stopping: CancellationToken,
    ending: CancellationToken,
}

impl Tasks {
    /// Has SIGINT and SIGTERM stop the server.
    pub(super) fn stop_on_signals(&self) -> std::io::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stopping = self.stopping.clone();
        self.start_worker(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!("shutting down: no new connections, requests under way may end");
            stopping.cancel();
        });
        Ok(())
    }

    /// Starts work that goes on until the server ends it.
    pub(super) fn start_worker(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(self.ending.clone().run_until_cancelled_owned(work));
    }

    /// Cancels the workers, and waits until all tasks have ended.
    pub(super) async fn end(&self) {
        self.ending.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use super::*;

    #[tokio::test]
    async fn workers_are_cancelled_and_what_requests_began_is_waited_for() {
        let tasks = Tasks::default();
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&has_ended);
        tasks.start_worker(pending());
        tasks.tracker.spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            ends.store(true, Ordering::SeqCst);
        });
        tasks.end().await;
        assert!(has_ended.load(Ordering::SeqCst));
    }
}
