//! A request as a program in several languages.

use askama::Template;
use serde_json::Value;

use super::literal::{JAVASCRIPT, PHP, PYTHON, double_quoted, shell_word, single_quoted};

/// The Rust examples: one function for each operation.
const RUST: &str = include_str!("../../../docs/snippets.rs");

/// A body longer than this takes several lines.
const ONE_LINE: usize = 60;

pub(super) struct Call<'c> {
    pub(super) method: String,
    pub(super) url: String,
    /// The API key, unless the operation needs none.
    pub(super) key: Option<&'c str>,
    pub(super) idempotency_key: Option<&'c str>,
    pub(super) body: Option<&'c Value>,
    pub(super) answers_json: bool,
}

pub(super) struct Snippet {
    /// The language's id in the page's script.
    pub(super) id: &'static str,
    pub(super) language: &'static str,
    pub(super) text: String,
}

/// Renders a template with a call as its program.
macro_rules! program {
    ($call:expr, $path:literal) => {{
        #[derive(Template)]
        #[template(path = $path)]
        struct Program<'c> {
            call: &'c Call<'c>,
        }
        // All parts are strings, which always render.
        Program { call: $call }.render().unwrap_or_default()
    }};
}

impl Call<'_> {
    fn headers(&self) -> Vec<(&'static str, String)> {
        let key = self.key.map(|key| ("Authorization", format!("Bearer {key}")));
        let kind = self.body.map(|_| ("Content-Type", "application/json".to_owned()));
        let idempotency_key = self.idempotency_key.map(|key| ("Idempotency-Key", key.to_owned()));
        key.into_iter().chain(kind).chain(idempotency_key).collect()
    }

    fn header_lines(&self) -> Vec<String> {
        self.headers().iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    pub(super) fn curl(&self) -> String {
        let url = shell_word(&self.url);
        let mut lines = match (&*self.method, self.body) {
            ("GET", _) | ("POST", Some(_)) => vec![format!("curl {url}")],
            (method, _) => vec![format!("curl -X {method} {url}")],
        };
        lines.extend(self.header_lines().iter().map(|line| format!("-H {}", shell_word(line))));
        lines.extend(self.body.map(|body| format!("-d {}", shell_word(&json_text(body)))));
        lines.join(" \\\n  ")
    }

    pub(super) fn snippets(&self, rust: String) -> Vec<Snippet> {
        let rows = [
            ("curl", "curl", self.curl()),
            ("rust", "Rust", rust),
            ("python", "Python", program!(self, "snippet-python.txt")),
            ("javascript", "JavaScript", program!(self, "snippet-javascript.txt")),
            ("php", "PHP", program!(self, "snippet-php.txt")),
        ];
        rows.into_iter().map(|(id, language, text)| Snippet { id, language, text }).collect()
    }
}

/// JSON in one line, or in several if it is long.
pub(super) fn json_text(value: &Value) -> String {
    let line = value.to_string();
    if line.len() <= ONE_LINE { line } else { format!("{value:#}") }
}

/// The Rust example of an operation, with its client and an id.
pub(super) fn rust(operation: &str, base_url: &str, key: &str, id: &str) -> Option<String> {
    let mut name = String::new();
    for char in operation.chars() {
        if char.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(char.to_ascii_lowercase());
    }
    let (_, rest) = RUST.split_once(&format!("\npub async fn {name}("))?;
    let (_, body) = rest.split_once("{\n")?;
    let (body, _) = body.split_once("\n    Ok(())\n}")?;
    let lines: Vec<&str> = body.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    let (uses, lines): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(|line| line.starts_with("use "));
    let uses = uses.join("\n").replace("use payments_client::", "");
    let uses = uses.trim_start_matches('{').trim_end_matches(';').trim_end_matches('}');
    let uses = if uses.is_empty() { "Client".into() } else { format!("{{Client, {uses}}}") };
    let code = lines.join("\n").replace("\"ID\"", &double_quoted(id));
    let (key, base_url) = (double_quoted(key), double_quoted(base_url));
    let client = format!("let client = Client::builder({key}).base_url({base_url}).build()?;");
    Some(format!("use payments_client::{uses};\n\n{client}\n{}", code.trim_start_matches('\n')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call<'c>(method: &str, body: Option<&'c Value>) -> Call<'c> {
        Call {
            method: method.into(),
            url: "http://127.0.0.1:8080/api/v1/x?a=1&b=2".into(),
            key: Some("sk_test_demo"),
            idempotency_key: body.map(|_| "k-1"),
            body,
            answers_json: true,
        }
    }

    #[test]
    fn curl_quotes_characters_that_a_shell_would_interpret() {
        let body = json!({"it": "Rahim's $5"});
        assert_eq!(
            call("PATCH", Some(&body)).curl(),
            "curl -X PATCH 'http://127.0.0.1:8080/api/v1/x?a=1&b=2' \\\n  -H 'Authorization: Bearer sk_test_demo' \\\n  \
             -H 'Content-Type: application/json' \\\n  -H 'Idempotency-Key: k-1' \\\n  -d '{\"it\":\"Rahim'\\''s $5\"}'"
        );
        assert!(call("GET", None).curl().starts_with("curl 'http"));
        assert!(call("DELETE", None).curl().starts_with("curl -X DELETE 'http"));
    }

    #[test]
    fn php_sends_the_method_the_headers_and_the_body() {
        let body = json!({"it": "Rahim's"});
        assert_eq!(
            program!(&call("POST", Some(&body)), "snippet-php.txt"),
            "<?php\n$request = curl_init('http://127.0.0.1:8080/api/v1/x?a=1&b=2');\ncurl_setopt_array($request, [\n    \
             CURLOPT_CUSTOMREQUEST => 'POST',\n    CURLOPT_HTTPHEADER => [\n        \
             'Authorization: Bearer sk_test_demo',\n        'Content-Type: application/json',\n        \
             'Idempotency-Key: k-1',\n    ],\n    CURLOPT_POSTFIELDS => json_encode([\n        'it' => 'Rahim\\'s',\n    \
             ]),\n    CURLOPT_RETURNTRANSFER => true,\n]);\n$response = curl_exec($request);\n\
             if ($response === false) throw new RuntimeException(curl_error($request));\n\
             print_r(json_decode($response, true));"
        );
    }

    #[test]
    fn a_request_without_headers_and_body_leaves_them_out() {
        let bare = Call { key: None, ..call("GET", None) };
        for Snippet { text, .. } in bare.snippets(String::new()).split_off(2) {
            let lower = text.to_lowercase();
            assert!(!lower.contains("header") && !lower.contains("body") && !lower.contains("data="), "{text}");
        }
    }

    #[test]
    fn a_rust_example_names_what_it_uses_and_the_id() {
        let one = rust("refundPayment", "https://pay.example", "sk_test_...", "pay_1").unwrap();
        assert!(one.starts_with(
            "use payments_client::{Client, Amount};\n\nlet client = Client::builder(\"sk_test_...\")\
             .base_url(\"https://pay.example\").build()?;\nlet (part, reason)"
        ));
        assert!(one.contains("refund_part(&\"pay_1\".parse()?"), "{one}");
        let several = rust("payCheckout", "https://pay.example", "k", "pay_1").unwrap();
        assert!(several.starts_with("use payments_client::{Client, Pay, PayResult, PaymentMethod};\n"), "{several}");
        let none = rust("retrieveBalance", "https://pay.example", "k", "").unwrap();
        assert!(none.starts_with("use payments_client::Client;\n") && none.ends_with("bdt_balance);"), "{none}");
        assert_eq!(rust("unknown", "", "", ""), None);
    }
}
