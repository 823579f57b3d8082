//! Reads the parameters of a query.

use std::{fmt, str::FromStr};

use crate::{ErrorCode, Timestamp, validation::Invalid};

/// The error of a text that must be a time.
pub(crate) const TIME: &str = "must be a time such as 2026-03-01T00:00:00Z, or a date such as 2026-03-01";

/// The parameters of a query, and the errors of those read so far.
pub(crate) struct Query<P> {
    parameter: P,
    pub(crate) invalid: Invalid,
}

impl<P: Fn(&str) -> Option<String>> Query<P> {
    /// `parameter` returns a parameter's value.
    pub(crate) fn of(parameter: P) -> Self {
        Self { parameter, invalid: Invalid::default() }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.parameter)(name)
    }

    /// Parses a parameter, and adds `error` if that fails.
    pub(crate) fn parsed<T: FromStr>(&mut self, name: &str, code: ErrorCode, error: impl fmt::Display) -> Option<T> {
        self.text(name)?.parse().map_or_else(|_| self.invalid.add(name, code, error, None), Some)
    }

    /// Reads a moment.
    pub(crate) fn time(&mut self, name: &str) -> Option<Timestamp> {
        let read = Timestamp::from_input(&self.text(name)?);
        read.map_or_else(|_| self.invalid.add(name, ErrorCode::FieldInvalid, TIME, None), Some)
    }

    /// Reads `limit`, the number of items, from 1 to `max`.
    pub(crate) fn limit<N: FromStr + PartialOrd + From<u8> + fmt::Display>(&mut self, max: N) -> Option<N> {
        self.whole("limit", max)
    }

    /// Reads a whole number from 1 to `max`.
    pub(crate) fn whole<N: FromStr + PartialOrd + From<u8> + fmt::Display>(&mut self, name: &str, max: N) -> Option<N> {
        let given = self.text(name)?.parse().ok();
        given.filter(|number| *number >= N::from(1) && *number <= max).or_else(|| {
            self.invalid.add(name, ErrorCode::FieldInvalid, format!("must be a whole number from 1 to {max}"), None)
        })
    }
}
