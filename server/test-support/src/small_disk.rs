//! A small disk in memory, which a test can fill.

use std::{path::Path, process::Command};

/// A small tmpfs. Mounting it needs root.
pub struct SmallDisk<'d>(&'d Path);

impl<'d> SmallDisk<'d> {
    /// Mounts a tmpfs of a size such as `32m`.
    pub fn mount(at: &'d Path, size: &str) -> Self {
        let as_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut mount = Command::new(if as_root { "mount" } else { "sudo" });
        if !as_root {
            mount.args(["-n", "mount"]);
        }
        let options = format!("size={size},mode=0777");
        let mounted = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).status().unwrap();
        assert!(mounted.success(), "cannot mount a tmpfs; run this test as root");
        Self(at)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // Unmount lazily: the engine's threads release its files a moment after the engine is closed.
        if !Command::new("umount").arg("-l").arg(self.0).status().is_ok_and(|status| status.success()) {
            let _ = Command::new("sudo").args(["-n", "umount", "-l"]).arg(self.0).status();
        }
    }
}
