//! The commands of the program, except `serve`.

pub mod admin;
pub mod books;
mod connection;
pub mod customers;
pub mod developer;
pub mod docs;
pub mod health;
mod no_store;
pub mod operations;
pub mod operators;
pub mod payouts;
mod sessions;
pub mod settlements;
