//! The command line, with and without a running server, and the isolation between developers and environments.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant, SystemTime},
};

use payments_client::{Client, CreatePayment, CreateWebhook, Money, Subscription, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    engine::Engine,
    server::{Server, assert_nowhere, eventually, files_under, server_binary, text_of, write_settings},
};

fn client(server: &Server, key: &str) -> Client {
    Client::builder(key).base_url(&server.url).build().unwrap()
}

fn now_millis() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()
}

fn order() -> CreatePayment {
    CreatePayment::of(Money::taka(5)).success_url("https://a.example/ok").cancel_url("https://a.example/no")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_creates_workspaces_and_keys_with_and_without_a_running_server() {
    let mut server = Server::start();
    let running = server.run_for_line(&["workspaces", "create", "--name", "Rahim & Sons"]);
    let key = server.run_for_line(&["keys", "create", "--workspace", &running, "--environment", "test"]);
    assert!(key.starts_with("sk_test_"));
    let payment = client(&server, &key).payments().create(order()).await.unwrap();
    let page = server.keyless(Method::GET, &format!("/checkout/{}", payment.id)).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("Rahim &#38; Sons"));

    assert!(server.terminate().success());
    let stopped = server.run_for_line(&["workspaces", "create", "--name", "Offline", "--json"]);
    let stopped: Value = serde_json::from_str(&stopped).unwrap();
    let arguments = ["keys", "create", "--workspace", stopped["id"].as_str().unwrap(), "--environment", "test"];
    let offline_key = server.run_for_line(&arguments);
    server.restart();
    assert_eq!(client(&server, &offline_key).payments().list().await.unwrap().total, Some(0));
    assert_eq!(client(&server, &key).payments().list().await.unwrap().total, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_line_errors_say_what_to_do() {
    let server = Server::start();
    let holder = format!("process {} has", server.process_id());
    for (arguments, status, expected) in [
        (&["keys", "create", "--workspace", "ws_none", "--environment", "test"][..], 1, "no workspace has this id"),
        (&["workspaces", "create", "--name", " "], 1, "the name must be 1 to 200 bytes long"),
        (&["keys", "create", "--workspace", "ws_none", "--environment", "prod"], 2, "possible values: live, test"),
        (&["serve", "--listen", "127.0.0.1:0"], 1, &holder),
    ] {
        let output = server.try_run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(output.stdout.is_empty());
    }
    let taken = server.address();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut second = std::process::Command::new(server_binary());
    let second = second.args(["--listen", taken, "--data-dir"]).arg(elsewhere.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("choose another with --listen"));
}

#[tokio::test]
async fn a_command_gives_up_on_a_server_that_hangs_and_says_so() {
    let server = Server::start();
    let signal = |name: &str| Command::new("kill").args([name, &server.process_id().to_string()]).status().unwrap();
    // Stop the server as a debugger does.
    signal("-STOP");
    let begun = Instant::now();
    let backup = server.directory.path().join("backup").to_str().unwrap().to_owned();
    let commands = [vec!["keys", "list"], vec!["backup", &backup], vec!["check"], vec!["export", "payments"]];
    let run = |command: &[&str]| {
        let mut limited = Command::new("timeout");
        limited.args(["60", server_binary()]).args(command).arg("--data-dir").arg(server.data()).output().unwrap()
    };
    let said: Vec<_> = thread::scope(|threads| {
        let running: Vec<_> = commands.iter().map(|command| threads.spawn(|| run(command))).collect();
        running.into_iter().map(|command| text_of(&command.join().unwrap())).collect()
    });
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let socket = server.data().join("admin.sock");
    for said in said {
        assert!(said.contains("the running server has said nothing at "), "{said}");
        assert!(said.contains(socket.to_str().unwrap()) && said.contains("look whether it is stopped"), "{said}");
    }
    let asked = server.try_run(&["health", "--listen", server.address()]);
    assert!(text_of(&asked).contains("does not answer"), "{}", text_of(&asked));
    signal("-CONT");
    server.run(&["keys", "list"]);
}

#[test]
fn a_mistyped_directory_does_not_get_a_new_store() {
    let directory = tempfile::tempdir().unwrap();
    let run = |path: &Path, command: &[&str]| {
        let mut process = Command::new(server_binary());
        let output = process.args(command).arg("--data-dir").arg(path).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let missing = directory.path().join("paymets-data");
    for command in [
        &["keys", "list"][..],
        &["keys", "revoke", "key_1"],
        &["apps", "create", "--workspace", "ws_1", "--name", "Shop"],
        &["refunds", "list"],
        &["disputes", "list"],
        &["settlements", "list", "theirs"],
        &["payouts", "list"],
        &["customers", "export", "--workspace", "ws_1", "--phone", "01712345678"],
        &["reviews", "list"],
        &["backup", "/tmp/never-made"],
        &["check"],
        &["export", "payments"],
    ] {
        let (is_done, said) = run(&missing, command);
        assert!(
            !is_done
                && said
                    .contains(&format!("there is no store in {}: it does not exist, and no server", missing.display()))
                && said.contains("name the right directory with --data-dir"),
            "{command:?}: {said}"
        );
        assert!(!missing.exists(), "{command:?}");
    }
    let create = ["workspaces", "create", "--name", "Shop"];
    let full = directory.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("letter.txt"), "Dear Rahima").unwrap();
    let (is_done, said) = run(&full, &create);
    assert!(!is_done && said.contains("it has other files"), "{said}");
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1);

    let (is_done, said) = run(&missing, &create);
    assert!(is_done && said.contains("beginning a new store in "), "{said}");
    assert!(run(&missing, &["keys", "list"]).0);
    let (is_done, said) = run(&missing, &create);
    assert!(is_done && said.is_empty(), "{said}");
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_the_file() {
    let server = Server::start();
    let taken = server.address();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("payments.toml");
    let good = format!("listen = '{taken}'\n[stripe]\nsecret_key = 'sk_live_hush'\nwebhook_secret = 'whsec_hush'\n");
    let cannot_listen = format!("cannot listen on {taken}");
    for (text, variables, arguments, status, expected) in [
        (&*good, &[][..], &[][..], 1, &*cannot_listen),
        ("listen = 'hush'", &[("PAYMENTS_LISTEN", taken)], &[], 1, &cannot_listen),
        ("listen = 'hush'", &[("PAYMENTS_LISTEN", "127.0.0.1:0")], &["--listen", taken], 1, &cannot_listen),
        (&good, &[("PAYMENTS_STRIPE_SECRET_KEY", "")], &[], 1, &cannot_listen),
        (&good, &[("PAYMENTS_STRIPE_SECRET_KEY", "a b")], &[], 1, "PAYMENTS_STRIPE_SECRET_KEY must be visible ASCII"),
        ("listen = 'hush'", &[], &[], 2, "payments.toml, line 1, column 10: listen: must be IP:PORT"),
        ("lisen = 'hush'", &[], &[], 1, "payments.toml, line 1, column 1: lisen is not a flag"),
        (&good, &[("PAYMENTS_LISTEN", "hush")], &[], 2, "PAYMENTS_LISTEN: must be IP:PORT"),
        (&good, &[("PAYMENTS_LOG_FORMAT", "hush")], &[], 2, "PAYMENTS_LOG_FORMAT: must be one of text, json"),
    ] {
        write_settings(&file, text);
        let mut serve = std::process::Command::new(server_binary());
        serve.envs(variables.iter().copied()).arg("--config").arg(&file).args(arguments);
        let output = serve.arg("--data-dir").arg(directory.path().join("data")).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{shown}");
        assert!(shown.contains(expected) && !shown.contains("hush"), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_only_records_of_its_developer_and_environment() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Other"]);
    let create =
        |environment| server.run_for_line(&["keys", "create", "--workspace", &workspace, "--environment", environment]);
    let (test, live) = (create("test"), create("live"));
    let owner = server.client();
    let payment = owner.payments().create(order()).await.unwrap();
    let endpoint = owner.webhooks().create(CreateWebhook::new("http://127.0.0.1:9/", Subscription::All)).await.unwrap();
    let own = client(&server, &test).payments().create(order()).await.unwrap();
    for stranger in [&test, &live] {
        let client = client(&server, stranger);
        assert!(client.payments().retrieve(&payment.id).await.unwrap_err().is_not_found());
        assert!(client.webhooks().list().await.unwrap().is_empty());
        let deliveries = format!("/api/v1/webhooks/deliveries?webhookId={}", endpoint.id);
        let answer = server.keyless(Method::GET, &deliveries).bearer_auth(stranger).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    // The same developer's live key does not see test payments either.
    let live = client(&server, &live);
    assert!(live.payments().retrieve(&own.id).await.unwrap_err().is_not_found());
    assert_eq!(live.payments().list().await.unwrap().total, Some(0));
    assert_eq!(owner.payments().list().await.unwrap().total, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_a_live_payment_without_a_gateway_returns_422() {
    let server = Server::start();
    let key = server.new_key("Live", "live");
    let refused = client(&server, &key).payments().create(order()).await.unwrap_err();
    assert_eq!(refused.status(), Some(422));
    assert!(refused.to_string().contains("no gateway for live BDT payments"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_contains_an_api_key_in_clear_text() {
    let mut server = Server::start();
    let key = server.new_key("Quiet", "test");
    client(&server, &key).payments().create(order()).await.unwrap();
    assert!(server.terminate().success());
    assert!(files_under(server.directory.path()).len() >= 3);
    assert_nowhere(key.strip_prefix("sk_test_").unwrap(), server.directory.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_lists_rotates_and_revokes_keys_of_a_running_server() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Rotating"]);
    let key = server.run_for_line(&["keys", "create", "--workspace", &workspace, "--environment", "test"]);
    let list = || {
        let listed: Value = serde_json::from_str(&server.run_for_line(&["keys", "list", "--json"])).unwrap();
        let keys = listed["keys"].as_array().unwrap().clone();
        keys.into_iter().filter(|row| row["workspace"] == *workspace).collect::<Vec<_>>()
    };
    let first = list().remove(0);
    assert_eq!((&first["environment"], &first["last4"]), (&"test".into(), &key[key.len() - 4..].into()));
    assert_eq!(first["revokedAt"], Value::Null);

    let rotated = server.run_for_line(&["keys", "rotate", first["id"].as_str().unwrap()]);
    assert!(client(&server, &key).payments().list().await.unwrap_err().is_authentication());
    assert_eq!(client(&server, &rotated).payments().list().await.unwrap().total, Some(0));
    let rows = list();
    assert_eq!(rows.iter().filter(|row| row["revokedAt"] == Value::Null).count(), 1);
    assert_eq!(rows.len(), 2);

    let new = rows.into_iter().find(|row| row["revokedAt"] == Value::Null).unwrap();
    server.run_for_line(&["keys", "revoke", new["id"].as_str().unwrap()]);
    assert!(client(&server, &rotated).payments().list().await.unwrap_err().is_authentication());
    let again = server.try_run(&["keys", "rotate", new["id"].as_str().unwrap()]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("this key is already revoked"));
    let unknown = server.try_run(&["keys", "revoke", "key_unknown"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no API key has this id"));
}

async fn a_replaced_key_works_until_its_overlap_is_over(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let old = server.new_key("Rotating", "test");
    let rows = |server: &Server| {
        let listed: Value = serde_json::from_str(&server.run_for_line(&["keys", "list", "--json"])).unwrap();
        listed["keys"].as_array().unwrap().clone()
    };
    let row =
        |server: &Server, key: &str| rows(server).into_iter().find(|row| row["last4"] == key[key.len() - 4..]).unwrap();
    let code = async |server: &Server, key: &str| {
        let answer = server.keyless(Method::GET, "/api/v1/account").bearer_auth(key).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["code"].clone()
    };
    let id = row(&server, &old)["id"].as_str().unwrap().to_owned();
    let before = now_millis();
    let new = server.run_for_line(&["keys", "rotate", &id, "--overlap", "24h"]);
    let replaced = row(&server, &old);
    let end = replaced["expiresAt"].as_str().unwrap();
    let millis = end.parse::<Timestamp>().unwrap().as_millis() - i64::try_from(before).unwrap();
    assert!((86_400_000..86_460_000).contains(&millis), "{replaced}");
    assert_eq!((&replaced["revokedAt"], &replaced["replacedBy"]), (&Value::Null, &row(&server, &new)["id"]));
    assert_eq!(row(&server, &new)["expiresAt"], Value::Null, "the new key does not end");
    let listed = server.run(&["keys", "list"]);
    let line = listed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert!(line.contains(&format!(" {end} ")), "{line}");
    for key in [&old, &new] {
        assert_eq!(code(&server, key).await, Value::Null, "both work");
    }
    // The operator repeats the command, because its output was lost.
    let again = server.try_run(&["keys", "rotate", &id, "--overlap", "24h"]);
    let said = String::from_utf8(again.stderr).unwrap();
    let newest = row(&server, &new)["id"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("{newest} has replaced this key, which works until {end}")), "{said}");
    assert_eq!(rows(&server).len(), 3, "with the sandbox's key");

    // The same while the server does not run.
    assert!(server.terminate().success());
    let newer = server.run_for_line(&["keys", "rotate", &newest, "--overlap", "3s"]);
    server.restart();
    let deadline = row(&server, &new)["expiresAt"].as_str().unwrap().parse::<Timestamp>().unwrap();
    while code(&server, &new).await == Value::Null {
        sleep(Duration::from_millis(50)).await;
    }
    // On PostgreSQL the server uses its estimate of the database's clock.
    let error = Duration::from_millis(if server.database().is_some() { 250 } else { 0 });
    let end = SystemTime::UNIX_EPOCH + Duration::from_millis(deadline.as_millis().unsigned_abs());
    assert!(SystemTime::now() + error >= end);
    assert_eq!(code(&server, &new).await, "api_key_expired");
    for key in [&old, &newer] {
        assert_eq!(code(&server, key).await, Value::Null, "each overlap has its own end");
    }
    // The operator can end an overlap early. Without an overlap, a key ends at once.
    server.run_for_line(&["keys", "revoke", &id]);
    let last = server.run_for_line(&["keys", "rotate", row(&server, &newer)["id"].as_str().unwrap()]);
    eventually("both to be refused", async || {
        let codes = (code(&server, &old).await, code(&server, &newer).await);
        (codes == ("unauthorized".into(), "unauthorized".into())).then_some(())
    })
    .await;
    assert_eq!(code(&server, &last).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_works_until_its_overlap_is_over_on_a_directory() {
    a_replaced_key_works_until_its_overlap_is_over(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_works_until_its_overlap_is_over_on_postgresql() {
    a_replaced_key_works_until_its_overlap_is_over(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overlap_never_extends_a_key_and_lasts_at_most_a_week() {
    let server = Server::start();
    server.new_key_with("Till", "test", &["--expires", "2099-01-01T00:00:00Z"]);
    let rows = || {
        let listed: Value = serde_json::from_str(&server.run_for_line(&["keys", "list", "--json"])).unwrap();
        let keys = listed["keys"].as_array().unwrap().clone();
        keys.into_iter().filter(|row| row["expiresAt"] != Value::Null).collect::<Vec<_>>()
    };
    let id = rows()[0]["id"].as_str().unwrap().to_owned();
    for overlap in ["8d", "169h", "24", "h", "1.5h", "24 h", ""] {
        let refused = server.try_run(&["keys", "rotate", &id, "--overlap", overlap]);
        assert_eq!(refused.status.code(), Some(2), "{overlap}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("such as 24h, at most 7d"), "{overlap}");
    }
    server.run_for_line(&["keys", "rotate", &id, "--overlap", "7d"]);
    let (old, new) = (&rows()[0], &rows()[1]);
    assert!(old["expiresAt"].as_str().unwrap() < "2099", "{old}");
    assert_eq!(new["expiresAt"], "2099-01-01T00:00:00.000Z");

    let soon = Timestamp::from_millis(i64::try_from(now_millis()).unwrap() + 60_000).unwrap().to_string();
    server.new_key_with("Fair", "test", &["--expires", &soon]);
    let short = rows().into_iter().find(|row| row["expiresAt"] == *soon).unwrap();
    server.run_for_line(&["keys", "rotate", short["id"].as_str().unwrap(), "--overlap", "24h"]);
    assert_eq!(rows().iter().filter(|row| row["expiresAt"] == *soon).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_and_apps_are_listed_and_commands_accept_a_workspaces_name() {
    for engine in [Engine::Directory, Engine::Postgres] {
        let server = Server::start_on(engine, &[]);
        let workspace = server.run_for_line(&["workspaces", "create", "--name", "Rahim & Sons"]);
        let create_app = ["apps", "create", "--workspace", "Rahim & Sons", "--name", "Till 2"];
        let app = server.run_for_line(&[&create_app[..], &["--webhook-url", "https://shop.example/hook"]].concat());
        let key = server.run_for_line(&["keys", "create", "--workspace", "Rahim & Sons", "--environment", "test"]);
        let account = client(&server, &key).account().retrieve().await.unwrap();
        assert_eq!((account.workspace.id.as_str(), account.workspace.name.as_str()), (&*workspace, "Rahim & Sons"));

        let listed = server.run(&["workspaces", "list"]);
        let lines: Vec<_> = listed.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "WORKSPACE DEVELOPER CREATED NAME"), "{listed}");
        assert!(lines[1].ends_with("Z Sandbox"), "{listed}");
        assert!(lines[2].starts_with(&workspace) && lines[2].ends_with("Z Rahim & Sons"), "{listed}");
        let listed: Value = serde_json::from_str(&server.run(&["workspaces", "list", "--json"])).unwrap();
        assert_eq!(listed["workspaces"][1]["name"], "Rahim & Sons");
        let listed = server.run(&["apps", "list"]);
        assert!(listed.contains(&format!("NAME\n{app} {workspace} ")), "{listed}");
        assert!(listed.ends_with(" https://shop.example/hook Till 2"), "{listed}");

        let refused = |name: &str| {
            let output = server.try_run(&["keys", "create", "--workspace", name, "--environment", "test"]);
            assert!(!output.status.success());
            String::from_utf8(output.stderr).unwrap()
        };
        assert!(refused("Rahim").contains("no workspace has this id or name; `payments-server workspaces list` shows"));
        let twin = server.run_for_line(&["workspaces", "create", "--name", "Rahim & Sons"]);
        let said = refused("Rahim & Sons");
        assert!(said.contains(&format!("2 workspaces have this name; give the id: {workspace}, {twin}")), "{said}");
    }
}
