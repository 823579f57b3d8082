//! Backups on a schedule.

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

/// What the names of scheduled backups begin with; the time in milliseconds follows, so they sort by it.
const PREFIX: &str = "backup-";

/// Where backups go, how often, and how many of them are kept.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) directory: PathBuf,
    pub(crate) every: Duration,
    pub(crate) keep: usize,
}

/// Makes backups for as long as it is polled, the first at once. The store keeps its journal from the oldest one on, so
/// that nothing acknowledged since is lost with the engine's file, and the store of any moment since can be made again.
pub(crate) async fn back_up_regularly(store: Arc<dyn Store>, ambient: Arc<dyn Ambient>, schedule: Schedule) {
    let Some(store) = store.maintenance() else {
        tracing::error!("this store makes no backups; start without --backup-dir");
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
                    tracing::warn!(%error, "old backups could not be removed");
                }
                store.keep_journal_after(schedule.oldest_needs());
            }
            Err(error) => tracing::error!(%error, "no backup was made; it is tried again when the next is due"),
        }
    }
}

impl Schedule {
    fn next(&self, now: Timestamp) -> PathBuf {
        self.directory.join(format!("{PREFIX}{:015}", now.as_millis()))
    }

    /// Everything that a schedule made there, oldest first, unfinished ones as well.
    fn made(&self) -> io::Result<Vec<PathBuf>> {
        let mut made = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX)) {
                made.push(path);
            }
        }
        made.sort();
        Ok(made)
    }

    /// The journal entry after which the oldest whole backup needs the journal.
    fn oldest_needs(&self) -> u64 {
        let made = self.made().unwrap_or_default();
        made.iter().find_map(|path| embedded::needs_journal_after(path)).unwrap_or(0)
    }

    /// Keeps the newest whole ones.
    fn remove_old(&self) -> io::Result<()> {
        let (whole, unfinished): (Vec<_>, Vec<_>) =
            self.made()?.into_iter().partition(|path| embedded::needs_journal_after(path).is_some());
        let old = whole.len().saturating_sub(self.keep);
        whole[..old].iter().chain(&unfinished).try_for_each(|path| remove(path))
    }
}

/// `backup.json` first, so that what is left by a crash is not taken for a whole backup.
fn remove(backup: &Path) -> io::Result<()> {
    match fs::remove_file(backup.join("backup.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir_all(backup)
}
