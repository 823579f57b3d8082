//! Lets root run commands on another user's store.
//!
//! A service has a user of its own. If root created or replaced a file in its store, the service could not start. So a
//! command that root runs acts as the store's owner. Then every file has the right owner from the beginning, even if the
//! command is killed. To give files away afterwards, root would have to walk a directory that another user can change.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, lchown},
    path::{Path, absolute},
};

use rustix::{
    fs::{Gid, Uid},
    process::geteuid,
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::{cli::CommandError, log, store::embedded};

/// If root runs this process, makes it act as the owner of these directories. Call it before any other thread starts: a
/// thread has its own user, which it inherits from the thread that starts it.
pub fn act_as_owner_of(directories: &[&Path]) -> Result<(), CommandError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let mut owners: Vec<_> =
        directories.iter().filter_map(|directory| Some((*directory, owner_of(directory)?))).collect();
    owners.retain(|(_, (user, _))| *user != 0);
    let Some((directory, (user, group))) = owners.first().copied() else { return Ok(()) };
    let name = directory.display();
    if let Some((other, (its, _))) = owners.iter().find(|(_, owner)| owner.0 != user) {
        let other = other.display();
        return Err(format!(
            "user {user} owns {name} and user {its} owns {other}; give both to one user with chown -R, and run this again"
        )
        .into());
    }
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(group));
    let changed = set_thread_groups(&[gid])
        .and_then(|()| set_thread_res_gid(gid, gid, gid))
        .and_then(|()| set_thread_res_uid(uid, uid, uid));
    changed.map_err(|error| {
        format!("user {user} owns {name}, and root may not act as that user here ({error}); run it as that user")
    })?;
    log::say(format_args!("acting as user {user}, who owns {name}"));
    Ok(())
}

/// The user and the group that own the store in a directory. Without a store: the owners of the directory, or of its nearest
/// ancestor that exists.
fn owner_of(directory: &Path) -> Option<(u32, u32)> {
    let directory = absolute(directory).ok()?;
    let store = embedded::tree_in(&directory);
    let found = [&*store].into_iter().chain(directory.ancestors()).find_map(|path| fs::metadata(path).ok())?;
    Some((found.uid(), found.gid()))
}

/// Returns a function that gives a replacement of this directory, with its contents, to this directory's owner.
pub fn keep_owner(directory: &Path) -> impl FnOnce(&Path) -> io::Result<()> + use<> {
    let owner = fs::metadata(directory).ok().map(|found| (found.uid(), found.gid()));
    move |made| match owner {
        Some((user, group)) if user != geteuid().as_raw() => give(made, user, group),
        _ => Ok(()),
    }
}

/// Gives a directory to a user, its contents first. So the user can change nothing in it before everything is given.
fn give(path: &Path, user: u32, group: u32) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| give(&entry?.path(), user, group))?;
    }
    lchown(path, Some(user), Some(group))
}
