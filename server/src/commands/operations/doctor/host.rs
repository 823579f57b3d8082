//! What the server needs from its machine: permissions, disk space, descriptors, the right time.

use std::{
    fs, io,
    path::{Path, PathBuf, absolute},
    time::{Duration, SystemTime},
};

use payments_core::Timestamp;
use rustix::{
    fs::{Access, access, statvfs},
    process::geteuid,
};

use super::diagnosis::{Diagnosis, failed, in_order, warning};
use crate::{
    process::{descriptors, file_modes},
    store::Location,
};

const MIB: u64 = 1024 * 1024;
/// With less free space, the server soon refuses changes.
const LEAST_FREE: u64 = 256 * MIB;
/// With less free space, somebody should act.
const LITTLE_FREE: u64 = 2048 * MIB;
/// Webhooks are signed with the time, and receivers refuse a time that differs by five minutes.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Checks that this user can write the data, and that other users cannot read it.
pub(super) fn check_permissions(directory: &Path) -> Diagnosis {
    let directory = absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let (name, place) = (directory.display(), existing(&directory));
    if let Err(error) = access(&place, Access::WRITE_OK | Access::EXEC_OK) {
        let (place, user) = (place.display(), geteuid().as_raw());
        return failed(format!(
            "user {user} cannot write {place}: {error}; run chown {user} on it, or run the server as its owner"
        ));
    }
    match file_modes::readable_by_others(&place).as_deref() {
        Ok([]) => in_order(format!("only this user can read {name}")),
        // A parent directory contains nothing of ours.
        _ if place != directory => in_order(format!("this user can make {name}")),
        Ok(found) => warning(format!(
            "other users can read {} files in {name}, which holds webhook secrets; run chmod -R go= on it, and rotate the \
                 secrets",
            found.len()
        )),
        Err(error) => failed(format!("{name} cannot be read: {error}; run the server as its owner")),
    }
}

pub(super) fn check_disk(directory: &Path) -> Diagnosis {
    let place = existing(directory);
    let name = place.display();
    let disk = match statvfs(&place) {
        Ok(disk) => disk,
        Err(error) => return failed(format!("cannot read the free space on the disk of {name}: {error}")),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{} MiB are free on the disk of {name}", free / MIB);
    match free {
        // Some file systems have no limit of files.
        _ if disk.f_files > 0 && disk.f_favail < 1000 => {
            failed(format!("{} more files fit on the disk of {name}; remove some", disk.f_favail))
        }
        ..LEAST_FREE => failed(format!("{text}; make room, or put the data on another disk")),
        LEAST_FREE..LITTLE_FREE => warning(format!("{text}; make room before the server refuses changes")),
        _ => in_order(text),
    }
}

/// Checks that there are descriptors for connections, webhooks and the store.
pub(super) fn check_descriptors(asked: Option<u32>) -> Diagnosis {
    let limit = descriptors::raise_limit();
    match descriptors::divide(limit, asked) {
        Err(error) => failed(error.to_string()),
        Ok(shares) => {
            let text = format!(
                "{limit} open files: {} connections, {} webhook requests at once",
                shares.connections, shares.deliveries
            );
            let wanted =
                asked.map_or(descriptors::DEFAULT_CONNECTIONS, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
            match shares.connections < wanted {
                true => warning(format!(
                    "{text}; for {wanted} connections raise the hard limit, `ulimit -Hn` or systemd's LimitNOFILE"
                )),
                false => in_order(text),
            }
        }
    }
}

/// Compares the clock with the last written time and with a gateway's clock.
pub(super) fn check_clock(location: &Location, now: SystemTime, gateway: Option<SystemTime>) -> Diagnosis {
    let mend = "set the clock, and let it follow time servers: timedatectl set-ntp true";
    let written = match location {
        Location::Directory(directory) => last_written(&directory.join("journal")).ok().flatten(),
        // The servers use the database's clock.
        Location::Database(_) => None,
    };
    let (shown, tolerance) = (text_of(now), CLOCK_TOLERANCE.as_secs());
    if let Some(written) = written.filter(|written| *written > now + CLOCK_TOLERANCE) {
        let text =
            format!("it is {shown} by the clock, and the store was written later, at {}; {mend}", text_of(written));
        return failed(text);
    }
    let Some(gateway) = gateway else {
        return in_order(format!("it is {shown} by the clock; no gateway to compare it with"));
    };
    let off = gateway.duration_since(now).unwrap_or_else(|error| error.duration());
    let compared = format!("it is {shown} by the clock, and {} by a gateway's", text_of(gateway));
    match off > CLOCK_TOLERANCE {
        true => failed(format!("{compared}; {mend}")),
        false => in_order(format!("{compared}, less than {tolerance} s off")),
    }
}

fn last_written(directory: &Path) -> io::Result<Option<SystemTime>> {
    let times = fs::read_dir(directory)?.map(|entry| entry?.metadata()?.modified());
    Ok(times.collect::<io::Result<Vec<_>>>()?.into_iter().max())
}

fn text_of(time: SystemTime) -> String {
    let millis = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let time = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millis(millis).ok());
    time.map_or("an unknown time".to_owned(), |time| time.to_string())
}

/// This directory, or its nearest ancestor that exists.
fn existing(directory: &Path) -> PathBuf {
    let directory = absolute(directory).unwrap_or_else(|_| directory.to_owned());
    directory.ancestors().find(|path| path.exists()).map_or(directory.clone(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{super::diagnosis::Verdict, *};

    #[test]
    fn a_clock_is_wrong_if_it_is_behind_the_store_or_differs_from_a_gateways() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("journal")).unwrap();
        fs::write(directory.path().join("journal/1"), "").unwrap();
        let (location, now) = (Location::Directory(directory.path().to_owned()), SystemTime::now());
        let minutes = |n: u64| Duration::from_secs(60 * n);
        for (now, gateway, verdict) in [
            (now, None, Verdict::InOrder),
            (now - minutes(5), None, Verdict::Failed),
            (now, Some(now - Duration::from_secs(2)), Verdict::InOrder),
            (now, Some(now + minutes(3)), Verdict::Failed),
            (now, Some(now - minutes(3)), Verdict::Failed),
        ] {
            assert_eq!(check_clock(&location, now, gateway).0, verdict);
        }
    }

    #[test]
    fn a_missing_directory_is_on_the_disk_of_its_parent() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(existing(&directory.path().join("a/b")), directory.path());
        let found = check_disk(&directory.path().join("a/b"));
        assert!(found.1.contains(directory.path().to_str().unwrap()), "{}", found.1);
    }
}
