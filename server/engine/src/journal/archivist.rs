//! The thread that compresses the journal's closed files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use super::{archive, file_list::FileList, files::file_in};

/// Compresses the journal files that are closed, in a thread of its own.
pub(crate) struct Archivist {
    lists: Sender<FileList>,
}

impl Archivist {
    /// Begins with what an earlier run left.
    pub(crate) fn start(directory: PathBuf, list: FileList) -> io::Result<Self> {
        let (lists, waiting) = channel();
        thread::Builder::new().name("archivist".into()).spawn(move || work(&directory, &waiting))?;
        let archivist = Self { lists };
        archivist.closed_before_last(list);
        Ok(archivist)
    }

    /// All files of a list but the last are closed.
    pub(crate) fn closed_before_last(&self, list: FileList) {
        // The thread ends only when this is gone.
        let _ = self.lists.send(list);
    }
}

fn work(directory: &Path, lists: &Receiver<FileList>) {
    while let Ok(list) = lists.recv() {
        if let Err(error) = compress_closed(directory, &list) {
            tracing::warn!(%error, "old journal files could not be compressed; they stay as they are for now");
        }
    }
}

/// Compresses the listed files but the last, to which the committer appends. What else is in the directory was begun in vain.
fn compress_closed(directory: &Path, list: &FileList) -> io::Result<()> {
    for path in list.firsts().filter(|first| *first < list.active()).map(|first| file_in(directory, first)) {
        if path.exists() {
            archive::compress(&path)?;
        }
    }
    Ok(())
}
