//! What the errors of a database mean.

use std::error::Error as StdError;

use tokio_postgres::{Error, error::SqlState};

use crate::store::StoreError;

/// An error with what the database said: its own text is only a kind.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": "),
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    fn source<'e>(error: &&'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
        (**error).source()
    }
    std::iter::successors(Some(error as &(dyn StdError + 'static)), source)
}

/// What a read or a change, of which nothing was made, failed with.
pub(super) fn store_error(error: &Error) -> StoreError {
    match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => StoreError::Denied(describe(error)),
        _ => StoreError::unavailable(describe(error)),
    }
}

/// What to do about a host that refuses a connection.
pub(super) fn advice(error: &Error) -> Option<&'static str> {
    Some(match error.code()?.code() {
        "28000" | "28P01" => "check the role, its password and pg_hba.conf",
        "3D000" => "check the name of the database in the URL, or create it",
        "42501" => "grant the role CONNECT on the database",
        "53300" => "raise max_connections, or stop other clients",
        "57P03" => "it starts or stops; try again in a moment",
        _ => return None,
    })
}
