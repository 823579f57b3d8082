//! What commands print. A line of it stays one line, whatever a merchant, a customer or a gateway wrote: in a terminal, text
//! from outside could otherwise move the cursor or make rows that nobody printed.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
};

use payments_core::text::is_hidden;
use serde::Serialize;

/// The standard output. When its reader has gone, such as `head`, the rest is dropped: that is no failure.
pub struct Output {
    out: io::Stdout,
    is_closed: bool,
}

impl Output {
    pub fn new() -> Self {
        Self { out: io::stdout(), is_closed: false }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        self.text(format!("{}\n", visible(&line.to_string())).as_bytes())
    }

    /// Prints rows under the names of their columns, and nothing if there are none.
    pub fn table(&mut self, columns: &str, rows: impl Iterator<Item = String>) -> io::Result<()> {
        let mut rows = rows.peekable();
        if rows.peek().is_some() {
            self.line(format_args!("{columns}"))?;
        }
        rows.try_for_each(|row| self.line(format_args!("{row}")))
    }

    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.text(format!("{}\n", visible_json(&serde_json::to_string(value)?)).as_bytes())
    }

    /// Prints a text of this program, or a question without the end of its line.
    pub fn text(&mut self, text: &[u8]) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        match self.out.write_all(text).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Whether nobody can read the standard output: it is /dev/null, which also replaces one that is closed.
pub fn is_discarded() -> bool {
    let of_output = || File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata();
    let device = |found: io::Result<fs::Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    device(of_output()).is_some_and(|own| device(fs::metadata("/dev/null")) == Some(own))
}

/// A cell of a row whose cells are separated by spaces: in quotes if it is empty or has spaces.
pub fn cell(text: &str) -> Cow<'_, str> {
    let is_plain = !text.is_empty() && !text.contains(|char: char| char.is_whitespace() || char == '"');
    if is_plain { text.into() } else { format!("{text:?}").into() }
}

/// A text in which a terminal shows all it has.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, char| escaped.extend(char.escape_default()))
}

/// The same of a line of the log, whose formatter writes colours.
pub fn visible_with_colours(line: &str) -> Cow<'_, str> {
    let Some((first, rest)) = line.split_once('\u{1b}') else { return visible(line) };
    let mut shown = visible(first).into_owned();
    for part in rest.split('\u{1b}') {
        let style = part.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(style, _)| style);
        let is_formatters = matches!(style, Some("0" | "1" | "2" | "3" | "31" | "32" | "33" | "34" | "35"));
        shown.push_str(if is_formatters { "\u{1b}" } else { r"\u{1b}" });
        shown.push_str(&visible(part));
    }
    shown.into()
}

/// The same of JSON, which stays the same value.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(json, |escaped, char| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match is_hidden(char) {
            true => escape(&mut escaped, char),
            false => escaped.push(char),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_a_terminal_would_obey() {
        for (text, shown) in [
            ("Rahim & Sons", "Rahim & Sons"),
            ("র\u{200d}্যাব \\ \"quoted\"", "র\u{200d}্যাব \\ \"quoted\""),
            ("a\npay_2 750 BDT", r"a\npay_2 750 BDT"),
            ("\u{1b}[1A\r\t\u{9b}2J", r"\u{1b}[1A\r\t\u{9b}2J"),
            ("\u{202e}0057\u{2066}\u{200b}\u{feff}", r"\u{202e}0057\u{2066}\u{200b}\u{feff}"),
            ("a\u{2028}b", r"a\u{2028}b"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn a_line_of_the_log_keeps_the_formatters_colours_alone() {
        let line = "\u{1b}[2mtime\u{1b}[0m \u{1b}[32mINFO\u{1b}[0m a\u{1b}[2J\u{1b}[8mb\n\u{202e}";
        let shown = "\u{1b}[2mtime\u{1b}[0m \u{1b}[32mINFO\u{1b}[0m a\\u{1b}[2J\\u{1b}[8mb\\n\\u{202e}";
        assert_eq!(visible_with_colours(line), shown);
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"name": "\u{1b}[2J\u{202e}\u{9b}\u{e0041}\"\n🎁"});
        let shown = visible_json(&value.to_string()).into_owned();
        assert!(!shown.contains(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_cell_with_spaces_stands_in_quotes() {
        for (text, shown) in
            [("01712", "01712"), ("", "\"\""), ("01712 750 BDT", "\"01712 750 BDT\""), ("a\"\n", "\"a\\\"\\n\"")]
        {
            assert_eq!(cell(text), shown);
        }
    }
}
