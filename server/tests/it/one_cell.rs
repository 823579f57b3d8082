//! Every transaction of a server on a database concerns one cell, so that cells can be on different nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::cluster::Cluster;

use crate::{
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of, server_binary, text_of},
};

/// Statements that concern no cell: settings, the barrier, the clock, and the role's privileges.
const OF_NO_CELL: [&str; 9] = [
    "SET ",
    "SELECT set_config",
    "UPDATE schema_version",
    "SELECT pg_walfile_name",
    "SELECT (extract(epoch FROM clock_timestamp())",
    "SELECT current_user",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
];

/// The transactions of a log, each with its cells and its statements. A line of the log begins with the process's number.
fn transactions(log: &str) -> Vec<(BTreeSet<String>, Vec<String>)> {
    let (mut done, mut open) = (Vec::new(), BTreeMap::<String, (BTreeSet<String>, Vec<String>)>::new());
    let mut begun = BTreeSet::new();
    for line in log.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let said = rest.strip_prefix("LOG:  execute ").and_then(|rest| Some(rest.split_once(": ")?.1));
        if let Some(sql) = said.or_else(|| rest.strip_prefix("LOG:  statement: ")) {
            if sql.starts_with("BEGIN") {
                begun.insert(process.to_owned());
            }
            open.entry(process.to_owned()).or_default().1.push(sql.to_owned());
            let ends = sql.starts_with("COMMIT") || sql.starts_with("ROLLBACK");
            if ends || !begun.contains(process) && !sql.contains('$') {
                begun.remove(process);
                done.extend(open.remove(process));
            }
        } else if let Some(parameters) = rest.strip_prefix("DETAIL:  parameters: $1 = '") {
            let (cells, statements) = open.entry(process.to_owned()).or_default();
            // The first parameter of each statement about a cell is the cell's number.
            if statements.last().is_some_and(|sql| sql.contains("cell = $1")) {
                cells.extend(parameters.split('\'').next().map(str::to_owned));
            }
            if !begun.contains(process) {
                done.extend(open.remove(process));
            }
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transaction_of_a_payments_life_names_one_cell() {
    let cluster = Cluster::start(&["log_statement=all", "log_line_prefix=%p "]);
    let database = cluster.new_database();
    let mut merchants = Vec::new();
    let run = |arguments: &[&str]| {
        let output =
            Command::new(server_binary()).args(arguments).args(["--database-url", &database]).output().unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for name in ["Rahim", "Karim", "Salma", "Nadia"] {
        let workspace = run(&["workspaces", "create", "--json", "--name", name]);
        let workspace = workspace["id"].as_str().unwrap();
        let key = run(&["keys", "create", "--json", "--environment", "test", "--workspace", workspace]);
        merchants.push(key["key"].as_str().unwrap().to_owned());
    }
    let server = Server::start_with(&["--database-url", &database]);
    let receiver = Receiver::start(Reply::Status(StatusCode::OK, String::new())).await;
    for key in &merchants {
        let call = async |method: Method, path: &str, body: &Value| {
            let request = reqwest::Client::new().request(method, format!("http://{}/api/v1{path}", server.address()));
            let answer = request.bearer_auth(key).header("idempotency-key", path).json(body).send().await.unwrap();
            assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
            answer.json::<Value>().await.unwrap()
        };
        call(Method::POST, "/webhooks", &json!({"url": receiver.url(), "events": "*"})).await;
        let payment = call(Method::POST, "/payments", &payment_of(&json!(100))).await;
        let id = payment["id"].as_str().unwrap();
        call(Method::POST, &format!("/checkout/{id}/simulate"), &json!({})).await;
        for path in ["/payments", "/payments?status=completed", "/events", "/account", "/account/transactions"] {
            call(Method::GET, path, &json!({})).await;
        }
    }
    // Each merchant gets `payment.created` and `payment.completed`.
    eventually("every event", async || (receiver.received().len() >= 2 * merchants.len()).then_some(())).await;
    assert!(server.metrics().await.contains("payments_outbox_deliveries"));

    let log = fs::read_to_string(cluster.log()).unwrap();
    let found = transactions(&log);
    let mut cells = BTreeSet::new();
    for (named, statements) in &found {
        assert!(named.len() <= 1, "a transaction names the cells {named:?}: {statements:#?}");
        cells.extend(named.iter().cloned());
        for sql in statements.iter().filter(|sql| ["record", "entry", "batch"].iter().any(|it| sql.contains(it))) {
            let is_of_tables = sql.contains("CREATE ") || sql.starts_with("--");
            let is_excused = is_of_tables || OF_NO_CELL.iter().any(|it| sql.starts_with(it));
            assert!(is_excused || !named.is_empty(), "{sql} names no cell");
        }
    }
    assert!(found.len() > 100 && cells.len() > 1, "{} transactions of {} cells", found.len(), cells.len());
}
