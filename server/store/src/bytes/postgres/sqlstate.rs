//! What the errors of a database mean.

use std::{error::Error as StdError, io};

use tokio_postgres::{Error, error::SqlState};

use crate::StoreError;

/// The text of an error with the database's message. The driver's own text has only the kind of error.
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

/// The error of a read, or of a change that was not made.
impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Denied(describe(&error)),
            _ => Self::unavailable(describe(&error)),
        }
    }
}

/// Whether only a person can correct the cause: a role, a password, a database, a privilege, a table, a certificate.
pub(super) fn is_lasting(error: &Error) -> bool {
    /// Invalid authorization, database, schema; syntax or access rule; a feature that the database lacks.
    const CLASSES: [&str; 5] = ["28", "3D", "3F", "42", "0A"];
    match error.code() {
        Some(code) => CLASSES.iter().any(|class| code.code().starts_with(class)),
        None => is_of_tls(error),
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

/// Whether the database's certificate is refused or missing.
fn is_of_tls(error: &Error) -> bool {
    let of_rustls = |cause: &(dyn StdError + 'static)| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let refused = |error: &rustls::Error| matches!(error, rustls::Error::InvalidCertificate(_));
        inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some_and(refused)
    };
    causes(error).any(of_rustls) || error.source().is_some_and(|cause| cause.to_string() == NO_TLS)
}

/// The driver's message about a host without TLS, if the URL asks for TLS.
const NO_TLS: &str = "server does not support TLS";
