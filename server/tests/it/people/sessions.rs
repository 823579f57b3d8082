//! A session: its cookie, its end, its list, and the console's page.

use std::time::Duration;

use payments_core::Timestamp;
use reqwest::{Method, header};
use serde_json::Value;

use super::{People, as_person, come_back, cookie, location, sign_in, texts};
use crate::server::{assert_nowhere, eventually, text_of};

impl People {
    async fn status(&self, session: &str, workspace: &str) -> u16 {
        let request = self.server.keyless(Method::GET, "/api/v1/payments");
        as_person(request, session, workspace, "test").send().await.unwrap().status().as_u16()
    }

    async fn page(&self, session: &str) -> String {
        let request = self.server.keyless(Method::GET, "/dashboard").header(header::COOKIE, session);
        request.send().await.unwrap().text().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_out_ends_the_session_and_needs_the_console() {
    let people = People::start().await;
    let (workspace, _) = people.workspace("Rahim");
    let session = people.sign_in("viewers").await;
    assert_eq!(people.status(&session, &workspace).await, 200);
    let page = people.page(&session).await;
    assert!(page.contains("viewers@platform.example") && page.contains(&workspace) && page.contains("data-provider"));
    let out = || people.server.keyless(Method::POST, "/dashboard/sign-out").header(header::COOKIE, &session);
    assert_eq!(out().send().await.unwrap().status(), 403);
    assert_eq!(people.status(&session, &workspace).await, 200);
    let ended = out().header("x-csrf", "1").send().await.unwrap();
    assert_eq!((ended.status().as_u16(), cookie(&ended, "session")), (200, None));
    assert_eq!(people.status(&session, &workspace).await, 401);
    assert!(!people.page(&session).await.contains("data-person"));
    // Signing out again is no error.
    assert_eq!(out().header("x-csrf", "1").send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lasts_as_long_as_the_providers_token_and_at_most_twelve_hours() {
    let people = People::start().await;
    let (workspace, _) = people.workspace("Rahim");
    people.provider.program().set_lifetime(7 * 24 * 60 * 60);
    let back = {
        people.provider.program().be("viewers", &["viewers"]);
        come_back(&people.server).await
    };
    let set = back.headers().get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap().to_owned());
    let set: Vec<_> = set.filter(|text| text.starts_with("session=")).collect();
    assert!(set[0].ends_with("; Max-Age=43200; Path=/; HttpOnly; SameSite=Lax"), "{set:?}");
    let listed: Value = serde_json::from_str(&people.server.run(&["sessions", "list", "--json"])).unwrap();
    let row = &listed["sessions"]["rows"][0];
    let [begun, ends] = ["createdAt", "expiresAt"].map(|at| row[at].as_str().unwrap().parse::<Timestamp>().unwrap());
    assert_eq!(ends.as_millis() - begun.as_millis(), 12 * 60 * 60 * 1000);
    people.provider.program().set_lifetime(3);
    let short = people.sign_in("viewers").await;
    assert_eq!(people.status(&short, &workspace).await, 200);
    eventually("the session to end", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        (people.status(&short, &workspace).await == 401).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_lists_and_revokes_sessions_whose_tokens_are_stored_nowhere() {
    let people = People::start().await;
    let (workspace, _) = people.workspace("Rahim");
    let [one, other] = [people.sign_in("viewers").await, people.sign_in("viewers").await];
    let owner = people.sign_in("owners").await;
    let listed = people.server.run(&["sessions", "list"]);
    let ids: Vec<&str> =
        listed.lines().filter_map(|line| line.split(' ').find(|cell| cell.starts_with("key_"))).collect();
    assert!(ids.len() == 3 && listed.contains("viewers@platform.example viewer "), "{listed}");
    assert_eq!(people.server.run_for_line(&["sessions", "revoke", ids[0]]), ids[0]);
    assert_eq!((people.status(&one, &workspace).await, people.status(&other, &workspace).await), (401, 200));
    people.server.run_for_line(&["sessions", "revoke", "--person", "VIEWERS@platform.example"]);
    assert_eq!((people.status(&other, &workspace).await, people.status(&owner, &workspace).await), (401, 200));
    let refused = people.server.try_run(&["sessions", "revoke", "--person", "nobody@platform.example"]);
    assert!(!refused.status.success() && text_of(&refused).contains("no open session"), "{}", text_of(&refused));
    for session in [&one, &owner] {
        assert_nowhere(session.strip_prefix("session=").unwrap(), people.server.directory.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lives_on_when_the_server_starts_again_and_has_a_rate_limit_of_its_own() {
    let mut people = People::start_with(&["viewers=viewer"], &["--rate-limit", "3"]).await;
    let (workspace, key) = people.workspace("Rahim");
    let [one, other] = [people.sign_in("viewers").await, sign_in(&people.server).await];
    for expected in [200, 200, 200, 429] {
        assert_eq!(people.status(&one, &workspace).await, expected);
    }
    assert_eq!(people.status(&other, &workspace).await, 200);
    let by_key = people.server.keyless(Method::GET, "/api/v1/payments").bearer_auth(&key).send().await.unwrap();
    assert_eq!(by_key.status(), 200);
    people.server.kill();
    people.server.restart();
    assert_eq!(people.status(&one, &workspace).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_https_the_cookies_are_bound_to_the_host() {
    let people = People::start_with(&["viewers=viewer"], &["--base-url", "https://pay.example"]).await;
    let begun = people.server.keyless(Method::GET, "/dashboard/sign-in").send().await.unwrap();
    let set = begun.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(set.starts_with("__Host-sign-in=") && set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{set}");
    assert!(location(&begun).contains("redirect_uri=https%3A%2F%2Fpay.example%2Fdashboard%2Fcallback"));
    let asked = |arguments: &[String]| text_of(&people.server.try_run(&[&["doctor"], &texts(arguments)[..]].concat()));
    let said = asked(&people.arguments);
    assert!(
        said.contains(&format!("people sign in at {}, which must know https://pay.example", people.provider.url())),
        "{said}"
    );
    let wrong: Vec<_> =
        people.arguments.iter().map(|it| it.replace(&people.provider.url(), "http://127.0.0.1:9")).collect();
    let said = asked(&wrong);
    assert!(said.contains("people cannot sign in at http://127.0.0.1:9: "), "{said}");
    let refused = std::process::Command::new(crate::server::server_binary())
        .args(["doctor", "--base-url", "http://pay.example", "--oidc-issuer", &people.provider.url()])
        .args(["--oidc-client-id", "a", "--oidc-client-secret-file", "/dev/null", "--oidc-roles", "a=viewer"])
        .output()
        .unwrap();
    assert!(text_of(&refused).contains("people sign in over https alone"), "{}", text_of(&refused));
}
