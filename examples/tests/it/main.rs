//! Runs the server and the examples, and buys something.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod settled;

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use test_support::server_binary;

/// A process that is killed on drop.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The next line it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The address in the next line it prints.
    fn address(&mut self) -> String {
        let line = self.line();
        line.split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("{line:?}"))
            .to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_buys_a_cup_and_the_receiver_gets_the_events() {
    let data = tempfile::tempdir().unwrap();
    let mut server =
        Running::start(Command::new(server_binary()).args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(data.path()));
    let api = server.address();
    let mut receiver = Running::start(
        Command::new(env!("CARGO_BIN_EXE_webhook-receiver"))
            .env("PAYMENTS_URL", &api)
            .env("RECEIVER_LISTEN", "127.0.0.1:0")
            .env_remove("WEBHOOK_SECRET"),
    );
    let endpoint = receiver.address();
    let mut shop = Running::start(
        Command::new(env!("CARGO_BIN_EXE_shop")).env("PAYMENTS_URL", &api).env("SHOP_LISTEN", "127.0.0.1:0"),
    );
    let shop = shop.address();

    let browser = reqwest::Client::new();
    let shelf = browser.get(&shop).send().await.unwrap().text().await.unwrap();
    assert!(shelf.contains("৳750<") && shelf.contains("৳950<") && shelf.contains("value=\"cup\""), "{shelf}");
    let buy = |product: &str| {
        let form = browser.post(format!("{shop}/buy")).header("content-type", "application/x-www-form-urlencoded");
        form.body(format!("product={product}"))
    };
    assert_eq!(buy("gold").send().await.unwrap().status(), 404);
    let checkout = buy("cup").send().await.unwrap();
    assert!(checkout.url().as_str().starts_with(&format!("{api}/checkout/pay_")), "{}", checkout.url());
    let pay = browser.post(checkout.url().clone()).header("content-type", "application/x-www-form-urlencoded");
    let page = pay.body("action=success").send().await.unwrap().text().await.unwrap();
    // The page of a test payment has a link back to the shop.
    let (_, rest) = page.split_once("<a class=\"button go\" href=\"").unwrap();
    let back = rest.split_once('"').unwrap().0.replace("&#38;", "&");
    let thanks = browser.get(&back).send().await.unwrap().text().await.unwrap();
    for expected in ["<h1>Thank you</h1>", "<dd>order-", "<dd>Tea cup</dd>", "<dd>750 BDT</dd>"] {
        assert!(thanks.contains(expected), "{thanks}");
    }

    // The browser says that it is paid. The shop asks the API.
    let waiting = buy("pot").send().await.unwrap();
    let id = waiting.url().path().rsplit('/').next().unwrap();
    let page = browser.get(format!("{shop}/order?payment_id={id}&status=completed"));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<h1>We wait for your payment</h1>") && page.contains("<dd>2400 BDT</dd>"), "{page}");
    for unknown in ["pay_unknown", "%3Cscript%3E"] {
        let page = browser.get(format!("{shop}/order?payment_id={unknown}")).send().await.unwrap();
        assert_eq!(page.status(), 404);
    }

    let printed = [receiver.line(), receiver.line(), receiver.line()];
    assert!(printed.iter().any(|line| line.contains(" payment.created pay_")), "{printed:?}");
    assert!(
        printed.iter().any(|line| line.contains(" payment.completed pay_") && line.ends_with(" 750 BDT")),
        "{printed:?}"
    );

    let forged = browser.post(endpoint).header("x-service-signature", "t=1,v1=00").body("{}").send().await.unwrap();
    assert_eq!(forged.status(), 400);
}

#[test]
fn an_example_says_in_one_line_why_it_cannot_run() {
    for (program, variable, value, expected) in [
        (
            env!("CARGO_BIN_EXE_shop"),
            "SHOP_LISTEN",
            "nowhere",
            "the shop ended: cannot listen on SHOP_LISTEN=nowhere: ",
        ),
        (
            env!("CARGO_BIN_EXE_shop"),
            "PAYMENTS_KEY",
            "pk_test_1",
            "the shop ended: cannot build the client: an API key ",
        ),
        (
            env!("CARGO_BIN_EXE_webhook-receiver"),
            "PAYMENTS_URL",
            "http://127.0.0.1:9",
            "the webhook receiver ended: cannot connect to the API; check the base URL and the network",
        ),
    ] {
        let mut command = Command::new(program);
        command.env_remove("WEBHOOK_SECRET").env("RECEIVER_LISTEN", "127.0.0.1:0").env("SHOP_LISTEN", "127.0.0.1:0");
        let output = command.env(variable, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.lines().count() == 1, "{said}");
        assert!(said.starts_with(expected), "{said}");
    }
}
