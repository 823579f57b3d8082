//! Scheduled backups.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use payments_core::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    ambient::Ambient,
    store::{Store, embedded},
};

/// Directory name of a scheduled backup: this prefix and the time in milliseconds, so that names sort by time.
const PREFIX: &str = "backup-";

/// Target, interval and retention of scheduled backups.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) directory: PathBuf,
    pub(crate) every: Duration,
    pub(crate) keep: usize,
}

/// Makes backups forever, the first immediately. The store keeps its journal since the oldest backup, so that `restore`
/// recovers every acknowledged change, and the state of any moment since then.
pub(crate) async fn back_up_regularly(store: Arc<dyn Store>, ambient: Arc<dyn Ambient>, schedule: Schedule) {
    let Some(store) = store.backups() else {
        tracing::error!("this store does not support backups; start without --backup-dir");
        return;
    };
    store.keep_journal_after(schedule.oldest_needs());
    let mut ticks = interval(schedule.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.back_up(schedule.next(ambient.now())).await {
            Ok(made) => {
                tracing::info!(directory = %made.directory.display(), records = made.records, "backed up");
                if let Err(error) = schedule.remove_old() {
                    tracing::warn!(%error, "cannot remove old backups");
                }
                store.keep_journal_after(schedule.oldest_needs());
            }
            Err(error) => tracing::error!(%error, "backup failed; the next one runs on schedule"),
        }
    }
}

impl Schedule {
    fn next(&self, now: Timestamp) -> PathBuf {
        self.directory.join(format!("{PREFIX}{:015}", now.as_millis()))
    }

    /// All scheduled backups, oldest first, incomplete ones included.
    fn made(&self) -> io::Result<Vec<PathBuf>> {
        let paths = fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.path()));
        let mut made = paths.collect::<io::Result<Vec<_>>>()?;
        made.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)));
        made.sort();
        Ok(made)
    }

    /// The journal entry after which the oldest complete backup needs the journal.
    fn oldest_needs(&self) -> u64 {
        let made = self.made().unwrap_or_default();
        made.iter().find_map(|path| embedded::needs_journal_after(path)).unwrap_or(0)
    }

    /// Removes all but the newest `keep` complete backups.
    fn remove_old(&self) -> io::Result<()> {
        let (complete, incomplete): (Vec<_>, Vec<_>) =
            self.made()?.into_iter().partition(|path| embedded::needs_journal_after(path).is_some());
        let old = complete.len().saturating_sub(self.keep);
        complete[..old].iter().chain(&incomplete).try_for_each(|path| remove(path))
    }
}

/// Removes a backup. `backup.json` goes first, so that a crash leaves an incomplete backup, which is ignored.
fn remove(backup: &Path) -> io::Result<()> {
    let file = backup.join("backup.json");
    if file.try_exists()? {
        fs::remove_file(file)?;
    }
    fs::remove_dir_all(backup)
}
