//! Compresses closed journal files to about a tenth, in a worker.
//!
//! Closed files contain every change since the beginning. So they can rebuild a damaged tree, or the database as of any
//! moment, and take a tenth of the records' space on the disk.

use std::{
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use super::{
    file_list::FileList,
    files::{compressed, file_in},
};
use crate::{
    disk::{Disk, Open, Sequential},
    whole_file::{self, if_there},
    worker::{Work, Worker},
};

/// The fastest of zstd's usual levels: the committer and the requests need the processor more.
const LEVEL: i32 = 1;
/// How many lists may wait. A further list is dropped: the next one has its files too.
const WAITING: usize = 64;
const WRITTEN_AT_BYTES: usize = 1024 * 1024;

/// Compresses the closed files of each list that it receives. When the database is being closed, it ends after the present
/// file.
pub(crate) struct Archivist {
    lists: mpsc::SyncSender<FileList>,
    #[cfg_attr(not(feature = "simulation"), expect(dead_code, reason = "only a simulation steps it"))]
    pub(crate) worker: Worker<Compressing>,
}

impl Archivist {
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        directory: PathBuf,
        is_closing: Arc<AtomicBool>,
        has_threads: bool,
    ) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        let (lists, sent) = mpsc::sync_channel(WAITING);
        let work = Compressing { disk, directory, is_closing, lists: sent };
        let (worker, thread) = Worker::start("archivist", has_threads, work)?;
        Ok((Self { lists, worker }, thread))
    }

    /// Sends a list, so that its closed files are compressed: all but the last.
    pub(crate) fn send(&self, list: &FileList) {
        let _ = self.lists.try_send(list.clone());
    }
}

pub(crate) struct Compressing {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    is_closing: Arc<AtomicBool>,
    lists: mpsc::Receiver<FileList>,
}

impl Compressing {
    /// Returns false if there is no list.
    fn compress(&self, list: Option<FileList>) -> bool {
        let Some(FileList { files, .. }) = list else { return false };
        let closed = files.split_last().map_or(&[][..], |(_, closed)| closed);
        let mut wanted = closed.iter().take_while(|_| !self.is_closing.load(Ordering::Relaxed));
        if let Err(error) = wanted.try_for_each(|first| compress(&*self.disk, &file_in(&self.directory, *first))) {
            tracing::warn!(%error, "closed journal files could not be compressed; they stay as they are for now");
        }
        true
    }
}

impl Work for Compressing {
    fn wait(&mut self) -> bool {
        self.compress(self.lists.recv().ok())
    }

    fn step(&mut self) -> bool {
        self.compress(self.lists.try_recv().ok())
    }
}

/// Compresses a file, unless it is compressed already or was removed because a backup contains its entries.
fn compress(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let Some(source) = if_there(disk.open(path, Open::Read))? else { return Ok(()) };
    whole_file::create(disk, &compressed(path), |target| {
        let mut target = zstd::Encoder::new(BufWriter::with_capacity(WRITTEN_AT_BYTES, target), LEVEL)?;
        target.include_checksum(true)?;
        io::copy(&mut Sequential::new(source), &mut target)?;
        target.finish()?.flush()
    })?;
    // The compressed file's name is durable, so one of the two files always exists.
    disk.remove_file(path)
}
