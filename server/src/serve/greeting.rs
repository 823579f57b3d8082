//! What the server prints after its address at start: where everything is, and the first steps.

use std::path::absolute;

use askama::Template;

use crate::store::Location;

#[derive(Template)]
#[template(path = "greeting.txt")]
pub struct Greeting<'g> {
    pub base_url: &'g str,
    pub data: Location,
    /// Each gateway of live payments, with its mode.
    pub gateways: Vec<String>,
    pub sandbox_key: Option<&'static str>,
}

impl Greeting<'_> {
    fn place(&self) -> String {
        match &self.data {
            Location::Directory(directory) => absolute(directory).unwrap_or(directory.clone()).display().to_string(),
            database @ Location::Database(_) => database.to_string(),
        }
    }

    /// The flag by which a command finds the data from any directory.
    fn flag(&self) -> String {
        match &self.data {
            Location::Directory(_) => format!(" --data-dir '{}'", self.place().replace('\'', r"'\''")),
            Location::Database(_) => " --database-url URL".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_key_is_printed_only_if_the_sandbox_is_on() {
        let of = |base_url, sandbox_key, gateways: &[&str]| {
            let gateways = gateways.iter().map(ToString::to_string).collect();
            let data = Location::Directory("/var/lib/Rahim's payments".into());
            Greeting { base_url, data, gateways, sandbox_key }.to_string()
        };
        let with = of("http://127.0.0.1:8080", Some("sk_test_demo"), &[]);
        let without = of("https://pay.example", None, &["bKash for BDT: live", "Stripe for USD: test mode"]);
        for text in [&with, &without] {
            assert_eq!(text.lines().next(), Some(""));
            assert!(text.contains("\n  Data       /var/lib/Rahim's payments\n"), "{text}");
        }
        assert!(with.contains("curl http://127.0.0.1:8080/api/v1/payments -H 'Authorization: Bearer sk_test_demo'"));
        assert!(
            with.contains("\n  Console    http://127.0.0.1:8080/dashboard\n  Reference  http://127.0.0.1:8080/docs\n")
        );
        assert!(with.contains("\n  Gateways   none: live payments are refused"), "{with}");
        assert!(!without.contains("sk_test_demo") && without.contains("\n  Sandbox    off\n"), "{without}");
        assert!(without.contains(r"--environment test --data-dir '/var/lib/Rahim'\''s payments'"), "{without}");
        assert!(without.contains("\n  Gateways   bKash for BDT: live; Stripe for USD: test mode\n"), "{without}");
    }
}
