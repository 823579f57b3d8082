//! Operations on a whole store: check, export, migrate, restore, scheduled backups. Also `doctor`.

mod check;
mod doctor;
mod export;
mod migrate;
mod open;
mod progress;
mod restore;
mod schedule;
mod settlement_report;
mod store_copy;

pub use check::check;
pub use doctor::doctor;
pub use export::export;
pub(super) use export::{Rows, settled_row, signed};
pub use migrate::migrate;
pub use restore::restore;
pub use schedule::back_up_regularly;
pub use settlement_report::settlement_report;
pub use store_copy::remove_abandoned_copies;
