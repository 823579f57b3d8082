//! What the client logs. A separate binary, because log settings apply to the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "it/server.rs"]
mod server;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use payments_client::{Client, CreatePayment, Customer, Money};
use tracing_subscriber::fmt::format::FmtSpan;

use server::Server;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_span_has_the_method_template_status_and_tries_and_no_personal_data() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("payments_client=trace")
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let id = tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            let client = Client::builder("sk_test_demo").base_url(&server.url).build().unwrap();
            let customer = Customer { name: Some("Karim".into()), ..Customer::default() };
            let params = CreatePayment::of(Money::taka(5))
                .success_url("https://shop.example/a")
                .cancel_url("https://shop.example/b");
            let payment = client.payments().create(params.customer(customer)).await.unwrap();
            client.payments().retrieve(&payment.id).await.unwrap();
            payment.id.to_string()
        })
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for shown in ["method=\"POST\"", "path=\"/payments/{}\"", "status=201", "status=200", "tries=1"] {
        assert!(log.contains(shown), "{shown} in {log}");
    }
    for hidden in ["sk_test_demo", "Karim", &id, "127.0.0.1"] {
        assert!(!log.contains(hidden), "{hidden} in {log}");
    }
}
