//! Text from outside in terminals, tables and logs. It adds no lines and moves no cursor.

use std::process::{Command, Stdio};

use gateway_fakes::bkash;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    live::Live,
    server::{Server, payment_of, server_binary},
};

/// Creates a payment with one more field. Returns the status and the response.
async fn created(server: &Server, name: &str, value: Value) -> (u16, Value) {
    let mut body = payment_of(&json!(5));
    body[name] = value;
    let answer = server.request(Method::POST, "/payments").json(&body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_number_is_stored_in_plain_form_and_found_in_its_sent_form() {
    let server = Server::start();
    for (sent, stored) in [
        ("+880 (0) 1712\u{2011}345678", "+880 1712-345678"),
        ("\u{202d}01712\u{a0}345\t678\u{202c}\n", "01712 345 678"),
        ("০১৭১২–৩৪৫৬৭৮", "01712-345678"),
        ("+1 (212) 555.0100", "+1 (212) 555 0100"),
    ] {
        for (field, value) in [("customer", json!({"phone": sent})), ("customerPhone", json!(sent))] {
            let (status, payment) = created(&server, field, value).await;
            assert_eq!((status, &payment["customer"]["phone"]), (201, &json!(stored)), "{sent:?}");
            let id = payment["id"].as_str().unwrap();
            assert_eq!(server.get(&format!("/payments/{id}")).await["customerPhone"], stored);
            let session = server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap();
            assert_eq!(session.json::<Value>().await.unwrap()["customerPhone"], stored);
        }
        let query: String = url::form_urlencoded::byte_serialize(sent.as_bytes()).collect();
        let found = server.get(&format!("/payments?customerPhone={query}")).await;
        assert!(found["items"].as_array().unwrap().len() >= 2, "{sent:?}: {found}");
    }
    for forged in ["01712345678\npay_2 750 BDT - 01911", "\u{1b}[1A01712345678", "call me", "017<b>"] {
        let (status, refused) = created(&server, "customer", json!({"phone": forged})).await;
        let sentence = "customer.phone must have only digits, spaces and + - ( ), such as +880 1712-345678";
        assert_eq!((status, &refused["message"]), (400, &json!([sentence])), "{forged:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_line() {
    let server = Server::start();
    let fault = "must be one line, without control characters";
    for forged in ["Asha\nRahman", "Asha\r", "\u{1b}[2J", "\u{202e}ahsA", "a\u{2028}b", "\u{9b}2J"] {
        for (field, value, named) in [
            ("customer", json!({"name": forged}), "customer.name"),
            ("customerName", json!(forged), "customerName"),
            ("lineItems", json!([{"name": forged}]), "lineItems[0].name"),
        ] {
            let (status, refused) = created(&server, field, value).await;
            assert_eq!((status, &refused["message"]), (400, &json!([format!("{named} {fault}")])), "{forged:?}");
        }
        let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({"customerName": forged}));
        assert_eq!(demo.send().await.unwrap().status(), 400);
    }
    for name in ["র\u{200d}্যাব", "عائشة\u{200f}", "O'Neill 🎁"] {
        let (status, payment) = created(&server, "customer", json!({"name": name})).await;
        assert_eq!((status, &payment["customerName"]), (201, &json!(name)));
    }
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Shop"]);
    let create_key = ["keys", "create", "--workspace", &workspace, "--environment", "test"];
    let create_app = ["apps", "create", "--workspace", &workspace];
    for command in [&["workspaces", "create"][..], &create_key, &create_app] {
        let output = server.try_run(&[command, &["--name", "Shop\n\u{1b}[2J"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(fault), "{command:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_gateway_or_an_operator_adds_no_line_and_moves_no_cursor() {
    let live = Live::start("").await;
    let server = &live.server;
    let mut body = payment_of(&json!(750));
    body["customerPhone"] = json!("+880 1712-345678");
    let created = live.request(Method::POST, "/payments").json(&body).send().await.unwrap();
    let id = created.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let (_, attempt) = live.pay(&id).await;
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    live.come_back(&back).await;
    let refund = live.request(Method::POST, &format!("/payments/{id}/refund"));
    let reason = json!({"reason": "=1+1\n\u{1b}[2J\u{202e}"});
    assert_eq!(refund.json(&reason).send().await.unwrap().status(), 200);
    let listed = server.run(&["refunds", "list"]);
    let (columns, row) = listed.split_once('\n').unwrap();
    assert_eq!(columns, "PAYMENT AMOUNT CURRENCY TRANSACTION PHONE CREATED DUE OVERDUE REFUND");
    assert!(
        !row.contains('\n') && row.starts_with(&format!("{id} 750 BDT ")) && row.contains(" \"+880 1712-345678\" "),
        "{row}"
    );
    let exported = server.run(&["export", "refunds", "--format", "csv"]);
    let reason = csv::Reader::from_reader(exported.as_bytes()).records().next().unwrap().unwrap()[10].to_owned();
    assert_eq!(reason, "'=1+1\n\u{1b}[2J\u{202e}", "a file has the text itself");

    let reference = "TX1\n\u{1b}[1A\u{202e}";
    let settled = server.run_for_line(&["refunds", "settle", &id, "--reference", reference]);
    assert!(settled.ends_with(r" as TX1\n\u{1b}[1A\u{202e}"), "{settled:?}");
    let again = server.run_for_line(&["refunds", "settle", &id, "--reference", reference, "--json"]);
    assert!(!again.contains('\u{202e}'), "{again:?}");
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["reference"], reference);
    let output = server.try_run(&["refunds", "settle", "pay_\u{1b}[2J\n\u{202e}", "--reference", "x"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

#[test]
fn an_error_quotes_its_input_with_control_characters_escaped() {
    let hostile = "dir\u{1b}[2J\n\u{202e}name";
    let output = Command::new(server_binary())
        .args(["keys", "list", "--data-dir", hostile])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(r"dir\u{1b}[2J\n\u{202e}name") && said.lines().count() == 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_to_a_terminal_has_no_control_characters() {
    let server = Server::start();
    let hostile = "\u{1b}[2J\u{202e}\u{9b}tea";
    created(&server, "description", json!(hostile)).await;
    for format in ["csv", "jsonl"] {
        let arguments = ["export", "payments", "--format", format];
        let file = server.run(&arguments);
        assert!(file.contains('\u{202e}'), "{file:?}");
        // `script` runs a command in a terminal.
        let data = server.data();
        let line = format!("{} {} --data-dir {}", server_binary(), arguments.join(" "), data.display());
        let output = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("202e") && shown.contains("tea"), "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{9b}']) && !shown.contains("\u{1b}[2J"), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_has_its_columns_and_for_spreadsheets_a_byte_order_mark() {
    let server = Server::start();
    for (records, first) in [
        ("payments", "id,createdAt,paidAt,"),
        ("refunds", "id,payment,"),
        ("postings", "at,payment,"),
        ("deliveries", "id,createdAt,deliveredAt,"),
    ] {
        let table = server.run_for_line(&["export", records, "--format", "csv"]);
        assert!(table.starts_with(first), "{table}");
    }
    let path = "/account/transactions.csv";
    let table = |query: &str| server.request(Method::GET, &format!("{path}{query}")).send();
    let plain = table("").await.unwrap().bytes().await.unwrap();
    assert_eq!(plain, table("?bom=false").await.unwrap().bytes().await.unwrap());
    assert!(plain.starts_with(b"id,createdAt,"));
    let marked = table("?bom=true").await.unwrap().bytes().await.unwrap();
    assert_eq!(marked.strip_prefix(b"\xef\xbb\xbf"), Some(&plain[..]));
    let refused: Value = table("?bom=yes").await.unwrap().json().await.unwrap();
    assert_eq!(refused["message"], json!(["bom must be true or false"]));
}
