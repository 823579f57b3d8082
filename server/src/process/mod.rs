//! The process and what it shares: its user, files, network and memory.

pub(crate) mod budget;
pub(crate) mod descriptors;
pub(crate) mod file_modes;
pub(crate) mod owner;
pub(crate) mod poll;
pub(crate) mod reach;
