//! The thread that compresses the journal's closed files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use super::{archive, files::files_in};

/// Compresses the journal files that are closed, in a thread of its own.
pub(crate) struct Archivist {
    closed: Sender<u64>,
}

impl Archivist {
    /// Begins with what an earlier run left. `active` is the first entry of the file that is appended to.
    pub(crate) fn start(directory: PathBuf, active: u64) -> io::Result<Self> {
        let (closed, waiting) = channel();
        thread::Builder::new().name("archivist".into()).spawn(move || work(&directory, &waiting))?;
        let archivist = Self { closed };
        archivist.closed_before(active);
        Ok(archivist)
    }

    /// The files before the one with this first entry are closed.
    pub(crate) fn closed_before(&self, active: u64) {
        // The thread ends only when this is gone.
        let _ = self.closed.send(active);
    }
}

fn work(directory: &Path, closed: &Receiver<u64>) {
    while let Ok(active) = closed.recv() {
        if let Err(error) = compress_before(directory, active) {
            tracing::warn!(%error, "old journal files could not be compressed; they stay as they are for now");
        }
    }
}

/// Compresses the files before the one with this first entry, to which the committer appends. Which one that is only the
/// committer knows: the last name in the directory may be of a file that was begun in vain.
fn compress_before(directory: &Path, active: u64) -> io::Result<()> {
    for file in files_in(directory)?.iter().filter(|file| file.first < active && !archive::is_one(&file.path)) {
        archive::compress(&file.path)?;
    }
    Ok(())
}
