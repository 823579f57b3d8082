//! Where an inbox stands in the list of events, and where it starts.

use payments_core::{EventId, Timestamp};

/// Where an inbox without a row in its database starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// After the present last event.
    #[default]
    Now,
    /// With the first event that happened at this time or later.
    Since(Timestamp),
    /// With the first event.
    Beginning,
}

/// The cursor, as text in the database: an event's id, `since ` and a time, or `beginning`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cursor {
    Beginning,
    Since(Timestamp),
    After(EventId),
}

const BEGINNING: &str = "beginning";
const SINCE: &str = "since ";

impl Cursor {
    /// `None` if this version does not write this text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(SINCE) {
            Some(time) => time.parse().ok().map(Self::Since),
            None if text == BEGINNING => Some(Self::Beginning),
            None => text.parse().ok().map(Self::After),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Beginning => BEGINNING.into(),
            Self::Since(time) => format!("{SINCE}{time}"),
            Self::After(event) => event.to_string(),
        }
    }
}

impl From<Option<EventId>> for Cursor {
    fn from(event: Option<EventId>) -> Self {
        event.map_or(Self::Beginning, Self::After)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_from_its_text() {
        for text in ["beginning", "since 2026-03-01T00:00:00.000Z", "evt_1"] {
            assert_eq!(Cursor::parse(text).unwrap().text(), text);
        }
        assert_eq!(["", "pay_1", "since today"].map(Cursor::parse), [None, None, None]);
    }
}
