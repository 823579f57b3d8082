//! How many host names are looked up at once.
//!
//! The system's resolver blocks a thread for as long as the name's servers let it, however long ago the attempt was given
//! up. Those threads are few and serve the whole process. So all lookups together get a part of them, and one developer's
//! get a part of that: names that lead nowhere hold up nobody else.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use payments_core::DeveloperId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::target::TargetFault;

/// All lookups that are under way.
const MOST: usize = 64;
/// Those of one developer.
const MOST_OF_ONE: usize = 16;
/// How long an attempt waits for its lookup to begin.
const WAIT: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// The attempt that this task makes.
    pub(super) static ATTEMPT_OF: AttemptOf;
}

/// Whose attempt it is, and since when its time counts.
#[derive(Clone)]
pub(super) struct AttemptOf {
    developer: DeveloperId,
    begun: Arc<Mutex<Instant>>,
}

impl AttemptOf {
    pub(super) fn new(developer: DeveloperId) -> Self {
        Self { developer, begun: Arc::new(Mutex::new(Instant::now())) }
    }

    /// When the attempt began. The endpoint's time does not run while the attempt waits for us.
    pub(super) fn begun(&self) -> Instant {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waited(&self, time: Duration) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }
}

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// It was not looked up. The endpoint has nothing to do with it.
    #[error("too many names are being looked up")]
    TooMany,
    #[error("the name was not found")]
    NotFound(#[source] io::Error),
    #[error("the address {0}")]
    NotAllowed(TargetFault),
    #[error("this machine has no route to any of its addresses")]
    NoRoute,
}

type Lookup = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up, so many at once.
#[derive(Clone)]
pub(super) struct Lookups {
    all: Arc<Semaphore>,
    of_one: Arc<Mutex<HashMap<Option<DeveloperId>, Arc<Semaphore>>>>,
    system: Arc<Lookup>,
}

impl Lookups {
    /// By the system's resolver.
    pub(super) fn system() -> Self {
        Self::by(|name| Ok((name, 0).to_socket_addrs()?.collect()))
    }

    pub(super) fn by(system: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), of_one: Arc::default(), system: Arc::new(system) }
    }

    /// Whose lookups are remembered.
    #[cfg(test)]
    pub(super) fn of(&self) -> Vec<Option<DeveloperId>> {
        self.of_one.lock().unwrap().keys().cloned().collect()
    }

    /// The addresses of a name, for the attempt that the calling task makes.
    pub(super) fn addresses(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Vec<SocketAddr>, LookupError>> + Send + use<> {
        let (lookups, attempt) = (self.clone(), ATTEMPT_OF.try_with(Clone::clone).ok());
        async move {
            let asked = Instant::now();
            let developer = attempt.as_ref().map(|attempt| attempt.developer.clone());
            let permits = match timeout(WAIT, lookups.permits(developer)).await {
                Ok(Some(permits)) => permits,
                Ok(None) | Err(_) => return Err(LookupError::TooMany),
            };
            if let Some(attempt) = attempt {
                attempt.waited(asked.elapsed());
            }
            let found = spawn_blocking(move || {
                let found = (lookups.system)(&name);
                // Not before the thread is free, whether or not anybody still waits for it.
                drop(permits);
                found
            });
            found.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(LookupError::NotFound)
        }
    }

    async fn permits(&self, developer: Option<DeveloperId>) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let of_one = self.of_one(developer).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some((of_one, of_all))
    }

    /// What one developer may have, as long as somebody waits for it or holds some of it.
    fn of_one(&self, developer: Option<DeveloperId>) -> Arc<Semaphore> {
        let mut of_one = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
        of_one.retain(|_, held| Arc::strong_count(held) > 1);
        Arc::clone(of_one.entry(developer).or_insert_with(|| Arc::new(Semaphore::new(MOST_OF_ONE))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use futures_util::future::join_all;

    use super::*;

    async fn lookup(lookups: &Lookups, developer: &str, name: &str) -> Result<Vec<SocketAddr>, LookupError> {
        let attempt = AttemptOf::new(developer.parse().unwrap());
        ATTEMPT_OF.scope(attempt, async { lookups.addresses(name.to_owned()).await }).await
    }

    #[tokio::test]
    async fn a_developer_whose_names_hang_gets_some_threads_until_they_return_and_others_are_served() {
        let (go_on, hanging) = mpsc::channel::<()>();
        let (hanging, begun) = (Mutex::new(hanging), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&begun);
        let lookups = Lookups::by(move |name| {
            if name.starts_with("hangs") {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = hanging.lock().unwrap().recv();
            }
            Ok(vec![([192, 0, 2, 1], 0).into()])
        });
        // An attempt gives up; its thread does not.
        let hung = (0..100).map(|number| {
            let lookups = &lookups;
            async move { timeout(2 * WAIT, lookup(lookups, "dev_1", &format!("hangs{number}.example"))).await }
        });
        let hung = join_all(hung).await;
        let waited = hung.iter().filter(|outcome| matches!(outcome, Ok(Err(LookupError::TooMany)))).count();
        assert_eq!((waited, begun.load(Ordering::SeqCst)), (100 - MOST_OF_ONE, MOST_OF_ONE));
        assert!(matches!(lookup(&lookups, "dev_1", "shop.example").await, Err(LookupError::TooMany)));
        assert_eq!(lookup(&lookups, "dev_2", "shop.example").await.unwrap().len(), 1);

        let more = (0..MOST_OF_ONE * 4).map(|number| {
            let lookups = &lookups;
            async move { timeout(2 * WAIT, lookup(lookups, &format!("dev_{}", 3 + number % 4), "hangs.example")).await }
        });
        join_all(more).await;
        assert_eq!(begun.load(Ordering::SeqCst), MOST);
        assert_eq!(lookups.all.available_permits(), 0);

        drop(go_on);
        let all = timeout(10 * WAIT, lookups.all.acquire_many(u32::try_from(MOST).unwrap())).await;
        drop(all.unwrap().unwrap());
        assert_eq!(lookup(&lookups, "dev_1", "shop.example").await.unwrap().len(), 1);
        assert_eq!(lookups.of().len(), 1, "only who looks up is remembered");
    }

    #[tokio::test]
    async fn an_attempts_time_does_not_run_while_it_waits_for_its_lookup() {
        let lookups = Lookups::by(|_| Ok(Vec::new()));
        let attempt = AttemptOf::new("dev_1".parse().unwrap());
        let created = attempt.begun();
        ATTEMPT_OF.scope(attempt.clone(), async { lookups.addresses("shop.example".to_owned()).await }).await.unwrap();
        assert!(attempt.begun() > created);
    }
}
