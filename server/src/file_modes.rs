//! Who may read what the server writes: nobody but its own user.
//!
//! A store holds webhook secrets in clear. Its files are made by several hands (the journal, the tree, backups, copies), so the
//! process itself leaves out the bits of others from whatever it creates; and what is readable all the same, since an
//! earlier version or somebody else made it so, is said at start.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::{fs::Mode, process::umask};

/// The bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// From now on every file that this process creates is 0600 at most, and every directory 0700.
pub(crate) fn keep_to_owner() {
    umask(Mode::from_raw_mode(OTHERS));
}

/// The files of a data directory that others can read, with the directories that let them through.
pub(crate) fn readable_by_others(directory: &Path) -> io::Result<Vec<PathBuf>> {
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

/// Says which files of a data directory others can read, and what to do.
pub(crate) fn warn_of_readable(directory: &Path) {
    match readable_by_others(directory) {
        Ok(found) => {
            if let Some(first) = found.first() {
                tracing::warn!(files = found.len(), first = %first.display(), "other users of this machine can read files of \
                    the store, which holds webhook secrets; chmod -R go= the data directory, and rotate the secrets");
            }
        }
        Err(error) => tracing::warn!(%error, "it cannot be told who may read the data directory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_read_is_found_behind_directories_that_let_them_through() {
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
