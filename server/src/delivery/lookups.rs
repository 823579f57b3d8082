//! Limits the concurrent DNS lookups.
//!
//! The system's resolver blocks a thread until the name's servers respond, even after the delivery attempt has timed out.
//! Those threads are few and serve the whole process. So all lookups together get some of them, and one developer's lookups
//! get some of those: names that hang delay no other developer.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use payments_core::DeveloperId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::send_error::{Exhausted, SendError};

const MAX_LOOKUPS: usize = 64;
const PER_DEVELOPER: usize = 16;
/// How long a delivery attempt waits for its lookup to start.
const MAX_WAIT: Duration = Duration::from_secs(1);

tokio::task_local! {
    pub(super) static ATTEMPT: DeliveryAttempt;
}

/// A delivery attempt: its developer, and when its time started.
#[derive(Clone)]
pub(super) struct DeliveryAttempt {
    developer: DeveloperId,
    started_at: Arc<Mutex<Instant>>,
}

impl DeliveryAttempt {
    pub(super) fn new(developer: DeveloperId) -> Self {
        Self { developer, started_at: Arc::new(Mutex::new(Instant::now())) }
    }

    /// When the attempt started, moved forward by its waits for a lookup: these waits do not count as the endpoint's time.
    pub(super) fn started_at(&self) -> Instant {
        *self.started_at.lock()
    }

    pub(super) fn exclude(&self, time: Duration) {
        *self.started_at.lock() += time;
    }
}

type Lookup = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up, within the limits.
#[derive(Clone)]
pub(super) struct Lookups {
    all: Arc<Semaphore>,
    per_developer: Arc<Mutex<HashMap<Option<DeveloperId>, Arc<Semaphore>>>>,
    system: Arc<Lookup>,
}

impl Lookups {
    pub(super) fn system() -> Self {
        Self::with_resolver(|name| Ok((name, 0).to_socket_addrs()?.collect()))
    }

    pub(super) fn with_resolver(system: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_LOOKUPS)), per_developer: Arc::default(), system: Arc::new(system) }
    }

    #[cfg(test)]
    pub(super) fn developers(&self) -> Vec<Option<DeveloperId>> {
        self.per_developer.lock().keys().cloned().collect()
    }

    /// Looks up the addresses of a name, for the delivery attempt of the current task.
    pub(super) fn addresses(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Vec<SocketAddr>, SendError>> + Send + use<> {
        let (lookups, attempt) = (self.clone(), ATTEMPT.try_with(Clone::clone).ok());
        async move {
            let started = Instant::now();
            let developer = attempt.as_ref().map(|attempt| attempt.developer.clone());
            let permits = timeout(MAX_WAIT, lookups.permits(developer)).await.ok().flatten();
            let permits = permits.ok_or(Exhausted("DNS lookup capacity"))?;
            if let Some(attempt) = attempt {
                attempt.exclude(started.elapsed());
            }
            let found = spawn_blocking(move || {
                let found = (lookups.system)(&name);
                // Only now is the thread free. The attempt may have timed out long before.
                drop(permits);
                found
            });
            found
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)))
                .map_err(|error| SendError::of_lookup(&error))
        }
    }

    async fn permits(&self, developer: Option<DeveloperId>) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let per_developer = self.per_developer(developer).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some((per_developer, of_all))
    }

    /// A developer's permits. They are dropped once nobody holds or awaits one.
    fn per_developer(&self, developer: Option<DeveloperId>) -> Arc<Semaphore> {
        let mut per_developer = self.per_developer.lock();
        per_developer.retain(|_, held| Arc::strong_count(held) > 1);
        Arc::clone(per_developer.entry(developer).or_insert_with(|| Arc::new(Semaphore::new(PER_DEVELOPER))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use futures_util::future::join_all;
    use tower_service::Service as _;

    use super::{
        super::{TargetPolicy, connector::Connector},
        *,
    };

    async fn lookup(lookups: &Lookups, developer: &str, name: &str) -> Result<Vec<SocketAddr>, SendError> {
        let attempt = DeliveryAttempt::new(developer.parse().unwrap());
        ATTEMPT.scope(attempt, async { lookups.addresses(name.to_owned()).await }).await
    }

    #[tokio::test]
    async fn a_developers_hanging_lookups_use_few_threads_and_delay_no_other_developer() {
        let (go_on, hanging) = mpsc::channel::<()>();
        let (hanging, begun) = (Mutex::new(hanging), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&begun);
        let lookups = Lookups::with_resolver(move |name| {
            if name.starts_with("hangs") {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = hanging.lock().recv();
            }
            Ok(vec![([192, 0, 2, 1], 0).into()])
        });
        // The attempts time out; their threads stay blocked.
        let hung = (0..100).map(|number| {
            let lookups = &lookups;
            async move { timeout(2 * MAX_WAIT, lookup(lookups, "dev_1", &format!("hangs{number}.example"))).await }
        });
        let hung = join_all(hung).await;
        let waited = hung.iter().filter(|outcome| matches!(outcome, Ok(Err(SendError::Exhausted(_))))).count();
        assert_eq!((waited, begun.load(Ordering::SeqCst)), (100 - PER_DEVELOPER, PER_DEVELOPER));
        assert!(matches!(lookup(&lookups, "dev_1", "shop.example").await, Err(SendError::Exhausted(_))));
        let mut connector = Connector::new(TargetPolicy::new(false), lookups.clone(), 1).unwrap();
        let connect = async { connector.call("http://shop.example".parse().unwrap()).await };
        let connected = ATTEMPT.scope(DeliveryAttempt::new("dev_1".parse().unwrap()), connect).await;
        assert!(matches!(connected, Err(SendError::Exhausted(_))), "the endpoint is not at fault");
        assert_eq!(lookup(&lookups, "dev_2", "shop.example").await.unwrap().len(), 1);

        let more =
            (0..PER_DEVELOPER * 4).map(|number| {
                let lookups = &lookups;
                async move {
                    timeout(2 * MAX_WAIT, lookup(lookups, &format!("dev_{}", 3 + number % 4), "hangs.example")).await
                }
            });
        join_all(more).await;
        assert_eq!(begun.load(Ordering::SeqCst), MAX_LOOKUPS);
        assert_eq!(lookups.all.available_permits(), 0);

        drop(go_on);
        let all = timeout(10 * MAX_WAIT, lookups.all.acquire_many(u32::try_from(MAX_LOOKUPS).unwrap())).await;
        drop(all.unwrap().unwrap());
        assert_eq!(lookup(&lookups, "dev_1", "shop.example").await.unwrap().len(), 1);
        assert_eq!(lookups.developers().len(), 1, "only a developer with a lookup is remembered");
    }

    #[tokio::test]
    async fn a_wait_for_a_lookup_does_not_count_as_time_of_the_attempt() {
        let lookups = Lookups::with_resolver(|_| Ok(Vec::new()));
        let attempt = DeliveryAttempt::new("dev_1".parse().unwrap());
        let created = attempt.started_at();
        ATTEMPT.scope(attempt.clone(), async { lookups.addresses("shop.example".to_owned()).await }).await.unwrap();
        assert!(attempt.started_at() > created);
    }
}
