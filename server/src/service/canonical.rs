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
//! A text that is not JSON, or nests deeper than [`MAX_DEPTH`], is fingerprinted by its bytes. The cost is linear,
//! except for sorting each object's members by name.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// Maximum depth of nested objects and arrays, the same as serde_json's.
const MAX_DEPTH: usize = 128;

/// SHA-256 of a JSON text's meaning, in hex.
pub(super) fn fingerprint(text: &[u8]) -> String {
    let mut parts = Parts(Vec::with_capacity(4 * text.len()));
    match read(if text.is_empty() { b"{}" } else { text }) {
        Some(value) => parts.value(&value),
        None => parts.part(b'!', text),
    }
    hex::encode(Sha256::digest(&parts.0))
}

/// A JSON value. An object's members are sorted by name.
enum Value<'t> {
    Object(Vec<(Cow<'t, str>, Value<'t>)>),
    Array(Vec<Value<'t>>),
    Text(Cow<'t, str>),
    /// A number, `true`, `false` or `null`, as written.
    Literal(&'t str),
}

fn read(text: &[u8]) -> Option<Value<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    // This validates the grammar, so the reader below only has to find the end of each token.
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    Reader { text, at: 0 }.value(MAX_DEPTH)
}

/// Reads a text that is valid JSON.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// Skips whitespace and returns the next byte, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    /// Consumes the next byte if it is `byte`, and returns whether it did.
    fn consumes(&mut self, byte: u8) -> Option<bool> {
        let is_next = self.peek()? == byte;
        self.at += usize::from(is_next);
        Some(is_next)
    }

    fn value(&mut self, depth: usize) -> Option<Value<'t>> {
        match self.peek()? {
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.array(depth.checked_sub(1)?),
            b'"' => self.string().map(Value::Text),
            _ => self.literal(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value<'t>> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.consumes(b'}')? {
            self.consumes(b',')?;
            self.peek()?;
            let name = self.string()?;
            self.consumes(b':')?;
            members.push((name, self.value(depth)?));
        }
        // Stable: the values of a repeated name keep their order.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Option<Value<'t>> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.consumes(b']')? {
            self.consumes(b',')?;
            items.push(self.value(depth)?);
        }
        Some(Value::Array(items))
    }

    /// Reads and decodes a string. Returns `None` if an escape encodes no character.
    fn string(&mut self) -> Option<Cow<'t, str>> {
        let rest = self.text.get(self.at..)?;
        let mut is_escaped = false;
        let inside = rest.bytes().skip(1).take_while(|byte| {
            let goes_on = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            goes_on
        });
        let length = inside.count() + 2;
        self.at += length;
        let inside = rest.get(1..length - 1)?;
        match inside.contains('\\') {
            true => serde_json::from_str(rest.get(..length)?).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(inside)),
        }
    }

    fn literal(&mut self) -> Option<Value<'t>> {
        let rest = self.text.get(self.at..)?;
        let ends = |byte: u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).map(Value::Literal)
    }
}

/// The bytes to hash. Each part begins with its kind and its length, so different values give different bytes.
struct Parts(Vec<u8>);

impl Parts {
    fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Object(members) => {
                self.length(b'{', members.len());
                for (name, value) in members {
                    self.part(b':', name.as_bytes());
                    self.value(value);
                }
            }
            Value::Array(items) => {
                self.length(b'[', items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Text(text) => self.part(b'"', text.as_bytes()),
            Value::Literal(text) => self.part(b'0', text.as_bytes()),
        }
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
