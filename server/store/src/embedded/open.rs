//! Opens the store of a directory.

use std::{
    io,
    path::{Path, PathBuf, absolute},
    process,
    sync::Arc,
    time::Duration,
};

use journaled_tree::{Closing, Options};
use rustix::io::Errno;

use super::EmbeddedStore;
use crate::{
    Migration, Snapshot as _, StoreError, Unfinished,
    ambient::{self, Ambient},
    bytes::{Journaled, KeysOfPlace},
    layout::Claims,
};

impl EmbeddedStore {
    /// Opens the store of a directory, or makes one if the directory is missing or empty. Refuses a store into which a
    /// migration is not finished. Voids all claims on idempotency keys. `on_sync` is called after each batch with the number
    /// of its changes and how long it took.
    pub fn open(
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        on_sync: impl Fn(usize, Duration) + Send + Sync + 'static,
    ) -> Result<(Self, Closing), OpenError> {
        let (store, closing) = Self::open_to_migrate(directory, ambient, on_sync)?;
        match store.begin() {
            Ok(()) => Ok((store, closing)),
            Err(error) => {
                drop(store);
                closing.wait();
                Err(error)
            }
        }
    }

    fn begin(&self) -> Result<(), OpenError> {
        Migration::refuse_unfinished(self.migration()?)?;
        // The process that made the claims is gone.
        Ok(self.void_key_claims()?)
    }

    /// As [`open`](Self::open), even if a migration into the store is not finished. Claims on idempotency keys stay.
    pub fn open_to_migrate(
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        on_sync: impl Fn(usize, Duration) + Send + Sync + 'static,
    ) -> Result<(Self, Closing), OpenError> {
        let place = directory.to_owned();
        let options =
            Options::new(directory, KeysOfPlace).clock(move || ambient.now().as_millis()).on_stop(move |what, error| {
                let directory = place.display();
                tracing::error!(%error, %directory, "{what}; the server stops, start it again to recover from the journal");
                ambient::say_last_words();
                process::exit(74)
            });
        Self::open_with(options, directory, on_sync)
    }

    pub(super) fn open_with(
        options: Options,
        directory: &Path,
        on_sync: impl Fn(usize, Duration) + Send + Sync + 'static,
    ) -> Result<(Self, Closing), OpenError> {
        let (database, closing) = options.on_sync(on_sync).open().map_err(|error| OpenError::of(error, directory))?;
        Ok((Self::new(Journaled(database), Claims::InMemory(Arc::default())), closing))
    }
}

/// The directory of the tree in a store's directory.
pub fn tree_in(directory: &Path) -> PathBuf {
    directory.join(journaled_tree::TREE_DIRECTORY)
}

pub fn is_there(directory: &Path) -> bool {
    tree_in(directory).exists()
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}{advice}", advice = advice(.0))]
    Engine(journaled_tree::OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
    #[error("the data directory {directory} cannot be used: {error}; {mend}", directory = directory.display())]
    Unusable { directory: PathBuf, error: io::Error, mend: &'static str },
    #[error("the store's directory cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// Names the command that restores the store. The engine does not know it.
fn advice(error: &journaled_tree::OpenError) -> String {
    match error {
        journaled_tree::OpenError::Damaged { .. } | journaled_tree::OpenError::Incomplete { .. } => {
            "; payments-server restore makes one of them".to_owned()
        }
        journaled_tree::OpenError::Journal(error) => match error.left_until() {
            Some(last) => {
                format!("; payments-server restore --journal DIR --until-entry {last} makes a store of what is left")
            }
            None => String::new(),
        },
        _ => String::new(),
    }
}

impl OpenError {
    /// Tells errors of the operating system from errors of the store.
    fn of(error: journaled_tree::OpenError, directory: &Path) -> Self {
        match error {
            journaled_tree::OpenError::Io(error)
            | journaled_tree::OpenError::Journal(journaled_tree::JournalError::Io(error)) => {
                Self::unusable(error, directory)
            }
            error => Self::Engine(error),
        }
    }

    /// The operating system refused a call on the directory.
    pub fn unusable(error: io::Error, directory: &Path) -> Self {
        let system = journaled_tree::system_error(&error).map(Errno::from_raw_os_error);
        let mend = match (error.kind(), system) {
            (io::ErrorKind::PermissionDenied, _) => {
                "run this as its owner, who must own all files in it (chown -R), or name another with --data-dir"
            }
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => "make room on its disk",
            (io::ErrorKind::ReadOnlyFilesystem, _) => "mount its disk for writing; the kernel's log says why it is not",
            (_, Some(Errno::MFILE | Errno::NFILE)) => "allow more open files, by ulimit -n or systemd's LimitNOFILE",
            (_, Some(Errno::IO)) => "its disk failed, and the kernel's log says how; replace it, and restore the store",
            _ => "name a directory that can be made or written with --data-dir",
        };
        Self::Unusable { directory: absolute(directory).unwrap_or_else(|_| directory.to_owned()), error, mend }
    }

    /// Whether another process has the store open.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Engine(journaled_tree::OpenError::InUse { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::OperatingSystem;

    #[test]
    fn the_error_of_a_refused_directory_names_it_and_what_to_do() {
        let words = |kind: io::ErrorKind| OpenError::unusable(kind.into(), Path::new("data")).to_string();
        for (kind, mend) in [
            (io::ErrorKind::PermissionDenied, "(chown -R), or name another with --data-dir"),
            (io::ErrorKind::ReadOnlyFilesystem, "mount its disk for writing; the kernel's log says why it is not"),
            (io::ErrorKind::StorageFull, "make room on its disk"),
            (io::ErrorKind::QuotaExceeded, "make room on its disk"),
            (io::ErrorKind::NotADirectory, "name a directory that can be made or written with --data-dir"),
        ] {
            let words = words(kind);
            assert!(words.starts_with("the data directory /") && words.ends_with(mend), "{words}");
        }
    }

    #[test]
    fn the_error_of_a_damaged_store_names_the_restore_command_and_an_open_store_is_in_use() {
        let (directory, what) = (PathBuf::from("data"), "a page is missing".into());
        let damaged = OpenError::Engine(journaled_tree::OpenError::Damaged { directory: directory.clone(), what });
        let incomplete = OpenError::Engine(journaled_tree::OpenError::Incomplete { missing: directory });
        let later = OpenError::Engine(journaled_tree::OpenError::Format { found: 99, known: 1 });
        for (error, is_restored) in [(&damaged, true), (&incomplete, true), (&later, false)] {
            let words = error.to_string();
            assert_eq!(words.ends_with("; payments-server restore makes one of them"), is_restored, "{words}");
            assert!(is_restored || words.ends_with("use the version that wrote it"), "{words}");
            assert!(!error.is_in_use());
        }
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_there(directory.path()));
        let open = || EmbeddedStore::open(directory.path(), Arc::new(OperatingSystem), |_, _| ());
        let (store, closing) = open().unwrap();
        assert!(is_there(directory.path()));
        assert!(open().err().unwrap().is_in_use());
        drop(store);
        closing.wait();
    }
}
