//! The process and what it shares: its user, files, network and memory.

pub mod budget;
pub mod descriptors;
pub mod file_modes;
pub mod owner;
pub mod poll;
pub mod reach;
