//! Runs each receiver and sends it requests that published receivers got wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use reqwest::{Body, Client, Response};
use webhook_verify::testing::Sender;

const SECRET: &str = "whsec_test";
const HEADER: &str = "x-service-signature";
const BODY: &str = r#"{"id":"evt_1","event":"payment.created","created_at":"2026-03-01T03:30:00.000Z","data":{}}"#;
const RECEIVERS: [&str; 4] = [
    env!("CARGO_BIN_EXE_receiver-axum"),
    env!("CARGO_BIN_EXE_receiver-actix"),
    env!("CARGO_BIN_EXE_receiver-warp"),
    env!("CARGO_BIN_EXE_receiver-tower"),
];

struct Receiver {
    process: Child,
    output: BufReader<ChildStdout>,
    url: String,
}

impl Receiver {
    fn start(binary: &str) -> Self {
        let mut command = Command::new(binary);
        // Two secrets, as in a rotation.
        command.env("WEBHOOK_SECRET", format!("whsec_old,{SECRET}")).env("RECEIVER_LISTEN", "127.0.0.1:0");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { process, output, url }
    }

    async fn post(&self, signatures: &[&[u8]], body: impl Into<Body>) -> Response {
        let mut request = Client::new().post(&self.url).timeout(Duration::from_secs(10)).body(body);
        for signature in signatures {
            request = request.header(HEADER, *signature);
        }
        request.send().await.unwrap()
    }

    /// The next line that the handler prints.
    fn handled(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn assert_rejected(response: Response, status: u16, reason: &str) {
    assert_eq!(response.status(), status, "{reason}");
    assert_eq!(response.headers()["content-type"], "application/json");
    let body = response.text().await.unwrap();
    assert!(body.starts_with(&format!(r#"{{"statusCode":{status},"message":""#)) && body.contains(reason), "{body}");
}

/// An event with this id, padded to `bytes` bytes.
fn padded(id: &str, bytes: usize) -> Vec<u8> {
    let mut body = BODY.replace("evt_1", id).into_bytes();
    body.resize(bytes, b' ');
    body
}

/// A chunked body, without a Content-Length.
fn chunked(body: Vec<u8>) -> Body {
    let chunks: Vec<Result<Vec<u8>, std::io::Error>> = body.chunks(1000).map(|chunk| Ok(chunk.to_vec())).collect();
    Body::wrap_stream(futures_util::stream::iter(chunks))
}

#[tokio::test]
async fn the_handler_gets_the_raw_bytes_of_a_verified_request() {
    for binary in RECEIVERS {
        let mut receiver = Receiver::start(binary);
        let sender = Sender::new(SECRET).unwrap();
        let good = receiver.post(&[sender.good(BODY.as_bytes()).as_ref()], BODY).await;
        assert_eq!(good.status(), 200, "{binary}");
        assert_eq!(receiver.handled(), format!("evt_1 payment.created in {} bytes", BODY.len()));

        let long = padded("evt_2", 50_000);
        let good = receiver.post(&[sender.good(&long).as_ref()], chunked(long.clone())).await;
        assert_eq!(good.status(), 200, "{binary}");
        assert_eq!(receiver.handled(), "evt_2 payment.created in 50000 bytes");

        // Verified bodies that are not events: the handler rejects them.
        for body in [&b"\xff\xfe"[..], b"", b"{}"] {
            let response = receiver.post(&[sender.good(body).as_ref()], body.to_vec()).await;
            assert_eq!(response.status(), 400, "{binary}");
            assert_eq!(response.text().await.unwrap(), "");
        }
    }
}

/// Sends the same request eight times at once, then once more.
#[tokio::test]
async fn a_repeated_event_is_handled_once() {
    for binary in RECEIVERS {
        let mut receiver = Receiver::start(binary);
        let sender = Sender::new(SECRET).unwrap();
        let captured = sender.good(BODY.as_bytes());
        let signatures = [captured.as_ref()];
        let responses = futures_util::future::join_all((0..8).map(|_| receiver.post(&signatures, BODY))).await;
        assert!(responses.iter().all(|response| [200, 409].contains(&response.status().as_u16())), "{responses:?}");
        assert_eq!(receiver.post(&[captured.as_ref()], BODY).await.status(), 200, "{binary}");
        let next = padded("evt_2", 200);
        assert_eq!(receiver.post(&[sender.good(&next).as_ref()], next).await.status(), 200, "{binary}");
        assert_eq!(receiver.handled(), format!("evt_1 payment.created in {} bytes", BODY.len()));
        assert_eq!(receiver.handled(), "evt_2 payment.created in 200 bytes");
    }
}

#[tokio::test]
async fn invalid_signatures_are_rejected_with_a_reason() {
    for binary in RECEIVERS {
        let receiver = Receiver::start(binary);
        let (sender, body) = (Sender::new(SECRET).unwrap(), BODY.as_bytes());
        assert_rejected(receiver.post(&[sender.forged(body).as_ref()], BODY).await, 401, "no signature matches").await;
        assert_rejected(receiver.post(&[sender.good(b"{}").as_ref()], BODY).await, 401, "no signature matches").await;
        assert_rejected(receiver.post(&[sender.stale(body).as_ref()], BODY).await, 400, "tolerance").await;
        assert_rejected(receiver.post(&[sender.from_the_future(body).as_ref()], BODY).await, 400, "tolerance").await;
    }
}

#[tokio::test]
async fn malformed_headers_are_rejected_with_a_reason() {
    for binary in RECEIVERS {
        let receiver = Receiver::start(binary);
        let good = Sender::new(SECRET).unwrap().good(BODY.as_bytes());
        let good = good.as_ref();
        assert_rejected(receiver.post(&[], BODY).await, 400, "it is missing").await;
        assert_rejected(receiver.post(&[b""], BODY).await, 400, "it is missing").await;
        assert_rejected(receiver.post(&[good, good], BODY).await, 400, "more than once").await;
        assert_rejected(receiver.post(&[good, b"t=1,v1=00"], BODY).await, 400, "more than once").await;
        assert_rejected(receiver.post(&[b"\xff\xfe"], BODY).await, 400, "no timestamp").await;
    }
}

#[tokio::test]
async fn a_body_over_the_limit_gets_413_with_or_without_a_content_length() {
    const LIMIT: usize = 256 * 1024;
    for binary in RECEIVERS {
        let receiver = Receiver::start(binary);
        let sender = Sender::new(SECRET).unwrap();
        let longest = padded("evt_1", LIMIT);
        assert_eq!(receiver.post(&[sender.good(&longest).as_ref()], longest).await.status(), 200, "{binary}");
        let over = padded("evt_2", LIMIT + 1);
        let signature = sender.good(&over);
        assert_rejected(receiver.post(&[signature.as_ref()], chunked(over)).await, 413, "longer than 262144 bytes")
            .await;

        // The receiver must respond before the body arrives.
        let address = receiver.url.strip_prefix("http://").unwrap().strip_suffix("/webhooks").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let head = format!(
            "POST /webhooks HTTP/1.1\r\nhost: x\r\n{HEADER}: {}\r\ncontent-length: {}\r\n\r\n",
            signature.as_str(),
            LIMIT + 1
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = [0; 12];
        stream.read_exact(&mut response).unwrap();
        assert_eq!(&response, b"HTTP/1.1 413", "{binary}");
    }
}

fn assert_says_in_one_line(command: &mut Command, expected: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.lines().count() == 1, "{command:?}: {said}");
    assert!(said.starts_with("the receiver ended: ") && said.contains(expected), "{command:?}: {said}");
}

#[test]
fn receivers_do_not_start_without_a_secret_or_an_address() {
    for binary in RECEIVERS {
        for secret in [None, Some(""), Some("whsec_a,")] {
            let mut command = Command::new(binary);
            command.env_remove("WEBHOOK_SECRET").env("RECEIVER_LISTEN", "127.0.0.1:0");
            assert_says_in_one_line(command.envs(secret.map(|secret| ("WEBHOOK_SECRET", secret))), "secret");
        }
        let mut command = Command::new(binary);
        assert_says_in_one_line(
            command.env("WEBHOOK_SECRET", SECRET).env("RECEIVER_LISTEN", "nowhere"),
            "RECEIVER_LISTEN must be an address such as 127.0.0.1:9000, not \"nowhere\"",
        );
    }
}
