//! Backups that a database makes regularly, in a directory that others may use too.
//!
//! A backup's directory is named for the time of its beginning and for its database's line. A series touches only backups of
//! its own line. Backups of another database, from before a restore, or by an operator stay until somebody removes them.
//!
//! A series keeps its newest `keep` backups, and all that are younger than `keep` intervals. So restarts within seconds do
//! not displace earlier backups. The newest backup is the one with the latest change, because a clock may step. The
//! journal since the oldest kept backup stays; until there are `keep` backups, the whole journal stays.

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

/// Where and how often a database makes backups, and which of them stay.
#[derive(Debug, Clone)]
pub struct Series {
    /// The directory that contains the backups' directories.
    pub directory: PathBuf,
    /// The interval between two backups.
    pub every: Duration,
    /// How many backups stay at least.
    pub keep: usize,
}

/// What a series finds at a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenUp {
    /// How long it is until the next backup is due.
    pub due_in: Duration,
    /// Backups in the directory that the series never touches.
    pub others: Vec<PathBuf>,
}

struct Made {
    path: PathBuf,
    /// When the backup was begun, by the clock at that moment, in milliseconds since 1970.
    at: i64,
    manifest: Manifest,
}

#[derive(Default)]
struct Found {
    /// Whole backups of this line, oldest first.
    own: Vec<Made>,
    /// Backups of this line that were interrupted.
    cut_off: Vec<PathBuf>,
    /// All other directories that look like backups.
    others: Vec<PathBuf>,
}

impl Database {
    /// Continues a series at a start, at a time in milliseconds since 1970. Removes interrupted backups, and allows the
    /// journal to drop entries that the other backups do not need.
    ///
    /// # Errors
    /// If the directory cannot be read or the database cannot be written. Then the journal stays as it is.
    pub fn take_up(&self, series: &Series, now: i64) -> Result<TakenUp, BackupError> {
        let mut found = self.copier.look_for(series)?;
        if found.own.last().is_some_and(|newest| newest.manifest.to > self.overlay.last()) {
            // Somebody restored an earlier state of the files. From here on, the same numbers belong to other changes.
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

    /// Makes the next backup of a series and removes old ones. Otherwise does the same as [`back_up`](Self::back_up).
    ///
    /// # Errors
    /// Those of [`back_up`](Self::back_up). Then old backups stay.
    pub async fn back_up_next(&self, series: Series, now: i64) -> Result<(PathBuf, Manifest), BackupError> {
        let copier = self.copier.clone();
        let copying = tokio::task::spawn_blocking(move || copier.copy_next(&series, now));
        copying.await.map_err(|_| BackupError::Stopped)?
    }
}

impl Copier {
    pub(crate) fn copy_next(&self, series: &Series, now: i64) -> Result<(PathBuf, Manifest), BackupError> {
        // After a crash the directory's name may not be synced, and a power cut would then lose all backups.
        whole_file::create_directory(&*self.disk, &series.directory)?;
        // Interrupted backups take room that this one may need.
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

    /// Keeps the journal since the oldest backup. With fewer backups than wanted, keeps all of it.
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
        // The number of changes tells which backup is newer. Backups with the same number are equal.
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

/// The manifest of a backup that is whole, judged by its files' lengths.
fn whole(disk: &dyn Disk, backup: &Path) -> Option<Manifest> {
    let manifest = Manifest::read(disk, backup).ok()?;
    let length = disk.open(&backup.join(RECORDS), Open::Read).and_then(|file| file.length()).ok()?;
    (manifest.bytes == length).then_some(manifest)
}

/// Which backups may be removed, given their times, sorted by their number of changes.
fn superseded(times: &[i64], series: &Series, now: i64) -> Vec<usize> {
    let keep = series.keep.max(1);
    let span =
        i64::try_from(series.every.as_millis()).unwrap_or(i64::MAX).saturating_mul(keep.try_into().unwrap_or(i64::MAX));
    let is_old = |nth: usize| {
        // The clock may have been ahead. Then the backup is at least as old as a later one.
        let made = times[nth..].iter().find(|at| **at <= now).copied().unwrap_or(now);
        now.saturating_sub(made) >= span
    };
    (0..times.len().saturating_sub(keep)).filter(|nth| is_old(*nth)).collect()
}

/// Removes a backup, `backup.json` first, so that a crash leaves no backup that looks whole but lacks files.
fn remove(disk: &dyn Disk, backup: &Path) -> io::Result<()> {
    if_there(disk.remove_file(&backup.join(MANIFEST)))?;
    disk.sync_directory(backup)?;
    disk.remove_directory(backup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_removed_if_it_is_old_and_enough_backups_are_newer() {
        let series = Series { directory: PathBuf::new(), every: Duration::from_secs(60), keep: 3 };
        let minute = 60_000;
        for (minutes, now, may_go) in [
            (&[][..], 9, &[][..]),
            (&[0, 1, 2], 99, &[]),
            (&[0, 1, 2, 3], 3, &[0]),
            (&[0, 1, 2, 3], 2, &[]),
            (&[0, 1, 2, 3, 4, 5], 5, &[0, 1, 2]),
            // Restarts within the same minute.
            (&[0, 1, 2, 2, 2, 2], 2, &[]),
            (&[0, 1, 2, 2, 2, 2], 4, &[0, 1]),
            // The clock was a hundred minutes ahead, then stepped back.
            (&[0, 101, 102, 3], 3, &[0]),
            (&[100, 101, 102, 3, 4, 5], 5, &[]),
            (&[100, 101, 102, 3, 4, 5], 6, &[0, 1, 2]),
            (&[100, 101, 102, 103], 3, &[]),
            // The clock was behind.
            (&[50, 0, 51, 52, 53], 53, &[0, 1]),
            (&[50, 0, 51, 52, 53], 52, &[1]),
        ] {
            let times: Vec<i64> = minutes.iter().map(|at| at * minute).collect();
            assert_eq!(superseded(&times, &series, now * minute), may_go, "{minutes:?} at {now}");
        }
    }
}
