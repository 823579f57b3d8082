//! Strings and JSON values as source text of other languages.

use serde_json::Value;

pub(super) struct Syntax {
    null: &'static str,
    yes: &'static str,
    no: &'static str,
    object: [&'static str; 2],
    empty: &'static str,
    pair: &'static str,
    indent: &'static str,
    quoted: fn(&str) -> String,
}

pub(super) const PYTHON: Syntax = Syntax {
    null: "None",
    yes: "True",
    no: "False",
    object: ["{", "}"],
    empty: "{}",
    pair: ": ",
    indent: "    ",
    quoted: double_quoted,
};

pub(super) const JAVASCRIPT: Syntax = Syntax { null: "null", yes: "true", no: "false", indent: "  ", ..PYTHON };

pub(super) const PHP: Syntax = Syntax {
    null: "null",
    yes: "true",
    no: "false",
    object: ["[", "]"],
    empty: "(object) []",
    pair: " => ",
    indent: "    ",
    quoted: single_quoted,
};

impl Syntax {
    /// A value with each field on its own line. The first line is not indented, the others by at least `depth` levels.
    pub(super) fn literal(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Null => self.null.into(),
            Value::Bool(true) => self.yes.into(),
            Value::Bool(false) => self.no.into(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => (self.quoted)(text),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.literal(item, depth)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(fields) if fields.is_empty() => self.empty.into(),
            Value::Object(fields) => {
                let inner = self.indent.repeat(depth + 1);
                let field = |(name, value): (&String, &Value)| {
                    format!("{inner}{}{}{},\n", (self.quoted)(name), self.pair, self.literal(value, depth + 1))
                };
                let [open, close] = self.object;
                let fields: String = fields.iter().map(field).collect();
                format!("{open}\n{fields}{}{close}", self.indent.repeat(depth))
            }
        }
    }
}

/// A JSON string that Python and JavaScript read in the same way, and Rust too if it is visible ASCII.
pub(super) fn double_quoted(text: &str) -> String {
    Value::from(text).to_string()
}

pub(super) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/:.,=@%+".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Values that are hard to quote.
    fn hard() -> Value {
        json!({
            "quotes": "a'b\"c`d\\'e\\\\", "shell": "$HOME $(id) `id` !! #x; & | > *", "lines": "a\nb\r\tc\\n",
            "markup": "</script><!-- &amp; ]]>", "unicode": "৳ 😀 \u{2028}\u{2029}\u{7f}\u{1}", "php": "${x} {$y} %s",
            "empty": {}, "none": null, "yes": true, "no": false, "list": [1, -2.5, "x'", {"in": ["'"]}, []],
            "a'key\\": {"deep": {"deeper": "'"}}, "": "",
        })
    }

    fn output_of(program: &str, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[test]
    fn python_reads_back_the_values_written_for_it() {
        let program = format!("import json\nprint(json.dumps({}))", PYTHON.literal(&hard(), 0));
        assert_eq!(serde_json::from_slice::<Value>(&output_of("python3", &["-c", &program])).unwrap(), hard());
    }

    #[test]
    fn javascript_reads_back_the_values_written_for_it() {
        let program = format!("console.log(JSON.stringify({}))", JAVASCRIPT.literal(&hard(), 0));
        assert_eq!(serde_json::from_slice::<Value>(&output_of("node", &["-e", &program])).unwrap(), hard());
    }

    #[test]
    fn a_php_string_escapes_quotes_and_backslashes_and_nothing_else() {
        assert_eq!(PHP.literal(&json!(r"a'b\c"), 0), r"'a\'b\\c'");
        assert_eq!(PHP.literal(&json!("$x {$y}\n\"é\""), 0), "'$x {$y}\n\"é\"'");
        let written = PHP.literal(&json!({"a": {"b": [null, true]}, "c": {}}), 1);
        let expected =
            "[\n        'a' => [\n            'b' => [null, true],\n        ],\n        'c' => (object) [],\n    ]";
        assert_eq!(written, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_shell_reads_back_any_word(text in "[^\0]{0,40}") {
            let script = format!("printf %s {}", shell_word(&text));
            prop_assert_eq!(output_of("bash", &["-c", &script]), text.into_bytes());
        }
    }
}
