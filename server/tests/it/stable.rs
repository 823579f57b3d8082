//! Makes a server's text comparable: ids, times, secrets and durations become the same in each run.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use payments_client::Timestamp;

/// The digits that every replaced id has before its number.
const ID: &str = "0199c2d4e61b76bcb9d5d8034d42";
const HEX: usize = 32;
/// The replacement of the slot, which follows in ids of records.
const SLOT: &str = "1a7";
const SECRET_HEX: usize = 64;
/// 2026-03-01T10:00:00Z, which replaces the start of the run.
const START: i64 = 1_772_359_200_000;
/// Longer than a run takes.
const STEP: i64 = 5 * 60_000;

pub(crate) struct Stable {
    started: i64,
    /// Each text and its replacement.
    replaced: Vec<(String, String)>,
}

impl Stable {
    /// The replacement of each webhook secret.
    pub(crate) const SECRET: &str = "whsec_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// Replaces times since now.
    pub(crate) fn from_now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        Self { started: i64::try_from(now).unwrap(), replaced: Vec::new() }
    }

    /// Adds a replacement of a text.
    pub(crate) fn with(mut self, text: &str, stands_for_it: &str) -> Self {
        self.replaced.push((text.to_owned(), stands_for_it.to_owned()));
        self
    }

    /// The stable form of a text. Ids get numbers in the order of their first appearance.
    pub(crate) fn of(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (what, with) in &self.replaced {
            text = text.replace(what, with);
        }
        let (mut out, mut ids, mut rest) = (String::new(), HashMap::<String, usize>::new(), &*text);
        while let Some(char) = rest.chars().next() {
            let hex = rest.bytes().skip(1).take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
            let time = rest.get(..24).filter(|_| char == '2').and_then(|time| time.parse::<Timestamp>().ok());
            let (taken, replacement) = match char {
                '_' if hex == SECRET_HEX && out.ends_with("whsec") => {
                    (1 + hex, Self::SECRET["whsec".len()..].to_owned())
                }
                '_' if hex == HEX || hex == HEX + SLOT.len() => {
                    let (number, slot) = (ids.len() + 1, if hex == HEX { "" } else { SLOT });
                    (1 + hex, format!("_{ID}{:04x}{slot}", ids.entry(rest[1..=hex].to_owned()).or_insert(number)))
                }
                char => time.map_or_else(|| (char.len_utf8(), char.to_string()), |time| (24, self.time(time))),
            };
            out.push_str(&replacement);
            rest = &rest[taken..];
            // A duration differs in each run, and so does a position in the request log.
            for (before, stands_for_it) in [("\"durationMs\": ", "12"), ("\"next\": \"", "48")] {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                let is_number = rest.as_bytes().get(digits).is_none_or(|byte| !byte.is_ascii_alphanumeric());
                if out.ends_with(before) && digits > 0 && is_number {
                    out.push_str(stands_for_it);
                    rest = &rest[digits..];
                }
            }
        }
        out
    }

    /// The time since the start in whole steps. A time before the start is not from this run and stays.
    fn time(&self, time: Timestamp) -> String {
        let passed = time.as_millis() - self.started;
        match passed {
            ..0 => time.to_string(),
            _ => Timestamp::from_millis(START + passed / STEP * STEP).unwrap().to_string(),
        }
    }
}

#[test]
fn two_runs_give_the_same_text() {
    let stable = Stable::from_now();
    let run = |id: char, ms: i64| {
        let (id, secret) = (id.to_string().repeat(HEX), id.to_string().repeat(SECRET_HEX));
        let time = |after: i64| Timestamp::from_millis(stable.started + after + ms).unwrap();
        format!(
            "pay_{id} evt_{} {{\"durationMs\": {ms}, \"next\": \"{ms}\"}} whsec_{secret} pay_{id} {} {} é",
            "9".repeat(HEX),
            time(0),
            time(1_800_000)
        )
    };
    let expected = format!(
        "pay_{ID}0001 evt_{ID}0002 {{\"durationMs\": 12, \"next\": \"48\"}} {} pay_{ID}0001 2026-03-01T10:00:00.000Z \
         2026-03-01T10:30:00.000Z é",
        Stable::SECRET
    );
    assert_eq!(stable.of(&run('a', 5)), expected);
    assert_eq!(stable.of(&run('b', 70_000)), expected);
}
