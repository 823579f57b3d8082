//! Sign-ins that the server refuses.

use gateway_fakes::{Fault, oidc::Wrong};
use reqwest::{Method, Url};

use super::{People, at_provider, call_back, come_back, cookie, location};

const REFUSED: &str = "/dashboard?sign-in=refused";

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_begins_no_session_and_the_log_says_what_is_wrong() {
    let people = People::start().await;
    people.provider.program().be("viewers", &["viewers"]);
    let reasons = [
        (Wrong::Audience, "Invalid audiences"),
        (Wrong::Nonce, "Invalid nonce"),
        (Wrong::Issuer, "Invalid issuer"),
        (Wrong::Expired, "Expired"),
        (Wrong::Unsigned, "No signature found"),
        (Wrong::PublicKeyAsSecret, "Disallowed signature algorithm"),
        (Wrong::ClientSecret, "Disallowed signature algorithm"),
        (Wrong::Changed, "Crypto error"),
    ];
    assert_eq!(reasons.map(|(wrong, _)| wrong), Wrong::ALL.map(|(_, wrong)| wrong));
    for (wrong, reason) in reasons {
        people.provider.program().make_wrong(wrong);
        let back = come_back(&people.server).await;
        assert_eq!((location(&back), cookie(&back, "session")), (REFUSED, None), "{wrong:?}");
        people.server.assert_logs(reason);
    }
    people.sign_in("viewers").await;
    for text in [gateway_fakes::oidc::CLIENT_SECRET, "eyJ"] {
        assert!(!people.server.log().contains(text), "{text} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_and_only_in_the_browser_that_began() {
    let people = People::start().await;
    people.provider.program().be("viewers", &["viewers"]);
    let (callback, own) = at_provider(&people.server).await;
    let (other_callback, other) = at_provider(&people.server).await;
    // Another browser's cookie, none, and a damaged one.
    for cookie_of_another in [other.as_str(), "lang=en", &own[..own.len() - 2]] {
        let back = call_back(&people.server, &callback, cookie_of_another).await;
        assert_eq!((location(&back), cookie(&back, "session")), (REFUSED, None), "{cookie_of_another}");
    }
    let mut url = Url::parse(&format!("{}{callback}", people.server.url)).unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    url.set_query(Some(&format!("state={state}&error=access_denied")));
    let denied = call_back(&people.server, &format!("{}?{}", url.path(), url.query().unwrap()), &own).await;
    assert_eq!(location(&denied), REFUSED);
    assert!(cookie(&call_back(&people.server, &callback, &own).await, "session").is_some());
    let again = call_back(&people.server, &callback, &own).await;
    assert_eq!((location(&again), cookie(&again, "session")), (REFUSED, None));
    // The code of one sign-in with the verifier of another.
    let code = |callback: &str| callback.split_once("code=").unwrap().1.split('&').next().unwrap().to_owned();
    let (third_callback, third) = at_provider(&people.server).await;
    let mixed = third_callback.replace(&code(&third_callback), &code(&other_callback));
    let back = call_back(&people.server, &mixed, &third).await;
    assert_eq!((location(&back), cookie(&back, "session")), (REFUSED, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_the_provider_is_fetched_once_but_not_again_and_again() {
    let people = People::start().await;
    people.sign_in("viewers").await;
    people.provider.program().rotate();
    people.sign_in("viewers").await;
    let fetched = people.provider.faults().calls().0;
    people.provider.program().rotate();
    let back = come_back(&people.server).await;
    assert_eq!((location(&back), cookie(&back, "session")), (REFUSED, None));
    // It asked for a token, and for no keys.
    assert_eq!(people.provider.faults().calls().0, fetched + 1);
    people.server.assert_logs("signed with an unknown key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_without_a_role_and_a_provider_that_fails_have_their_own_reasons() {
    let people = People::start().await;
    for groups in [&[][..], &["Viewers", "viewers2"]] {
        people.provider.program().be("nobody", groups);
        let back = come_back(&people.server).await;
        assert_eq!((location(&back), cookie(&back, "session")), ("/dashboard?sign-in=no-role", None));
    }
    people.provider.program().be("viewers", &["viewers"]);
    for fault in [Fault::DropBefore, Fault::ErrorBefore, Fault::Empty, Fault::Truncated] {
        people.provider.faults().next("token", fault);
        let back = come_back(&people.server).await;
        assert_eq!((location(&back), cookie(&back, "session")), ("/dashboard?sign-in=unavailable", None), "{fault:?}");
    }
    people.sign_in("viewers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_provider_has_no_sign_in() {
    let server = crate::server::Server::start();
    for (method, path) in
        [(Method::GET, "sign-in"), (Method::GET, "callback?code=1&state=1"), (Method::POST, "sign-out")]
    {
        let answer = server.keyless(method, &format!("/dashboard/{path}")).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    let page = server.keyless(Method::GET, "/dashboard").send().await.unwrap().text().await.unwrap();
    assert!(!page.contains("data-provider") && !page.contains("data-person"));
    // A session's headers are nothing there.
    let request = server.keyless(Method::GET, "/api/v1/payments").header("cookie", "session=ses_1");
    let answer = request.header("x-workspace", "ws_1").header("x-csrf", "1").send().await.unwrap();
    assert_eq!(answer.status(), 401);
}
