//! The platform of an engine: a disk, a store for the tree's records, and a process.

use std::{path::Path, process, sync::Arc};

use crate::{
    disk::{Disk, SystemDisk},
    error::OpenError,
    store::{self, Store},
};

/// The operating system, or a simulation of it.
pub(crate) trait Platform: Disk {
    /// Opens the records of a tree in a directory without changing them, or creates an empty store. sled opens its files by
    /// itself.
    fn open_store(&self, directory: &Path) -> Result<Arc<dyn Store>, OpenError>;
    /// Whether the engine starts threads; in a simulation it does not.
    fn has_threads(&self) -> bool;
    fn process_id(&self) -> u32;
}

impl Platform for SystemDisk {
    fn open_store(&self, directory: &Path) -> Result<Arc<dyn Store>, OpenError> {
        store::open_sled(directory)
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn process_id(&self) -> u32 {
        process::id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_returns_the_id_of_this_process() {
        assert_eq!(SystemDisk.process_id(), std::process::id());
    }
}
