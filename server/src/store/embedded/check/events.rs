//! Lists of events, and where in them each event is.

use payments_core::EventId;

use super::{
    super::{
        events::{of_line, of_place},
        keys::{self, List},
        packed,
    },
    Check,
};
use crate::{domain::Scope, store::StoreError};

impl Check<'_> {
    /// Whether a line at a position of a list of events names an event of its payment, which is said to be there.
    pub(super) fn event_belongs(&mut self, key: &[u8], line: &str, position: u64) -> Result<bool, StoreError> {
        let Some(entry) = of_line(line) else { return Ok(false) };
        let Some(stored) = self.stored(Some(entry.payment.as_str()))? else { return Ok(false) };
        let scope = stored.session.scope();
        let has_it = stored.events.iter().any(|event| event.id == entry.id && event.event == entry.kind);
        let is_there = self.place_of(&entry.id)? == Some((scope.clone(), position));
        Ok(has_it && is_there && key == List::events(&scope).leaf(position))
    }

    /// Where an event is said to be.
    pub(super) fn place_of(&self, id: &EventId) -> Result<Option<(Scope, u64)>, StoreError> {
        let places = self.get(&keys::event_places(id))?.unwrap_or_default();
        Ok(packed::lines(&places).filter_map(of_place).find(|(of, _)| of == id).map(|(_, place)| place))
    }

    /// Each event that is said to be at a position is there.
    pub(super) fn event_places(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for line in packed::lines(value) {
            let mut is_there = false;
            if let Some((id, (scope, position))) = of_place(line) {
                let leaf = self.get(&List::events(&scope).leaf(position))?.unwrap_or_default();
                let nth = usize::try_from(position % keys::LEAF).unwrap_or(usize::MAX);
                is_there = packed::lines(&leaf).nth(nth).and_then(of_line).is_some_and(|entry| entry.id == id);
            }
            self.expect(is_there, key, format_args!("says {line}, and that event is not there"));
        }
        Ok(())
    }
}
