//! A server that sends scripted bytes.

use std::sync::{Arc, Mutex};

use payments_client::{Client, ClientBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// What the server does with a request.
pub(crate) enum Action {
    /// Sends these bytes and closes the connection.
    Respond(String),
    /// Sends these bytes and keeps the connection open.
    RespondAndHang(String),
    /// Sends nothing and keeps the connection open.
    Hang,
}

pub(crate) struct ScriptedServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    /// Starts a server that performs one action per connection, and repeats the last one.
    pub(crate) async fn start(actions: Vec<Action>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        tokio::spawn(async move {
            let mut hanging = Vec::new();
            let mut actions = actions.into_iter();
            let mut action = actions.next().unwrap();
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut part = [0; 4096];
                while !is_complete(&request) {
                    match socket.read(&mut part).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
                        _ => break,
                    }
                }
                log.lock().unwrap().push(String::from_utf8(request).unwrap());
                match &action {
                    Action::Respond(bytes) => {
                        let _ = socket.write_all(bytes.as_bytes()).await;
                        let _ = socket.shutdown().await;
                    }
                    Action::RespondAndHang(bytes) => {
                        let _ = socket.write_all(bytes.as_bytes()).await;
                        hanging.push(socket);
                    }
                    Action::Hang => hanging.push(socket),
                }
                action = actions.next().unwrap_or(action);
            }
        });
        Self { url, requests }
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let backoff = std::time::Duration::from_millis(1);
        Client::builder("sk_test_verysecret").base_url(&self.url).backoff(backoff, backoff)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    /// The complete requests received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap())
}

/// Sends a complete response.
pub(crate) fn respond(status: u16, headers: &str, body: &str) -> Action {
    let length = body.len();
    Action::Respond(format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}
