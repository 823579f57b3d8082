//! Sends events to the merchants' endpoints, in the background.

mod attempt;
mod backlog;
mod client;
mod connection;
mod connector;
mod dispatcher;
mod fan_out;
mod lane;
mod lanes;
mod lookups;
mod permits;
mod retries;
mod send_error;
mod sender;
mod shares;
mod target;
#[cfg(test)]
mod tests;
mod width;

#[cfg(feature = "simulation")]
pub use client::{Endpoints, RequestBuilder};
pub use dispatcher::Dispatcher;
pub use fan_out::{FanOut, FanOutSignal};
pub use retries::DueRetries;
#[cfg(feature = "simulation")]
pub use send_error::SendError;
pub use sender::{LONGEST_ATTEMPT, LONGEST_PING, Sender};
pub use target::TargetPolicy;
