//! The templates of all paths: what requests are counted by, and what the API's description must have.

/// Every path that the server answers, as the API's description writes it.
pub(crate) const TEMPLATES: [&str; 30] = [
    "/api/v1/payments",
    "/api/v1/payments/{id}",
    "/api/v1/payments/{id}/refund",
    "/api/v1/account",
    "/api/v1/account/balance",
    "/api/v1/account/apps",
    "/api/v1/webhooks",
    "/api/v1/webhooks/deliveries",
    "/api/v1/webhooks/verify",
    "/api/v1/webhooks/{id}",
    "/api/v1/webhooks/{id}/test",
    "/api/v1/checkout/demo-session",
    "/api/v1/checkout/{id}",
    "/api/v1/checkout/{id}/simulate",
    "/api/v1/checkout/{id}/pay",
    "/api/v1/openapi.json",
    "/checkout/{id}",
    "/gateways/bkash/return/{id}",
    "/gateways/stripe/return/{id}",
    "/gateways/stripe/webhook",
    "/assets/checkout.css",
    "/assets/checkout.js",
    "/assets/docs.css",
    "/assets/dashboard.css",
    "/assets/dashboard.js",
    "/docs",
    "/dashboard",
    "/healthz",
    "/readyz",
    "/metrics",
];

/// The template of a path, or `other`, so that nobody can make up labels.
pub(crate) fn template_of(path: &str) -> &'static str {
    TEMPLATES.into_iter().find(|template| fits(template, path)).unwrap_or("other")
}

fn fits(template: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let all = template.split('/').all(|wanted| match parts.next() {
        Some(part) if wanted.starts_with('{') => !part.is_empty(),
        Some(part) => part == wanted,
        None => false,
    });
    all && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_template_that_names_it_best() {
        for (path, template) in [
            ("/api/v1/payments", "/api/v1/payments"),
            ("/api/v1/payments/pay_1", "/api/v1/payments/{id}"),
            ("/api/v1/webhooks/deliveries", "/api/v1/webhooks/deliveries"),
            ("/api/v1/webhooks/wh_1", "/api/v1/webhooks/{id}"),
            ("/api/v1/checkout/demo-session", "/api/v1/checkout/demo-session"),
            ("/api/v1/payments/", "other"),
            ("/api/v1/payments/a/b", "other"),
            ("//", "other"),
            ("", "other"),
        ] {
            assert_eq!(template_of(path), template, "{path}");
        }
    }
}
