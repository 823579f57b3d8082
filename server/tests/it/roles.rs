//! A role that lacks a privilege on the tables. The start, `doctor` and `/readyz` name the privilege.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::cluster::Cluster;

use crate::{
    engine::run_sql,
    server::{Server, eventually, payment_of, server_binary, text_of},
};

/// Creates a database with tables, and a role that may do everything with their rows. Returns their URL.
fn database_of(role: &str) -> (String, String) {
    let database = Cluster::shared().new_database();
    let create = ["workspaces", "create", "--name", "Shop", "--database-url", &database];
    assert!(Command::new(server_binary()).args(create).output().unwrap().status.success());
    run_sql(&database, &format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA payments TO {role}"));
    run_sql(&database, &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA payments TO {role}"));
    let of_role = database.replace("postgres@", &format!("{role}@"));
    (database, of_role)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_privilege_is_named_and_no_retry_is_suggested() {
    let (database, of_role) = database_of("cashier");
    let server = Server::start_with(&["--database-url", &of_role]);
    let create =
        async || server.request(Method::POST, "/payments").json(&payment_of(&json!(100))).send().await.unwrap();
    let ready = async || server.keyless(Method::GET, "/readyz").send().await.unwrap();
    assert_eq!((create().await.status(), ready().await.status()), (StatusCode::CREATED, StatusCode::OK));

    run_sql(&database, "REVOKE INSERT, UPDATE ON payments.entry FROM cashier");
    let named = "GRANT INSERT, UPDATE ON payments.entry TO cashier";
    let refused = create().await;
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    let said = refused.json::<Value>().await.unwrap()["message"].as_str().unwrap().to_owned();
    assert!(said.contains("the server's operator") && !said.contains("try again"), "{said}");
    assert!(!said.contains("entry"), "{said}");
    // For half a second, the server repeats its last answer.
    let unready = eventually("the server to be unready", async || {
        Some(ready().await).filter(|answer| answer.status() == StatusCode::SERVICE_UNAVAILABLE)
    })
    .await;
    let said = unready.text().await.unwrap();
    assert!(said.contains(named), "{said}");
    server.assert_logs(named);

    run_sql(&database, named);
    assert_eq!(create().await.status(), StatusCode::CREATED);
    eventually("the server to be ready", async || (ready().await.status() == StatusCode::OK).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_the_database_denies_is_named_too() {
    let (database, of_role) = database_of("viewer");
    let server = Server::start_with(&["--database-url", &of_role]);
    run_sql(&database, "REVOKE SELECT ON payments.record FROM viewer");
    let list = async || server.request(Method::GET, "/webhooks").send().await.unwrap();
    // The server remembers the key for a second.
    let refused =
        eventually("the list to be denied", async || Some(list().await).filter(|it| it.status() != StatusCode::OK));
    let said = refused.await.text().await.unwrap();
    assert!(said.contains("the server's operator"), "{said}");
    server.assert_logs("GRANT SELECT ON payments.record TO viewer");
    run_sql(&database, "GRANT SELECT ON payments.record TO viewer");
    assert_eq!(list().await.status(), StatusCode::OK);
}

#[test]
fn the_start_and_the_doctor_name_every_missing_privilege() {
    let (database, of_role) = database_of("clerk");
    let run = |command: &str| {
        let arguments = [command, "--listen", "127.0.0.1:0", "--database-url", &of_role];
        text_of(&Command::new(server_binary()).args(arguments).output().unwrap())
    };
    let of_store = |said: &str| said.lines().find(|line| line.contains(" store ")).unwrap().to_owned();
    let sound = of_store(&run("doctor"));
    assert!(sound.starts_with("ok") && sound.contains("has the privileges that a server needs"), "{sound}");
    let mut named = Vec::new();
    let tables =
        "SELECT relname FROM pg_class WHERE relnamespace = 'payments'::regnamespace AND relkind = 'r' ORDER BY 1";
    for table in run_sql(&database, tables).lines() {
        for privilege in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
            run_sql(&database, &format!("REVOKE {privilege} ON payments.{table} FROM clerk"));
            let line = of_store(&run("doctor"));
            run_sql(&database, &format!("GRANT {privilege} ON payments.{table} TO clerk"));
            if line.starts_with("ok") {
                continue;
            }
            let is_named = line.contains(&format!("GRANT {privilege} ON payments.{table} TO clerk"));
            // Without this privilege the version of the tables cannot be read, and the database's error names the table.
            let is_version = (table, privilege) == ("schema_version", "SELECT");
            assert!(
                is_named || is_version && line.contains("denied for table schema_version"),
                "{table} {privilege}: {line}"
            );
            named.push((table.to_owned(), privilege));
        }
    }
    let of = |table: &str| named.iter().filter(|(name, _)| name == table).map(|(_, it)| *it).collect::<Vec<_>>();
    assert_eq!(of("batch"), ["SELECT", "INSERT", "DELETE"]);
    assert_eq!((of("cell"), of("schema_version")), (vec!["SELECT", "UPDATE"], vec!["SELECT", "UPDATE"]));
    for table in ["entry", "record", "request_window"] {
        assert_eq!(of(table), ["SELECT", "INSERT", "UPDATE", "DELETE"], "{table}");
    }

    run_sql(
        &database,
        "REVOKE DELETE ON payments.record FROM clerk; REVOKE INSERT, UPDATE ON payments.entry FROM clerk",
    );
    let said = run("serve");
    let grants = "GRANT INSERT, UPDATE ON payments.entry TO clerk; GRANT DELETE ON payments.record TO clerk";
    assert!(said.contains(grants), "{said}");
}
