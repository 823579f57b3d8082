//! The tasks of a running server, and their shutdown order.
//!
//! 1. `stopping` is cancelled: no request and no delivery starts, but those in flight may finish.
//! 2. `ending` is cancelled: the workers end, each at its next await point. The next start resumes their work.
//! 3. Tasks that requests spawned run to their end, such as a refund whose client has disconnected.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[derive(Default)]
pub(super) struct Tasks {
    pub(super) tracker: TaskTracker,
    /// Cancelled on shutdown.
    pub(super) stopping: CancellationToken,
    /// Cancelled when the requests in flight have finished.
    pub(super) ending: CancellationToken,
}

impl Tasks {
    pub(super) fn stop_on_signals(&self) -> std::io::Result<()> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stopping = self.stopping.clone();
        self.start_worker(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!("shutting down: no new connections; requests in flight may finish");
            stopping.cancel();
        });
        Ok(())
    }

    /// Spawns a worker that runs until [`end`](Self::end).
    pub(super) fn start_worker(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(self.ending.clone().run_until_cancelled_owned(work));
    }

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
    async fn the_end_cancels_workers_and_waits_for_tasks_of_requests() {
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
