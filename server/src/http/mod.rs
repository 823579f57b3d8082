//! HTTP: connections, route table, handlers.
//!
//! The [`listener`] looks up a request's route in the table ([`routes`](mod@routes)) and hands the request to warp's filter.
//! The [`gate`] authenticates the caller and checks rate limit and method. Then the handler responds. No filter rejects a
//! request.

mod account;
mod administration;
mod assets;
mod by_address;
mod chart;
mod checkout;
mod client_address;
mod dashboard;
mod docs;
mod events;
mod gate;
mod gateways;
mod head;
mod health;
mod home;
mod hosts;
mod idempotent;
mod input;
mod language;
mod limit;
mod lingering;
mod listener;
mod logged;
mod metrics_at;
mod own_listener;
mod pace;
mod page;
mod parameters;
mod parts;
mod payments;
mod payouts;
mod people;
mod readiness;
mod reference;
mod reply;
mod request;
mod request_id;
mod requests;
mod route;
mod routes;
mod sandbox;
mod server;
mod shared_windows;
mod statement;
mod static_files;
mod summary;
mod theme;
mod transactions;
mod unsent;
mod webhooks;
mod windows;
mod work;

pub use by_address::ConnectionsByAddress;
pub use client_address::TrustedProxies;
pub use hosts::Hosts;
pub use limit::RateLimits;
pub use listener::{Edge, Limits, Listener};
pub use logged::WithRequest;
pub use metrics_at::MetricsAt;
pub use own_listener::OwnListener;
#[cfg(feature = "simulation")]
pub use parts::Parts;
pub use people::{GroupGrant, People, PeopleSettings};
pub use readiness::Readiness;
pub use reference::Reference;
pub use server::Server;
