//! Every route of the API by every role, other workspaces, and other sites.

use payments_store::domain::{Permission, Role};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{GROUPS, People, as_person};
use crate::{
    document,
    routes::{Route, routes},
    server::payment_of,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_role_does_what_the_table_of_roles_says_on_every_route_and_nothing_else() {
    let people = People::start().await;
    let (workspace, _) = people.workspace("Rahim");
    let document = document::open();
    for (role, group) in Role::ALL.into_iter().zip(GROUPS) {
        let session = people.sign_in(group.split('=').next().unwrap()).await;
        let mut refused = 0;
        for route in routes(&document).filter(Route::is_keyed) {
            let request = as_person(route.unknown(&people.server, ""), &session, &workspace, "test");
            let answer = request.header("content-type", "application/json").body(route.body).send().await.unwrap();
            let (status, body) = (answer.status().as_u16(), answer.text().await.unwrap());
            let may = |needed: &&str| {
                let needed: Permission = needed.parse().unwrap();
                role.permissions().iter().any(|granted| granted.grants(needed))
            };
            match route.scopes.iter().find(|needed| !may(needed)) {
                Some(lacking) => {
                    let body: Value = serde_json::from_str(&body).unwrap();
                    assert_eq!((status, &body["code"]), (403, &json!("permission_missing")), "{role}: {}", route.id);
                    assert_eq!(body["message"], format!("the role {role} lacks the scope {lacking}"));
                    refused += 1;
                }
                // A viewer gets no tables, because they would show customers' data.
                None if role == Role::Viewer && status == 403 => assert!(body.contains("customers' data"), "{body}"),
                None => assert!(status != 403 && status != 401, "{role}: {} {status} {body}", route.id),
            }
        }
        assert_eq!(refused == 0, role == Role::Admin, "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_for_one_workspace_opens_no_other() {
    let mut people = People::start().await;
    let [(mine, _), (other, key)] = ["Mine", "Other"].map(|name| people.workspace(name));
    let create = people.server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&key).json(&payment_of(&json!(5)));
    let id = create.send().await.unwrap().json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    people.restart_with_group(&format!("sellers=admin@{mine}"));
    let session = people.sign_in("sellers").await;
    let get = async |path: &str, workspace: &str, environment: &str| {
        let request = people.server.keyless(Method::GET, &format!("/api/v1{path}"));
        as_person(request, &session, workspace, environment).send().await.unwrap().status().as_u16()
    };
    for environment in ["test", "live"] {
        assert_eq!(get("/payments", &mine, environment).await, 200);
        assert_eq!(get("/payments", &other, environment).await, 403);
        assert_eq!(get(&format!("/payments/{id}"), &mine, environment).await, 404);
        assert_eq!(get(&format!("/payments/{id}"), &other, environment).await, 403);
    }
    for (workspace, environment) in [("ws_0", "test"), ("", "test"), ("dev_1", "test"), (&mine, "other"), (&mine, "")] {
        assert_eq!(get("/payments", workspace, environment).await, 403, "{workspace} {environment}");
    }
    let page = people.server.keyless(Method::GET, "/dashboard").header(header::COOKIE, &session).send().await.unwrap();
    let (cache, page) = (page.headers()["cache-control"].clone(), page.text().await.unwrap());
    assert!(cache == "no-store" && page.contains(&mine) && !page.contains(&other));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sites_page_can_do_nothing_with_the_session() {
    let people = People::start().await;
    let (workspace, _) = people.workspace("Rahim");
    let session = people.sign_in("owners").await;
    let own = people.server.url.clone();
    let create = |headers: &[(&'static str, &str)]| {
        let request = people.server.keyless(Method::POST, "/api/v1/payments").header(header::COOKIE, &session);
        let request = request.header("x-workspace", &workspace).header("x-environment", "test");
        headers
            .iter()
            .fold(request.json(&payment_of(&json!(5))), |request, (name, value)| request.header(*name, *value))
    };
    for (headers, status) in [
        (&[][..], 403),
        (&[("x-csrf", "1")], 201),
        (&[("x-csrf", "1"), ("origin", &own), ("sec-fetch-site", "same-origin")], 201),
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], 403),
        (&[("x-csrf", "1"), ("origin", "https://evil.example")], 403),
        (&[("x-csrf", "1"), ("origin", "null")], 403),
        (&[("x-csrf", "1"), ("sec-fetch-site", "cross-site")], 403),
        (&[("x-csrf", "1"), ("sec-fetch-site", "same-site")], 403),
    ] {
        let answer = create(headers).send().await.unwrap();
        assert_eq!(answer.status(), status, "{headers:?}");
        if status == 403 {
            assert_eq!(answer.json::<Value>().await.unwrap()["code"], "cross_site_request");
        }
    }
    // Reading needs the header as well, and a cookie alone is nothing.
    let read = || people.server.keyless(Method::GET, "/api/v1/payments").header(header::COOKIE, &session);
    assert_eq!(
        read().header("x-workspace", &workspace).header("x-environment", "test").send().await.unwrap().status(),
        403
    );
    assert_eq!(read().send().await.unwrap().status(), 401);
    let no_preflight =
        people.server.keyless(Method::OPTIONS, "/api/v1/payments").header("origin", "https://evil.example");
    let answer = no_preflight.send().await.unwrap();
    assert!(answer.headers().get("access-control-allow-origin").is_none());
    // A key goes before the session.
    let by_key = create(&[("authorization", "Bearer sk_test_wrong")]).send().await.unwrap();
    assert_eq!(by_key.status(), 401);
}
