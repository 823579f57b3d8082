//! The two stores of a migration. Nobody else uses them during it.

use std::{path::Path, sync::Arc};

use tokio::runtime::Handle;

use crate::{
    ambient::OperatingSystem,
    cli::CommandError,
    commands::no_store::no_store_in,
    store::{
        Change, CommitError, Location, Migration, Snapshot, Store, StoreError, Write,
        bytes::KeyValue,
        embedded::{self, Closing, EmbeddedStore},
        postgres::{self, PostgresSnapshot, PostgresStore, SourceLock},
    },
};

pub(super) struct Source {
    store: Box<dyn Snapshot>,
    kept: Kept,
}

/// What keeps others from using the source.
enum Kept {
    Directory(Closing),
    Database(Box<SourceLock>),
}

impl Source {
    pub(super) fn open(location: &Location) -> Result<Self, CommandError> {
        let source = match location {
            Location::Directory(directory) => {
                if !embedded::is_there(directory) {
                    return Err(no_store_in(directory, "--from").into());
                }
                let (store, closing) = open(directory)?;
                Self { store: Box::new(store), kept: Kept::Directory(closing) }
            }
            Location::Database(target) => Handle::current().block_on(async {
                let target = target.clone().for_migration();
                let lock = SourceLock::take(&target).await?;
                let snapshot = PostgresSnapshot::open_to_migrate(&target).await?;
                Ok::<_, CommandError>(Self { store: Box::new(snapshot), kept: Kept::Database(Box::new(lock)) })
            })?,
        };
        let unfinished = source.store.migration()?;
        if let Err(error) = Migration::refuse_unfinished(unfinished) {
            source.close();
            return Err(error.into());
        }
        Ok(source)
    }

    pub(super) fn store(&self) -> &dyn Snapshot {
        &*self.store
    }

    /// Refuses a source that others may have changed.
    pub(super) fn refuse_if_unlocked(&self) -> Result<(), CommandError> {
        match &self.kept {
            Kept::Database(lock) if !Handle::current().block_on(lock.is_held()) => {
                Err("the connection that locked the source broke; run it again with the same --from and --to".into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn close(self) {
        drop(self.store);
        if let Kept::Directory(closing) = self.kept {
            closing.wait();
        }
    }
}

pub(super) enum Target {
    Directory(EmbeddedStore, Closing),
    Database(PostgresStore, postgres::Closing, Box<postgres::Target>),
}

impl Target {
    pub(super) fn open(location: Location) -> Result<Self, CommandError> {
        match location {
            Location::Directory(directory) => open(&directory).map(|(store, closing)| Self::Directory(store, closing)),
            Location::Database(target) => Handle::current().block_on(async {
                let target = target.for_migration();
                // The last commit of an interrupted migration may still be running.
                target.refuse_if_used().await?;
                let opened = PostgresStore::open_to_migrate(target.clone(), &OperatingSystem).await;
                let (store, closing) = opened?;
                Ok(Self::Database(store, closing, Box::new(target)))
            }),
        }
    }

    fn store(&self) -> &Store {
        match self {
            Self::Directory(store, _) => store,
            Self::Database(store, ..) => store,
        }
    }

    /// Adds values of one slot.
    pub(super) fn take_in(&self, values: Vec<KeyValue>) -> Result<(), CommandError> {
        Handle::current().block_on(self.store().take_in(values)).map_err(goes_on)
    }

    pub(super) fn note(&self, migration: &Migration) -> Result<(), CommandError> {
        let change = Change::of(Write::Migration(Box::new(migration.clone())));
        match Handle::current().block_on(self.store().commit(change)) {
            Ok(_) => Ok(()),
            Err(CommitError::Conflict(_)) => {
                Err("somebody else writes to the target; stop that, empty the target, and run it again".into())
            }
            Err(CommitError::Store(error)) => Err(goes_on(error)),
        }
    }

    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&dyn Snapshot) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        match self {
            Self::Directory(store, _) => read(store),
            Self::Database(.., target) => read(&Handle::current().block_on(PostgresSnapshot::open_to_migrate(target))?),
        }
    }

    /// Refuses a database that a server uses.
    pub(super) fn refuse_if_served(&self) -> Result<(), CommandError> {
        match self {
            Self::Directory(..) => Ok(()),
            Self::Database(.., target) => Ok(Handle::current().block_on(target.refuse_if_served())?),
        }
    }

    pub(super) fn close(self) {
        match self {
            Self::Directory(store, closing) => {
                drop(store);
                closing.wait();
            }
            Self::Database(store, closing, _) => {
                drop(store);
                Handle::current().block_on(closing.wait());
            }
        }
    }
}

fn goes_on(error: StoreError) -> CommandError {
    format!("{error}; run it again with the same --from and --to, and it goes on").into()
}

fn open(directory: &Path) -> Result<(EmbeddedStore, Closing), CommandError> {
    Ok(EmbeddedStore::open_to_migrate(directory, Arc::new(OperatingSystem), |_, _| ())?)
}
