//! The process and what it shares: its user, files, network, memory and locks.

pub(crate) mod budget;
pub(crate) mod descriptors;
pub(crate) mod file_modes;
pub(crate) mod lock;
pub(crate) mod owner;
pub(crate) mod poll;
pub(crate) mod reach;
