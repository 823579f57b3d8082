//! Sends events to the merchants' endpoints, in the background.

mod attempt;
mod backlog;
mod client;
mod connection;
mod connector;
mod dispatcher;
mod fan_out;
mod fault;
mod lane;
mod lanes;
mod lookups;
mod permits;
mod retries;
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
#[cfg(feature = "simulation")]
pub use fault::Fault;
pub use retries::DueRetries;
pub use sender::{LONGEST_ATTEMPT, LONGEST_PING, Sender};
pub use target::TargetPolicy;
