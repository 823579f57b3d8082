//! The sandbox of a public server: its own service on a disposable store, with its own dispatcher and workers.
//!
//! Strangers use it. So it has its own few delivery permits, and neither it nor a live payment waits for the other. When an
//! empty store replaces the present one, a new service begins on it. The old service finishes its work in flight.

use std::{mem, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    disposable::{Disposable, Present},
    tasks::Tasks,
    workers,
};
use crate::{
    cli::{CommandError, ServeArgs},
    delivery::{Dispatcher, LONGEST_ATTEMPT, Sender},
    metrics::Metrics,
    process::descriptors::Shares,
    service::{self, Claims, Service},
};

/// What the services on successive stores share.
pub(super) struct Sandbox {
    lasting: Arc<Service>,
    sender: Arc<Sender>,
    /// Maximum deliveries in flight.
    permits: usize,
    claims: Arc<Claims>,
    metrics: Metrics,
    disposable: Disposable,
    /// Tells requests which service is the present one.
    present: watch::Sender<Option<service::Sandbox>>,
}

struct Running {
    store: Present,
    service: Arc<Service>,
    dispatcher: Arc<Dispatcher>,
    workers: JoinSet<()>,
}

impl Sandbox {
    /// Starts the sandbox on a store. It ends with the server's tasks.
    pub(super) fn start(
        args: &ServeArgs,
        shares: Shares,
        (disposable, store): (Disposable, Present),
        lasting: Arc<Service>,
        metrics: &Metrics,
        present: watch::Sender<Option<service::Sandbox>>,
        tasks: &Tasks,
    ) -> Result<(), CommandError> {
        let ambient = Arc::clone(&lasting.ambient);
        let sandbox = Self {
            sender: Arc::new(Sender::new(ambient, lasting.settings.targets.clone(), &args.header_word, shares)?),
            permits: shares.deliveries,
            claims: Arc::new(Claims::new(&metrics.outside_effects)),
            metrics: metrics.clone(),
            disposable,
            present,
            lasting,
        };
        let running = sandbox.begin(store);
        let drain = Duration::from_secs(args.drain.into()).min(LONGEST_ATTEMPT);
        tasks.tracker.spawn(sandbox.run(running, tasks.stopping.clone(), tasks.ending.clone(), drain));
        Ok(())
    }

    /// Replaces the store whenever it is due. Ends as the server does: no delivery starts after `stopping`, deliveries in
    /// flight get `drain`, and requests use the store until `ending`.
    async fn run(self, mut running: Running, stopping: CancellationToken, ending: CancellationToken, drain: Duration) {
        loop {
            let next = tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                next = self.disposable.next(&running.store) => next,
            };
            let past = mem::replace(&mut running, self.begin(next));
            tokio::spawn(past.end(Present::remove));
        }
        let _ = timeout(drain, running.dispatcher.close()).await;
        ending.cancelled().await;
        self.present.send_replace(None);
        running.end(Present::close).await;
    }

    fn begin(&self, store: Present) -> Running {
        let Self { lasting, sender, permits, claims, metrics, .. } = self;
        let service = Arc::new(lasting.of_sandbox(store.store(), Arc::clone(sender), Arc::clone(claims)));
        let (ambient, deliveries) = (Arc::clone(&service.ambient), metrics.deliveries.clone());
        let dispatcher = Dispatcher::new(store.store(), ambient, Arc::clone(sender), deliveries, *permits);
        let workers = workers::of_sandbox(&service, &dispatcher, metrics).into_iter().collect();
        let developer = self.disposable.developer().clone();
        self.present.send_replace(Some(service::Sandbox { developer, service: Arc::clone(&service) }));
        Running { store, service, dispatcher, workers }
    }
}

impl Running {
    /// Ends the service's workers, then its deliveries in flight, and then its store.
    async fn end(mut self, store: fn(Present)) {
        self.workers.shutdown().await;
        self.dispatcher.close().await;
        self.service.store_logged_requests().await;
        let Self { store: present, service, dispatcher, .. } = self;
        drop((service, dispatcher));
        if let Err(error) = spawn_blocking(move || store(present)).await {
            tracing::error!(%error, "a store of the sandbox was not closed");
        }
    }
}
