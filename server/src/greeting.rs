//! What the server prints at start: its address, for programs, and the first steps, for people.

/// The first line is for programs, the rest for people. `sandbox_key` is the sandbox's key, if the sandbox is on.
pub(crate) fn greeting(base_url: &str, address: std::net::SocketAddr, sandbox_key: Option<&str>) -> String {
    let steps = match sandbox_key {
        Some(key) => format!(
            "The sandbox is ready; its key moves no money. Create a payment, open its checkoutUrl, and list it:

  curl {base_url}/api/v1/payments -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"amount\": 750, \"success_url\": \"https://shop.example/paid\", \"cancel_url\": \"https://shop.example/cart\"}}'

  curl {base_url}/api/v1/payments -H 'Authorization: Bearer {key}'
"
        ),
        None => "The sandbox is off: every caller needs a key. Create a workspace and a key for it:

  payments-server workspaces create --name NAME
  payments-server keys create --workspace WORKSPACE --environment test
"
        .to_owned(),
    };
    format!("listening on http://{address}\n\n{steps}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_key_is_printed_only_if_the_sandbox_is_on() {
        let address = "127.0.0.1:8080".parse().unwrap();
        let with = greeting("http://127.0.0.1:8080", address, Some("sk_test_demo"));
        let without = greeting("https://pay.example", address, None);
        for text in [&with, &without] {
            assert_eq!(text.lines().next(), Some("listening on http://127.0.0.1:8080"));
        }
        assert!(with.contains("curl http://127.0.0.1:8080/api/v1/payments -H 'Authorization: Bearer sk_test_demo'"));
        assert!(!without.contains("sk_test_demo") && without.contains("keys create"));
    }
}
