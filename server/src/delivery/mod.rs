//! Sending events to the merchants' endpoints, apart from any request.

mod dispatcher;
mod target;

pub(crate) use dispatcher::Dispatcher;
pub(crate) use target::TargetPolicy;
