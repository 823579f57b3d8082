//! What is done with a whole store: proving it, copying it, writing it out for a bookkeeper.

mod check;
mod open;
mod progress;

pub(crate) use check::check;

type Failure = Box<dyn std::error::Error + Send + Sync>;
