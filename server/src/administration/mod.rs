//! The administration API, `/admin/v1`: what the commands of the program do, over HTTP.
//!
//! A table says which request has which method and path. Both sides use it: a server to read a request, and the command
//! line to write one. The caller is the owner of the server's socket, the holder of a platform key, or a person with a
//! role.

mod answer;
mod client;
mod description;
mod message;
mod routes;
pub mod socket;
mod who;

pub use answer::{Answered, answer};
pub use client::{Remote, ask, ask_socket};
pub use socket::MAX_BODY_BYTES;
pub use who::{Grant, Who};
