//! The embedded store: the [layout](super::layout) over bytes in one directory, for one process.

mod maintenance;
mod open;
#[cfg(feature = "simulation")]
mod simulated;
#[cfg(test)]
mod tests;

pub use journaled_tree::{BackupError, Closing, LeftOut, Restored, Sources, Until};

pub use self::{
    maintenance::{check_journal, count_backup, restore},
    open::{OpenError, is_there, tree_in},
};
use super::{bytes::Journaled, layout::Placed};

/// A store in a directory.
pub type EmbeddedStore = Placed<Journaled>;
