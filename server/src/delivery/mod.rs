//! Sending events to the merchants' endpoints, apart from any request.

mod dispatcher;
mod lanes;
mod sender;
mod target;

pub(crate) use dispatcher::Dispatcher;
pub(crate) use sender::Sender;
pub(crate) use target::TargetPolicy;
