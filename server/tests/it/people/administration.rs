//! The administration API by people: every route by every role, for one workspace, for another, and for the platform.

use payments_store::domain::{AdminPermission, Role};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{GROUPS, People};

async fn ask(people: &People, session: &str, method: &str, path: &str) -> (u16, Value) {
    let request = people.server.keyless(method.parse().unwrap(), path).header(header::COOKIE, session);
    let request = request.header("x-csrf", "1");
    let request = if method == "GET" { request } else { request.json(&json!({})) };
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// The routes of the document: method, path, and the permission that it needs.
async fn routes(people: &People, session: &str) -> Vec<(String, String, AdminPermission)> {
    let (status, document) = ask(people, session, "GET", "/admin/v1/openapi.json").await;
    assert_eq!(status, 200);
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let needed = operation["description"].as_str().unwrap().split('`').nth(1).unwrap().parse().unwrap();
            routes.push((method.to_uppercase(), path.clone(), needed));
        }
    }
    routes
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_reaches_what_the_table_says_and_a_role_for_one_workspace_only_that() {
    let mut people = People::start().await;
    let [(own, _), (other, _)] = ["Own", "Other"].map(|name| people.workspace(name));
    for role in Role::ALL {
        people.restart_with_group(&format!("{role}-of-one={role}@{own}"));
    }
    for (role, group) in Role::ALL.into_iter().zip(GROUPS) {
        let of_all = people.sign_in(group.split('=').next().unwrap()).await;
        let of_one = people.sign_in(&format!("{role}-of-one")).await;
        for (method, path, needed) in routes(&people, &of_all).await {
            for workspace in [&own, &other] {
                let at = path.replace("{workspace}", workspace);
                let at: Vec<_> = at.split('/').map(|part| if part.starts_with('{') { "x1" } else { part }).collect();
                let at = at.join("/");
                for (session, reaches) in
                    [(&of_all, true), (&of_one, path.contains("{workspace}") && workspace == &own)]
                {
                    let (status, answer) = ask(&people, session, &method, &at).await;
                    let message = answer["message"].as_str().unwrap_or_default();
                    let is_refused = status == 403 && answer["code"] == "permission_missing";
                    // A request with missing fields is refused before its sender is.
                    let is_unreadable = message.starts_with("this request is not right");
                    let may = reaches && role.may(needed);
                    assert!(is_refused != may || is_unreadable, "{role}: {method} {at}: {status} {answer}");
                    assert!(status < 500, "{method} {at}: {answer}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_named_in_the_audit_log_and_a_request_of_another_site_is_refused() {
    let people = People::start().await;
    let session = people.sign_in("owners").await;
    let (status, created) = {
        let request = people.server.keyless(Method::POST, "/admin/v1/workspaces").header(header::COOKIE, &session);
        let answer = request.header("x-csrf", "1").json(&json!({"name": "By a person"})).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    assert_eq!(status, 200, "{created}");
    let (_, log) = ask(&people, &session, "GET", "/admin/v1/audit").await;
    assert_eq!(log["audit"][0]["action"], "POST /admin/v1/workspaces");
    assert_eq!(log["audit"][0]["actor"]["type"], "person");
    let forged = people.server.keyless(Method::POST, "/admin/v1/workspaces").header(header::COOKIE, &session);
    let forged = forged.json(&json!({"name": "By another site"})).send().await.unwrap();
    assert_eq!(forged.json::<Value>().await.unwrap()["code"], "cross_site_request");
    let stranger = people.server.keyless(Method::GET, "/admin/v1/workspaces").send().await.unwrap();
    assert_eq!(stranger.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn finance_imports_the_file_of_a_statement_and_a_wrong_cell_is_named_by_line_and_column() {
    let people = People::start().await;
    let (session, viewer) = (people.sign_in("accounts").await, people.sign_in("viewers").await);
    let import = async |session: &str, text: String, is_check: bool| {
        let request = people.server.keyless(Method::POST, "/admin/v1/settlements/gateways/bkash/file");
        let request = request.header(header::COOKIE, session).header("x-csrf", "1");
        let answer = request.json(&json!({"text": text, "isCheck": is_check})).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let plain = |rows: &str| format!("id,kind,reference,gross,fee,net,currency,date\n{rows}");
    for (text, says) in [
        (plain("r1,fee,,-1,0,-1,BDT,2026-03-01\nr2,payment,p,10.005,0,10,BDT,2026-03-01"), "line 3, column \"gross\""),
        (plain("r1,fee,,-1,0,-1,BDT,2026-03-01\nr1,fee,,-2,0,-2,BDT,2026-03-01"), "row r1 is there twice"),
        ("trxID,amount\nr1,5\n".to_owned(), "the file has no column \"completedTime\""),
    ] {
        let (status, refused) = import(&session, text, false).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused["message"].as_str().unwrap().starts_with(says), "{refused}");
    }
    let bkash = "trxID,transactionType,amount,creditedAmount,completedTime\nTX1,Fee,5,,2026-03-01\n";
    let many = plain(&(0..600).map(|nth| format!("r{nth},fee,,-1,0,-1,BDT,2026-03-01\n")).collect::<String>());
    assert_eq!(import(&viewer, many.clone(), true).await.0, 403);
    for (text, is_check, theirs, known) in
        [(&many, true, 600, 0), (&many, false, 600, 0), (&many, false, 600, 600), (&bkash.to_owned(), true, 1, 0)]
    {
        let (status, answer) = import(&session, text.clone(), is_check).await;
        let imported = json!({"matched": 0, "theirs": theirs, "differing": 0, "known": known});
        assert_eq!((status, &answer["settlements"]["imported"]), (200, &imported), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_knows_what_a_person_may_do_for_the_platform_and_nothing_with_a_role_for_one_workspace() {
    let mut people = People::start().await;
    let (own, _) = people.workspace("Own");
    people.restart_with_group(&format!("sellers=admin@{own}"));
    for (group, platform) in [
        ("viewers", json!({"role": "viewer", "permissions": ["merchants:read", "money:read", "server:read"]})),
        ("sellers", Value::Null),
    ] {
        let session = people.sign_in(group).await;
        let page =
            people.server.keyless(Method::GET, "/dashboard").header(header::COOKIE, session).send().await.unwrap();
        let page = page.text().await.unwrap();
        let person = page.split("data-person=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#34;", "\"");
        assert_eq!(serde_json::from_str::<Value>(&person).unwrap()["platform"], platform, "{person}");
    }
}
