//! Backups that a database makes again and again, in a directory which others may use too.
//!
//! A backup's directory is named for the time of its beginning and for the line of its database. A series touches the backups of
//! its own line only: another database's, those from before a restore and an operator's stay until
//! somebody removes them.
//!
//! Of its own a series keeps the newest `keep`, and all that are younger than `keep` intervals. So restarts within seconds do
//! not push out what was made before. The newest is the one with the latest change: a clock may step. The journal stays from
//! the oldest of them on, and as a whole until there are `keep`.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    backup::{Copier, MANIFEST, Manifest, RECORDS},
    database::Database,
    disk::{Disk, Listed, Open},
    error::BackupError,
    journal,
    whole_file::{self, if_there},
};

const PREFIX: &str = "backup-";

/// Where a database's backups are made, and which of them stay.
#[derive(Debug, Clone)]
pub struct Series {
    /// The directory of their directories.
    pub directory: PathBuf,
    /// The time from one to the next.
    pub every: Duration,
    /// How many stay at least.
    pub keep: usize,
}

/// What a series finds when it is taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenUp {
    /// How long it is until the next backup is due.
    pub due_in: Duration,
    /// Backups in the directory that the series never touches.
    pub others: Vec<PathBuf>,
}

struct Made {
    path: PathBuf,
    /// When it was begun, by the clock of that moment, in milliseconds since 1970.
    at: i64,
    manifest: Manifest,
}

#[derive(Default)]
struct Found {
    /// Whole backups of this line, oldest first.
    own: Vec<Made>,
    /// Backups of this line whose making was cut off.
    cut_off: Vec<PathBuf>,
    /// Everything else that looks like a backup.
    others: Vec<PathBuf>,
}

impl Database {
    /// Takes up a series at a start, at a time in milliseconds since 1970: removes what a crash left of backups, and lets the
    /// journal go that the others do not need.
    ///
    /// # Errors
    /// If the directory cannot be read or the database not be written. The journal then stays as it is.
    pub fn take_up(&self, series: &Series, now: i64) -> Result<TakenUp, BackupError> {
        let mut found = self.copier.look_for(series)?;
        if found.own.last().is_some_and(|newest| newest.manifest.to > self.overlay.last()) {
            // Somebody put an earlier state of the files back. The changes from here on are others.
            self.group_commit.writer().journal.begin_line()?;
            tracing::warn!(
                "the store was put back to an earlier state; backups of later ones are not its own any more"
            );
            found = self.copier.look_for(series)?;
        }
        self.copier.remove_cut_off(&found);
        self.copier.keep_journal(series, &found);
        let since = found.own.iter().filter_map(|made| u64::try_from(now - made.at).ok()).min();
        let due_in = since.map_or(Duration::ZERO, |since| series.every.saturating_sub(Duration::from_millis(since)));
        Ok(TakenUp { due_in, others: found.others })
    }

    /// Makes the next backup of a series, and removes old ones. As [`back_up`](Self::back_up) otherwise.
    ///
    /// # Errors
    /// As [`back_up`](Self::back_up). Old backups then stay.
    pub async fn back_up_next(&self, series: Series, now: i64) -> Result<(PathBuf, Manifest), BackupError> {
        let copier = self.copier.clone();
        let copying = tokio::task::spawn_blocking(move || copier.copy_next(&series, now));
        copying.await.map_err(|_| BackupError::Stopped)?
    }
}

impl Copier {
    pub(crate) fn copy_next(&self, series: &Series, now: i64) -> Result<(PathBuf, Manifest), BackupError> {
        // A crash may have left the directory's name unsynced: a power cut would then lose all backups.
        whole_file::create_directory(&*self.disk, &series.directory)?;
        // They take room that this one may need.
        self.remove_cut_off(&self.look_for(series)?);
        let path = series.directory.join(format!("{PREFIX}{:015}-{}", now.max(0), self.line()?));
        let manifest = self.copy_to(&path)?;
        if let Err(error) = self.remove_superseded(series, now) {
            tracing::warn!(%error, "old backups cannot be removed; the next backup tries it again");
        }
        Ok((path, manifest))
    }

    fn remove_superseded(&self, series: &Series, now: i64) -> Result<(), BackupError> {
        let found = self.look_for(series)?;
        let times: Vec<i64> = found.own.iter().map(|made| made.at).collect();
        for nth in superseded(&times, series, now) {
            remove(&*self.disk, &found.own[nth].path)?;
        }
        self.keep_journal(series, &self.look_for(series)?);
        Ok(())
    }

    /// The journal stays from the oldest backup on. Fewer than wanted may be too few, so then all of it stays.
    fn keep_journal(&self, series: &Series, found: &Found) {
        let oldest = found.own.iter().map(|made| made.manifest.from).min();
        self.retention.backed_up(oldest.filter(|_| found.own.len() >= series.keep).unwrap_or(0));
    }

    fn line(&self) -> Result<String, BackupError> {
        let lines = journal::lines(&*self.disk, &self.journal)?;
        Ok(lines.present().unwrap_or_default().to_owned())
    }

    fn look_for(&self, series: &Series) -> Result<Found, BackupError> {
        let (disk, line, mut found) = (&*self.disk, self.line()?, Found::default());
        let mut names: Vec<_> = if_there(disk.list(&series.directory))?.unwrap_or_default();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        for Listed { name, .. } in names {
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            let path = series.directory.join(&name);
            let (digits, of_line) = rest.split_once('-').unwrap_or((rest, ""));
            let at = digits.parse().ok().filter(|_| of_line == line || planted!(BackupsOfAllLines));
            match (at, whole(disk, &path)) {
                (Some(at), Some(manifest)) => found.own.push(Made { path, at, manifest }),
                (Some(_), None) if !disk.exists(&path.join(MANIFEST))? => found.cut_off.push(path),
                _ => found.others.push(path),
            }
        }
        // Their numbers tell which is newer, and where they are the same so are the backups.
        found.own.sort_by_key(|made| made.manifest.to);
        Ok(found)
    }

    fn remove_cut_off(&self, found: &Found) {
        for path in &found.cut_off {
            tracing::warn!(directory = %path.display(), "removing a part of a backup that was not finished");
            if let Err(error) = whole_file::remove_directory(&*self.disk, path) {
                tracing::warn!(%error, directory = %path.display(), "it cannot be removed; remove it");
            }
        }
    }
}

/// The manifest of a backup that is whole, as far as its files' lengths tell.
fn whole(disk: &dyn Disk, backup: &Path) -> Option<Manifest> {
    let manifest = Manifest::read(disk, backup).ok()?;
    let length = disk.open(&backup.join(RECORDS), Open::Read).and_then(|file| file.length()).ok()?;
    (manifest.bytes == length).then_some(manifest)
}

/// Which backups may be removed, given when they were made. The one with the fewest changes comes first.
fn superseded(times: &[i64], series: &Series, now: i64) -> Vec<usize> {
    let keep = series.keep.max(1);
    let span =
        i64::try_from(series.every.as_millis()).unwrap_or(i64::MAX).saturating_mul(keep.try_into().unwrap_or(i64::MAX));
    let is_old = |nth: usize| {
        // A clock may have been ahead. Then the backup is at least as old as a later one.
        let made = times[nth..].iter().find(|at| **at <= now).copied().unwrap_or(now);
        now.saturating_sub(made) >= span
    };
    (0..times.len().saturating_sub(keep)).filter(|nth| is_old(*nth)).collect()
}

/// Removes a backup. `backup.json` goes first, so that a crash leaves no whole one that lacks something.
fn remove(disk: &dyn Disk, backup: &Path) -> io::Result<()> {
    if_there(disk.remove_file(&backup.join(MANIFEST)))?;
    disk.sync_directory(backup)?;
    disk.remove_directory(backup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_may_go_if_enough_are_newer_and_it_is_old_enough() {
        let series = Series { directory: PathBuf::new(), every: Duration::from_secs(60), keep: 3 };
        let minute = 60_000;
        for (minutes, now, may_go) in [
            (&[][..], 9, &[][..]),
            (&[0, 1, 2], 99, &[]),
            (&[0, 1, 2, 3], 3, &[0]),
            (&[0, 1, 2, 3], 2, &[]),
            (&[0, 1, 2, 3, 4, 5], 5, &[0, 1, 2]),
            // Restarts at the same minute.
            (&[0, 1, 2, 2, 2, 2], 2, &[]),
            (&[0, 1, 2, 2, 2, 2], 4, &[0, 1]),
            // The clock was a hundred minutes ahead, and stepped back.
            (&[0, 101, 102, 3], 3, &[0]),
            (&[100, 101, 102, 3, 4, 5], 5, &[]),
            (&[100, 101, 102, 3, 4, 5], 6, &[0, 1, 2]),
            (&[100, 101, 102, 103], 3, &[]),
            // It was behind.
            (&[50, 0, 51, 52, 53], 53, &[0, 1]),
            (&[50, 0, 51, 52, 53], 52, &[1]),
        ] {
            let times: Vec<i64> = minutes.iter().map(|at| at * minute).collect();
            assert_eq!(superseded(&times, &series, now * minute), may_go, "{minutes:?} at {now}");
        }
    }
}
