//! The commands of the program, except `serve`.

pub mod admin;
pub mod admin_socket;
pub mod books;
pub mod developer;
pub mod docs;
pub mod health;
mod no_store;
pub mod operations;
pub mod payouts;
pub mod settlements;
