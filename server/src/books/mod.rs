//! What is done with a whole store: proving it, copying it, writing it out for a bookkeeper.

mod check;
mod export;
mod open;
mod progress;
mod restore;
mod schedule;

pub(crate) use check::check;
pub(crate) use export::export;
pub(crate) use open::remove_left_copies;
pub(crate) use restore::restore;
pub(crate) use schedule::{Schedule, back_up_regularly};

use crate::failure::Failure;
