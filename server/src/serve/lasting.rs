//! The store of a running server: opening and closing.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::{
    ambient::Ambient,
    cli::CommandError,
    commands::operations,
    metrics::Metrics,
    process::file_modes,
    store::{
        Location, Store,
        embedded::{self, EmbeddedStore},
        postgres::{self, DatabaseClock, PostgresStore},
    },
};

const AGAIN: Duration = Duration::from_millis(200);
/// How often the log says that the server waits for its database.
const SAY_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct Lasting {
    store: Arc<Store>,
    main: Main,
    ambient: Arc<dyn Ambient>,
}

enum Main {
    Embedded(embedded::Closing),
    Postgres(Arc<DatabaseClock>, Arc<PostgresStore>, postgres::Closing),
}

impl Lasting {
    /// Opens the store. A database may be unavailable: [`database_opens`](Self::database_opens) waits for it.
    pub(super) fn open(
        location: Location,
        mut ambient: Arc<dyn Ambient>,
        metrics: &Metrics,
    ) -> Result<Self, CommandError> {
        let commits = metrics.commits.clone();
        let on_commit = move |changes, took| commits.synced(changes, took);
        let (store, main): (Arc<Store>, _) = match location {
            Location::Directory(directory) => {
                operations::remove_abandoned_copies(&directory)?;
                let (store, closing) = EmbeddedStore::open(&directory, Arc::clone(&ambient), on_commit)?;
                file_modes::warn_of_readable(&directory);
                (store.into_store(), Main::Embedded(closing))
            }
            Location::Database(target) => {
                let (store, closing) = PostgresStore::start(*target, &*ambient, on_commit);
                let (clock, store) = (DatabaseClock::new(ambient), Arc::new(store));
                ambient = Arc::clone(&clock) as Arc<dyn Ambient>;
                (store.store(), Main::Postgres(clock, store, closing))
            }
        };
        Ok(Self { store, main, ambient })
    }

    /// Waits until the store's database, if it has one, can be used. Notifies `waits` if that is not immediately so. Fails if
    /// a person must repair something.
    pub(super) fn database_opens(
        &self,
        waits: Arc<Notify>,
    ) -> impl Future<Output = Result<(), CommandError>> + Send + use<> {
        let database = match &self.main {
            Main::Embedded(..) => None,
            Main::Postgres(clock, store, _) => Some((Arc::clone(clock), Arc::clone(store))),
        };
        async move {
            let Some((clock, store)) = database else { return Ok(()) };
            let mut said: Option<Instant> = None;
            while let Err(error) = store.begin(Some(&clock)).await {
                if error.is_lasting() {
                    return Err(error.into());
                }
                if said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
                    tracing::warn!(%error, "waiting for the database; until it is there, requests get 503");
                    said = Some(Instant::now());
                }
                waits.notify_one();
                sleep(AGAIN).await;
            }
            if said.is_some() {
                tracing::info!("the database is there");
            }
            Ok(())
        }
    }

    /// The clock that all servers on the store share.
    pub(super) fn ambient(&self) -> Arc<dyn Ambient> {
        Arc::clone(&self.ambient)
    }

    /// The periodic work that a database needs.
    pub(super) fn of_database(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let Main::Postgres(clock, store, _) = &self.main else { return None };
        Some(Arc::clone(store).keep(Arc::clone(clock)))
    }

    pub(super) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// Closes the store and waits for its threads. The caller must have dropped all other handles.
    pub(super) async fn close(self) -> Result<(), CommandError> {
        let Self { store, main, .. } = self;
        drop(store);
        match main {
            Main::Postgres(_, store, closing) => {
                drop(store);
                closing.wait().await;
            }
            Main::Embedded(closing) => spawn_blocking(|| closing.wait()).await?,
        }
        Ok(())
    }
}
