//! Operations on a whole store: check, export, migrate, restore, scheduled backups. Also `doctor`.

mod check;
mod doctor;
mod export;
mod migrate;
mod open;
mod progress;
mod restore;
mod schedule;

pub(crate) use check::check;
pub(crate) use doctor::doctor;
pub(crate) use export::export;
pub(crate) use migrate::migrate;
#[cfg(test)]
pub(crate) use migrate::move_store;
pub(crate) use open::remove_abandoned_copies;
pub(crate) use restore::restore;
pub(crate) use schedule::back_up_regularly;
