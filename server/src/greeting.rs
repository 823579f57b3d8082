//! What the server prints at start: its address, for programs, then where everything is and the first steps, for people.

use std::{fmt, net::SocketAddr, path::absolute};

use crate::store::Location;

pub(crate) fn first_line(address: SocketAddr) -> String {
    format!("listening on http://{address}\n")
}

/// What a server prints at start after the first line.
pub(crate) struct Greeting<'g> {
    pub(crate) base_url: &'g str,
    pub(crate) data: Location,
    /// Each gateway of live payments, with its mode.
    pub(crate) gateways: Vec<String>,
    pub(crate) sandbox_key: Option<&'static str>,
}

impl fmt::Display for Greeting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base_url, sandbox_key, .. } = self;
        let data = match &self.data {
            Location::Directory(directory) => absolute(directory).unwrap_or(directory.clone()).display().to_string(),
            database @ Location::Database(_) => database.to_string(),
        };
        let gateways = match self.gateways.as_slice() {
            [] => "none: live payments are refused until the --config file has [bkash] or [stripe]".to_owned(),
            gateways => gateways.join("; "),
        };
        let sandbox = sandbox_key.map_or("off".to_owned(), |key| format!("the key {key} works and moves no money"));
        writeln!(f)?;
        for (name, value) in [
            ("Console", format!("{base_url}/dashboard")),
            ("Reference", format!("{base_url}/docs")),
            ("Data", data),
            ("Gateways", gateways),
            ("Sandbox", sandbox),
        ] {
            writeln!(f, "  {name:<10} {value}")?;
        }
        match sandbox_key {
            Some(key) => writeln!(
                f,
                "
Create a payment, open its checkoutUrl, and list it:

  curl {base_url}/api/v1/payments -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"amount\": 750, \"success_url\": \"https://shop.example/paid\", \"cancel_url\": \"https://shop.example/cart\"}}'

  curl {base_url}/api/v1/payments -H 'Authorization: Bearer {key}'
"
            ),
            None => {
                let place = place(&self.data);
                writeln!(
                    f,
                    "
Every caller needs a key. Create a workspace and a key for it:

  payments-server workspaces create --name 'Rahim & Sons'{place}
  payments-server keys create --workspace 'Rahim & Sons' --environment test{place}
"
                )
            }
        }
    }
}

/// The flag with which a command finds the data from anywhere.
fn place(data: &Location) -> String {
    let Location::Directory(directory) = data else { return " --database-url URL".to_owned() };
    let directory = absolute(directory).unwrap_or(directory.clone()).display().to_string();
    format!(" --data-dir '{}'", directory.replace('\'', r"'\''"))
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
