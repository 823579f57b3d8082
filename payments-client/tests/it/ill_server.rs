//! A server that answers by script, down to the bytes.

use std::sync::{Arc, Mutex};

use payments_client::{Client, ClientBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// What comes back for a request.
pub(crate) enum Act {
    /// These bytes, and the connection is closed.
    Say(String),
    /// Nothing, for as long as the client waits.
    Hang,
}

pub(crate) struct IllServer {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl IllServer {
    /// Plays the acts in turn, one for each connection, and the last one again and again.
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        tokio::spawn(async move {
            let mut hanging = Vec::new();
            let mut acts = acts.into_iter();
            let mut act = acts.next().unwrap();
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut part = [0; 4096];
                while !is_whole(&request) {
                    match socket.read(&mut part).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
                        _ => break,
                    }
                }
                log.lock().unwrap().push(String::from_utf8(request).unwrap());
                match &act {
                    Act::Say(bytes) => {
                        let _ = socket.write_all(bytes.as_bytes()).await;
                        let _ = socket.shutdown().await;
                    }
                    Act::Hang => hanging.push(socket),
                }
                act = acts.next().unwrap_or(act);
            }
        });
        Self { url, heard }
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let pause = std::time::Duration::from_millis(1);
        Client::builder("sk_test_verysecret").base_url(&self.url).backoff(pause, pause)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    /// The requests that came, whole.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap())
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Say(format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"))
}
