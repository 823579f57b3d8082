//! The guides' commands work as printed, in order, against the server that shows them.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, process::Command};

use reqwest::Method;

use crate::{
    live::Live,
    readme::{blocks::commands, reader::Reader},
    server::Server,
};

/// The port of the guides' receiver.
const RECEIVER: &str = "127.0.0.1:3000";
const GUIDES: [&str; 5] = ["first-payment", "webhooks", "refunds", "testing", "going-live"];

/// A block of a page: its class, the file's name if it is a file, and the text.
struct Block {
    class: String,
    name: String,
    text: String,
}

/// The blocks of a guide on the server at this address.
async fn blocks(address: &str, guide: &str) -> Vec<Block> {
    let answer = reqwest::get(format!("http://{address}/docs/{guide}")).await.unwrap();
    assert_eq!(answer.status(), 200, "{guide}");
    let page = answer.text().await.unwrap();
    let plain = |text: &str| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
        text.replace("&amp;", "&")
    };
    let block = |rest: &str| {
        let (class, rest) = rest.split_once('"').unwrap();
        let (attributes, rest) = rest.split_once("><code>").unwrap();
        let name = attributes.split("data-name=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap());
        let text = plain(rest.split_once("</code></pre>").unwrap().0);
        Block { class: class.to_owned(), name: name.to_owned(), text }
    };
    page.split("<pre class=\"").skip(1).map(block).collect()
}

/// Types a guide's commands. `told` turns a printed command into the one that this reader types. Returns what each printed.
async fn follow(reader: &mut Reader, guide: &str, told: impl Fn(&str) -> String) -> Vec<String> {
    let mut printed = Vec::new();
    for block in blocks(&reader.address, guide).await {
        let text = told(&block.text);
        match &*block.class {
            // A loop or a quoted body takes several lines, so a block is typed as a whole.
            "sh" if text.contains("payments-server") => {
                for command in commands(&text) {
                    printed.push(reader.type_in(&command));
                }
            }
            "sh" => printed.push(reader.run(&text)),
            "file" | "toml" => {
                let name = if block.name.is_empty() { "payments.toml" } else { &block.name };
                let file = reader.directory.path().join(name);
                fs::write(&file, text).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            }
            other => panic!("{guide} has a block of {other:?}, which no reader can follow"),
        }
    }
    assert!(!printed.is_empty(), "{guide} has no commands");
    printed
}

fn as_printed(text: &str) -> String {
    text.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_a_first_payment_works_as_printed() {
    let mut reader = Reader::new();
    reader.serve("payments-server");
    let printed = follow(&mut reader, "first-payment", as_printed).await;
    assert!(printed[0].contains("\"status\":\"pending\""), "{}", printed[0]);
    assert!(printed[1].contains("/checkout/pay_"), "{}", printed[1]);
    assert!(printed.last().unwrap().contains("amount_invalid"), "{printed:?}");
}

/// Ends the receiver that a reader started, in case the guide was interrupted.
struct Ended(Option<String>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            let _ = Command::new("kill").arg(process).status();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_webhooks_works_as_printed() {
    let mut reader = Reader::new();
    reader.serve("payments-server");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = |text: &str| {
        let text = text.replace(RECEIVER, &free.to_string());
        text.replace("(\"127.0.0.1\", 3000)", &format!("(\"127.0.0.1\", {})", free.port()))
    };
    let printed = follow(&mut reader, "webhooks", told).await;
    let _ended = Ended(reader.variables.get("receiver").cloned());
    let all = printed.join("\n");
    for expected in ["\"responseStatus\":200", "payment.completed", "\"items\":[{", "\"resent\":0", "\"success\":true"]
    {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    let events = fs::read_to_string(reader.directory.path().join("events.log")).unwrap();
    assert!(["test.ping", "payment.created", "payment.completed"].iter().all(|it| events.contains(it)), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_receiver_refuses_unsigned_requests() {
    let server = Server::start();
    let receiver = blocks(server.address(), "webhooks").await.into_iter().find(|it| it.name == "receiver.py").unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("webhook.secret"), "whsec_1\n").unwrap();
    let program = receiver.text.split("http.server.Threading").next().unwrap().to_owned()
        + "now = str(int(time.time()))\n\
           sign = lambda secret, at, body: hmac.new(secret, at.encode() + b'.' + body, hashlib.sha256).hexdigest()\n\
           good = sign(b'whsec_1', now, b'{}')\n\
           assert is_genuine(f't={now},v1={good}', b'{}')\n\
           assert is_genuine(f't={now},v1={\"0\" * 64},v1={good}', b'{}')\n\
           old = str(int(now) - 301)\n\
           for header, body in [\n\
               (f't={now},v1={good}', b'{ }'), (f't={old},v1={sign(SECRET, old, b\"{}\")}', b'{}'), ('', b'{}'),\n\
               (f't={now},v1={sign(b\"other\", now, b\"{}\")}', b'{}'), (f'v1={good}', b'{}'), (f't={now}', b'{}'),\n\
               (f't={now},t={now},v1={good}', b'{}'), (f't={now},v1=\\u00e9', b'{}'), (f't=-1,v1={good}', b'{}'),\n\
           ]:\n    assert not is_genuine(header, body), header\n";
    let output = Command::new("python3").args(["-c", &program]).current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_refunds_works_as_printed_with_a_live_key_and_a_paid_payment() {
    let live = Live::start("").await;
    for (currency, kind) in [("USD", "card"), ("BDT", "wallet")] {
        let paid = live.paid(750.0, currency).await;
        let mut reader = Reader::new();
        live.server.address().clone_into(&mut reader.address);
        let told =
            |text: &str| text.replace("sk_live_...", &live.key).replace("payment=pay_...", &format!("payment={paid}"));
        let printed = follow(&mut reader, "refunds", told).await.join("\n");
        for expected in ["\"amountRefunded\":250", "\"status\":\"refunded\"", "\"kind\":\"refund\""] {
            assert!(printed.contains(expected), "{kind} {expected}: {printed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_testing_works_as_printed() {
    let mut reader = Reader::new();
    reader.serve("payments-server");
    let printed = follow(&mut reader, "testing", as_printed).await.join("\n");
    for expected in
        ["\"status\":\"paid\"", "\"status\":\"failed\"", "\"status\":\"cancelled\"", "\"sessions\":", "is empty"]
    {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_going_live_works_as_printed() {
    let mut reader = Reader::new();
    reader.serve("payments-server");
    let printed = follow(&mut reader, "going-live", as_printed).await.join("\n");
    assert!(printed.contains("Rahim's Tea"), "{printed}");
    assert!(printed.contains("whsec_"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_links_every_guide_and_every_link_leads_somewhere() {
    let server = Server::start();
    let page = async |path: &str| {
        let answer = server.keyless(Method::GET, path).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let guides = GUIDES.map(|name| format!("/docs/{name}"));
    let docs = page("/docs").await.1;
    for path in guides.iter().map(String::as_str).chain(["/", "/docs"]) {
        let (status, text) = page(path).await;
        assert_eq!(status, 200, "{path}");
        for guide in &guides {
            assert!(text.contains(&format!("href=\"{guide}\"")), "{path} does not link {guide}");
        }
        for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let there = match target {
                "" => text.clone(),
                "/docs" => docs.clone(),
                other => page(other).await.1,
            };
            assert!(anchor.is_empty() || there.contains(&format!("id=\"{anchor}\"")), "{path} links {link}");
        }
    }
    assert_eq!(page("/docs/nothing").await.0, 404);
}
