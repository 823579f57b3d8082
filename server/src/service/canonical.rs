//! Fingerprints of JSON texts: equal for texts with the same meaning, different for all others.
//!
//! | Two texts differ in | Fingerprints |
//! |---|---|
//! | the order of an object's members, at any depth | equal |
//! | whitespace between tokens | equal |
//! | how a string is escaped (`"\u0061"` and `"a"`) | equal |
//! | an empty text and `{}` | equal: an absent body has no members |
//! | how a number is written (`1.1`, `1.10`, `11e-1`) | different: the API returns metadata byte for byte |
//! | an array's order, any string, any name | different |
//! | the values of a repeated name, or their order | different |
//!
//! A text that is not JSON, or nests deeper than [`MAX_DEPTH`], is fingerprinted by its bytes. Each level of nesting
//! reads its text again, so the cost is the length times the depth.

use std::{fmt, iter};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Maximum depth of nested objects and arrays, the same as serde_json's.
const MAX_DEPTH: usize = 128;

/// SHA-256 of a JSON text's meaning, in hex.
pub(super) fn fingerprint(text: &[u8]) -> String {
    let json: &[u8] = if text.is_empty() { b"{}" } else { text };
    let mut parts = Parts(Vec::with_capacity(4 * text.len()));
    let value = serde_json::from_slice(json).ok();
    if value.and_then(|value| parts.value(value, MAX_DEPTH)).is_none() {
        parts.0.clear();
        parts.part(b'!', text);
    }
    hex::encode(Sha256::digest(&parts.0))
}

/// Reads the members of a JSON object in their order. A name may be repeated.
struct Members;

impl<'t> Visitor<'t> for Members {
    type Value = Vec<(String, &'t RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

/// The bytes to hash. Each part begins with its kind and its length, so different values give different bytes.
struct Parts(Vec<u8>);

impl Parts {
    /// Adds a value. Returns `None` if it nests deeper than `depth`, or if an escape in a string encodes no character.
    fn value(&mut self, value: &RawValue, depth: usize) -> Option<()> {
        let text = value.get();
        match text.as_bytes().first()? {
            b'{' => {
                let depth = depth.checked_sub(1)?;
                let mut members = serde_json::Deserializer::from_str(text).deserialize_map(Members).ok()?;
                // Stable: the values of a repeated name keep their order.
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                self.length(b'{', members.len());
                for (name, value) in members {
                    self.part(b':', name.as_bytes());
                    self.value(value, depth)?;
                }
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                self.length(b'[', items.len());
                items.into_iter().try_for_each(|item| self.value(item, depth))?;
            }
            b'"' => self.part(b'"', serde_json::from_str::<String>(text).ok()?.as_bytes()),
            _ => self.part(b'0', text.as_bytes()),
        }
        Some(())
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.0.push(kind);
        self.0.extend_from_slice(&(length as u64).to_be_bytes());
    }

    fn part(&mut self, kind: u8, bytes: &[u8]) {
        self.length(kind, bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    #[test]
    fn only_texts_with_the_same_meaning_have_equal_fingerprints() {
        for (one, other, is_equal) in [
            (r#"{"a":1,"b":{"c":[1,2],"d":null}}"#, " {\"b\" : {\"d\":null,\n\"c\":[ 1 , 2 ]},\t\"a\": 1}\r\n", true),
            (r#"{"a":"\u0061\/\n\ud83d\ude00"}"#, "{\"\\u0061\":\"a/\\u000a\u{1f600}\"}", true),
            ("", "{}", true),
            ("", "null", false),
            ("", " ", false),
            ("[]", "{}", false),
            (r#"{"a":1.1}"#, r#"{"a":1.10}"#, false),
            (r#"{"a":100}"#, r#"{"a":1e2}"#, false),
            (r#"{"a":1}"#, r#"{"a":"1"}"#, false),
            (r#"{"a":null}"#, "{}", false),
            (r#"{"a":null}"#, r#"{"a":"null"}"#, false),
            (r#"{"a":12345678901234567890123}"#, r#"{"a":12345678901234567890124}"#, false),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
            (r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#, false),
            (r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#, false),
            (r#"{"a":"b c"}"#, r#"{"a":"bc"}"#, false),
            (r#"{"a":"b\\"}"#, r#"{"a":"b\""}"#, false),
            (r#"{"A":1}"#, r#"{"a":1}"#, false),
            // A repeated name: the API returns metadata with both values, in their order.
            (r#"{"a":1,"b":0,"a":2}"#, r#"{"b":0,"a":1,"a":2}"#, true),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
            (r#"{"a":1,"a":1}"#, r#"{"a":1}"#, false),
        ] {
            assert_eq!(fingerprint(one.as_bytes()) == fingerprint(other.as_bytes()), is_equal, "{one} and {other}");
        }
    }

    #[test]
    fn stored_fingerprints_stay_valid() {
        for (text, stored) in [
            (
                r#"{"b": {}, "a": [1.10, "\u00e9\/", null], "b": 2e3}"#,
                "54231269b542d22c586304e7f9a01a196e311f95c80fc9e96abc308baee39710",
            ),
            ("", "5a3590fbe3ffbfe0a65167de3111dcd0cde5e8025d0fc5db3aec6ee0f4cedcfb"),
            ("[1,]", "c526b3864c2970cf0d8f8e556ba84d38e4e1c7d5bc2ca05f7383a9df0f06ad38"),
        ] {
            assert_eq!(fingerprint(text.as_bytes()), stored, "{text}");
        }
    }

    #[test]
    fn invalid_or_too_deep_json_is_compared_by_bytes() {
        let nested = |depth: usize, blank: &str| format!("{}{blank}{}", "[".repeat(depth), "]".repeat(depth));
        for (one, other, is_equal) in [
            (nested(MAX_DEPTH, ""), nested(MAX_DEPTH, " "), true),
            (nested(MAX_DEPTH + 1, ""), nested(MAX_DEPTH + 1, " "), false),
            (nested(30_000, ""), nested(30_000, ""), true),
            ("[1,]".into(), "[1, ]".into(), false),
            (r#"{"a":"\ud800"}"#.into(), r#"{ "a":"\ud800"}"#.into(), false),
            ("{} {}".into(), "{}".into(), false),
        ] {
            assert_eq!(fingerprint(one.as_bytes()) == fingerprint(other.as_bytes()), is_equal, "{one} and {other}");
        }
        assert_ne!(fingerprint(b"\"\xff\""), fingerprint(b"\"\xfe\""));
    }

    /// A generated value. Its names are unique, so reordering members keeps the meaning.
    #[derive(Debug, Clone)]
    enum Built {
        Literal(String),
        Text(String),
        Array(Vec<Built>),
        Object(Vec<(String, Built)>),
    }

    fn built() -> impl Strategy<Value = Built> {
        let literal = prop_oneof!["-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9])?", "true|false|null"];
        let leaf = prop_oneof![literal.prop_map(Built::Literal), any::<String>().prop_map(Built::Text)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Built::Array),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| Built::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes a value in one of many ways: `choices` picks blanks, escapes and the order of members.
    fn write(value: &Built, choices: &mut impl Iterator<Item = usize>, out: &mut String) {
        let blank = |choices: &mut dyn Iterator<Item = usize>, out: &mut String| {
            out.push_str(["", " ", "\n\t", "\r "][choices.next().unwrap() % 4]);
        };
        blank(choices, out);
        match value {
            Built::Literal(text) => out.push_str(text),
            Built::Text(text) => write_text(text, choices, out),
            Built::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    write(item, choices, out);
                }
                out.push(']');
            }
            Built::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let first = choices.next().unwrap() % members.len().max(1);
                members.rotate_left(first);
                if choices.next().unwrap().is_multiple_of(2) {
                    members.reverse();
                }
                out.push('{');
                for (index, (name, item)) in members.into_iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    blank(choices, out);
                    write_text(name, choices, out);
                    blank(choices, out);
                    out.push(':');
                    write(item, choices, out);
                }
                out.push('}');
            }
        }
        blank(choices, out);
    }

    fn write_text(text: &str, choices: &mut impl Iterator<Item = usize>, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            if choices.next().unwrap().is_multiple_of(3) || character.is_control() || matches!(character, '"' | '\\') {
                let mut units = [0; 2];
                character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            } else {
                out.push(character);
            }
        }
        out.push('"');
    }

    fn written(value: &Built, seed: u64) -> String {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut out = String::new();
        write(value, &mut std::iter::repeat_with(|| rng.usize(..)), &mut out);
        out
    }

    /// The leaves of a value, each of which a test can change.
    fn leaves(value: &mut Built) -> Vec<&mut Built> {
        match value {
            Built::Literal(_) | Built::Text(_) => vec![value],
            Built::Array(items) if items.is_empty() => vec![value],
            Built::Object(members) if members.is_empty() => vec![value],
            Built::Array(items) => items.iter_mut().flat_map(leaves).collect(),
            Built::Object(members) => members.iter_mut().flat_map(|(_, item)| leaves(item)).collect(),
        }
    }

    proptest! {
        #[test]
        fn two_spellings_of_a_value_have_the_same_fingerprint(value in built(), seeds in any::<(u64, u64)>()) {
            let (one, other) = (written(&value, seeds.0), written(&value, seeds.1));
            prop_assert_eq!(fingerprint(one.as_bytes()), fingerprint(other.as_bytes()), "{} and {}", one, other);
        }

        #[test]
        fn changing_one_leaf_changes_the_fingerprint(value in built(), at in any::<Index>(), seed: u64) {
            let mut changed = value.clone();
            let mut all = leaves(&mut changed);
            let index = at.index(all.len());
            match &mut *all[index] {
                Built::Literal(text) if text.ends_with(|last: char| last.is_ascii_digit()) => text.push('0'),
                Built::Literal(text) => *text = if text == "true" { "false".into() } else { "true".into() },
                Built::Text(text) => text.push('x'),
                empty => *empty = Built::Literal("null".into()),
            }
            let (one, other) = (written(&value, seed), written(&changed, seed));
            // The added digit may turn `0` into `00`, which is not JSON. The fingerprints still differ.
            prop_assert_ne!(fingerprint(one.as_bytes()), fingerprint(other.as_bytes()), "{} and {}", one, other);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in any::<Vec<u8>>(), text in "[\\[\\]{}:,\"\\\\ 0-9a-z]{0,40}") {
            fingerprint(&bytes);
            fingerprint(text.as_bytes());
        }
    }
}
