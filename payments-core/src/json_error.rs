//! Error messages for invalid JSON, with the position and without any part of the body.

use serde_json::error::Category;

/// The message for a text that serde_json failed to parse with `error`.
pub(crate) fn describe(text: &str, error: &serde_json::Error) -> String {
    const MUST: &str = "body must be valid JSON";
    if text.trim().is_empty() {
        return format!("{MUST}; it is empty");
    }
    if text.starts_with('\u{feff}') {
        return format!("{MUST}; it begins with a byte-order mark (line 1, column 1), send it without one");
    }
    let (line, column) = (error.line(), error.column());
    let what = match error.classify() {
        Category::Syntax if is_trailing_comma(text, line, column) => "trailing comma".to_owned(),
        Category::Syntax => without_position(&error.to_string()),
        Category::Eof => "it ends too early".to_owned(),
        // These errors may quote the body. They do not occur when parsing to a `RawValue`.
        Category::Data | Category::Io => return MUST.to_owned(),
    };
    format!("{MUST}; {what} at line {line}, column {column}")
}

/// Removes the position, which serde_json appends to each message.
fn without_position(sentence: &str) -> String {
    sentence.rsplit_once(" at line ").map_or(sentence, |(what, _)| what).to_owned()
}

/// Whether a list or an object ends at this position, right after a comma. Lines and columns count from 1, columns in
/// bytes.
fn is_trailing_comma(text: &str, line: usize, column: usize) -> bool {
    let lines_before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let (before, after) = text.as_bytes().split_at((lines_before + column.saturating_sub(1)).min(text.len()));
    matches!(after.first(), Some(b'}' | b']')) && before.trim_ascii_end().ends_with(b",")
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_message_has_the_position_and_no_part_of_the_body() {
        for (text, says) in [
            ("", "; it is empty"),
            (" \r\n\t", "; it is empty"),
            ("\u{feff}{}", "; it begins with a byte-order mark (line 1, column 1), send it without one"),
            ("{\"a\":1,}", "; trailing comma at line 1, column 8"),
            ("{\n  \"secret\": [1, 2,\n  ]\n}", "; trailing comma at line 3, column 3"),
            ("{\"a\":1", "; it ends too early at line 1, column 6"),
            ("{", "; it ends too early at line 1, column 1"),
            ("{} {}", "; trailing characters at line 1, column 4"),
            ("{'a':1}", "; key must be a string at line 1, column 2"),
            ("{\"a\":secret}", "; expected value at line 1, column 6"),
            (
                "{\"a\":\"secret\u{1}\"}",
                "; control character (\\u0000-\\u001F) found while parsing a string at line 1, column 12",
            ),
            ("[1,,2]", "; expected value at line 1, column 4"),
            ("{\"a\":}", "; expected value at line 1, column 6"),
            ("{\"অ\":1,}", "; trailing comma at line 1, column 10"),
        ] {
            let error = serde_json::from_str::<&RawValue>(text).unwrap_err();
            assert_eq!(describe(text, &error), format!("body must be valid JSON{says}"), "{text}");
        }
    }
}
