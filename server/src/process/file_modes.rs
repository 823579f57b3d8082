//! File permissions: only the server's own user may read what it writes.
//!
//! A store contains webhook secrets in clear. Several parts create its files (journal, tree, backups, copies), so the umask
//! of the process restricts them all. Files that others can read anyway, such as copied ones, are logged at start.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::{fs::Mode, process::umask};

const OTHERS: u32 = 0o077;

/// Restricts every file that this process creates to mode 0600, and every directory to 0700.
pub fn keep_to_owner() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// Lets others read the files that this process creates.
pub fn share_with_others() {
    umask(Mode::from_raw_mode(0o022));
}

/// The files below a directory that other users can read. Skips a directory that they cannot enter.
pub fn readable_by_others(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mode = fs::metadata(directory)?.permissions().mode();
    let mut found = Vec::new();
    if mode & OTHERS == 0 {
        return Ok(found);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            found.extend(readable_by_others(&entry.path())?);
        } else if metadata.is_file() && metadata.permissions().mode() & 0o044 != 0 {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Logs a warning if other users can read files of a data directory.
pub fn warn_of_readable(directory: &Path) {
    match readable_by_others(directory).as_deref() {
        Ok([]) => {}
        Ok(found @ [first, ..]) => {
            tracing::warn!(files = found.len(), first = %first.display(), "other users of this machine \
            can read files of the store, which holds webhook secrets; chmod -R go= the data directory, and rotate the secrets")
        }
        Err(error) => tracing::warn!(%error, "cannot check who may read the data directory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_files_are_found_only_in_directories_that_others_can_enter() {
        let directory = tempfile::tempdir().unwrap();
        let open = directory.path().join("open");
        let closed = directory.path().join("closed");
        for (directory, mode) in [(&open, 0o755), (&closed, 0o700)] {
            fs::create_dir(directory).unwrap();
            for (name, mode) in [("secret", 0o600), ("readable", 0o644)] {
                fs::write(directory.join(name), "").unwrap();
                fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(readable_by_others(directory.path()).unwrap(), [open.join("readable")]);
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(readable_by_others(directory.path()).unwrap().is_empty());
    }
}
