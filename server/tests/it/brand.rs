//! The logo and the colour of a developer app on its checkout pages.

use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    server::{Server, payment_of, text_of},
};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// A page's headers and text.
async fn page(server: &Server, path: &str) -> (HeaderMap, String) {
    let answer = server.keyless(Method::GET, path).send().await.unwrap();
    (answer.headers().clone(), answer.text().await.unwrap())
}

/// The path of a new payment's checkout page.
async fn checkout(server: &Server, key: &str) -> String {
    let request = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(key).json(&payment_of(&json!(5)));
    let payment: Value = request.send().await.unwrap().json().await.unwrap();
    format!("/checkout/{}", payment["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_pages_have_their_apps_logo_and_colour_on_both_engines() {
    for engine in [Engine::Directory, Engine::Postgres] {
        let mut server = Server::start_on(engine, &[]);
        let workspace = server.run(&["workspaces", "create", "--name", "Rahim"]);
        let create = ["apps", "create", "--workspace", &workspace, "--name", "Till"];
        let brand = ["--logo-url", "https://cdn.example:8443/a\"b.svg?x=1&y", "--colour", "#0A7D4F"];
        let app = server.run(&[&create[..], &brand[..]].concat());
        let new_key = |app: &[&str]| {
            server.run(&[&["keys", "create", "--workspace", &workspace, "--environment", "test"], app].concat())
        };
        let (key, plain) = (new_key(&["--app", &app]), new_key(&[]));

        let path = checkout(&server, &plain).await;
        let (headers, text) = page(&server, &path).await;
        assert_eq!(headers["content-security-policy"], POLICY);
        assert!(!text.contains("<img") && text.matches("rel=\"stylesheet\"").count() == 1, "{text}");

        let path = checkout(&server, &key).await;
        let logo = "https://cdn.example:8443/a%22b.svg?x=1&y";
        let (headers, text) = page(&server, &path).await;
        assert_eq!(headers["content-security-policy"], format!("{POLICY}; img-src https://cdn.example:8443"));
        assert_eq!(headers.get_all("content-security-policy").iter().count(), 1);
        assert_eq!(headers["referrer-policy"], "no-referrer");
        let image = format!(r#"<img src="{}" alt="" referrerpolicy="no-referrer">"#, logo.replace('&', "&#38;"));
        assert!(text.contains(&image), "{text}");
        assert!(text.contains("<span>Rahim</span>"), "the name stands beside the logo: {text}");
        let theme = text.split('"').find(|part| part.starts_with("/assets/checkout-0a7d4f.css?")).unwrap();
        let (headers, css) = page(&server, theme).await;
        assert_eq!(headers["content-type"], "text/css; charset=utf-8");
        assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
        assert!(css.contains("--brand:#0a7d4f;--on-brand:#ffffff"), "{css}");
        let session = page(&server, &format!("/api/v1{path}")).await.1;
        assert_eq!(serde_json::from_str::<Value>(&session).unwrap()["appLogoUrl"], logo);

        // A change also counts for open pages, and after a restart. Settings that the command does not name stay.
        assert_eq!(server.run(&["apps", "update", &app, "--colour", "#ffd400"]), app);
        server.crash_and_restart();
        let (_, text) = page(&server, &path).await;
        assert!(text.contains("/assets/checkout-ffd400.css?") && text.contains(&image), "{text}");
        let listed: Value = serde_json::from_str(&server.run(&["apps", "list", "--json"])).unwrap();
        let row = listed["apps"].as_array().unwrap().iter().find(|row| row["id"] == app.as_str()).unwrap();
        assert_eq!((&row["logoUrl"], &row["colour"]), (&json!(logo), &json!("#ffd400")));

        server.run(&["apps", "update", &app, "--logo-url", "none", "--colour", "none"]);
        let (headers, text) = page(&server, &path).await;
        assert_eq!(headers["content-security-policy"], POLICY);
        assert!(!text.contains("<img") && !text.contains("/assets/checkout-"), "{text}");
        let (headers, _) = page(&server, "/checkout/pay_unknown").await;
        assert_eq!(headers["content-security-policy"], POLICY);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brand_that_a_page_could_not_show_is_refused_with_a_reason() {
    let server = Server::start();
    let workspace = server.run(&["workspaces", "create", "--name", "Rahim"]);
    let app = server.run(&["apps", "create", "--workspace", &workspace, "--name", "Till"]);
    for (arguments, sentence) in [
        (&["--colour", "green"][..], "must be # and six hexadecimal digits, such as #0a7d4f"),
        (&["--colour", "#0a7d4"][..], "must be # and six hexadecimal digits, such as #0a7d4f"),
        (
            &["--logo-url", "http://cdn.example/logo.png"][..],
            "must begin with https:// (http:// is allowed for localhost)",
        ),
        (&["--logo-url", "logo.png"][..], "must be an absolute URL of an image, such as https://shop.example/logo.svg"),
        (&["--logo-url", "https://a;script-src/"][..], "must be an absolute URL of an image"),
        (&["--logo-url", "https://me:secret@cdn.example/"][..], "must have no user name and no password"),
        (&[][..], "--logo-url <U>|--colour <#RRGGBB>"),
    ] {
        let update = server.try_run(&[&["apps", "update", &app], arguments].concat());
        assert!(!update.status.success() && text_of(&update).contains(sentence), "{}", text_of(&update));
        let create = ["apps", "create", "--workspace", &workspace, "--name", "Other"];
        let create = server.try_run(&[&create, arguments].concat());
        assert_eq!(create.status.success(), arguments.is_empty(), "{}", text_of(&create));
    }
    for id in ["app_unknown", "till"] {
        let update = server.try_run(&["apps", "update", id, "--colour", "none"]);
        assert!(text_of(&update).contains("no developer app has this id"), "{}", text_of(&update));
    }
    for path in ["/assets/checkout-green.css", "/assets/checkout-0a7d4f.js", "/assets/checkout-.css"] {
        let answer = server.keyless(Method::GET, path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
