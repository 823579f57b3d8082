//! The commands of the program, except `serve`.

pub(crate) mod admin;
pub(crate) mod admin_socket;
pub(crate) mod developer;
pub(crate) mod docs;
pub(crate) mod health;
mod no_store;
pub(crate) mod operations;
