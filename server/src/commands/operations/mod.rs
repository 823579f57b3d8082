//! Operations on a whole store: check, export, migrate, restore, scheduled backups. Also `doctor`.

mod check;
mod doctor;
mod export;
mod migrate;
mod open;
mod progress;
mod restore;
mod schedule;

pub use check::check;
pub use doctor::doctor;
pub use export::export;
pub use migrate::migrate;
pub use open::remove_abandoned_copies;
pub use restore::restore;
pub use schedule::back_up_regularly;
