//! A relay between a server and its database that breaks connections at a commit, on a schedule from a seed, or lets nothing
//! pass after a number of requests.
//!
//! The relay reads the messages of PostgreSQL's protocol, so it recognises a commit and its answer.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixStream, tcp},
    time::sleep,
};

/// What the relay does to a commit or a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The database commits, and the connection ends before the server gets the answer.
    DropAnswer,
    /// The connection ends at once. The database may or may not have received the commit.
    Reset,
    /// The connection ends before the database receives the commit.
    DropRequest,
    /// Nothing passes for two seconds.
    Silence,
    /// The database rolls back and reports a serialization failure.
    SerializationFailure,
    /// The database rolls back and reports a deadlock.
    Deadlock,
}

const FAULTS: [Fault; 6] =
    [Fault::DropAnswer, Fault::Reset, Fault::DropRequest, Fault::Silence, Fault::SerializationFailure, Fault::Deadlock];
const SILENCE: Duration = Duration::from_secs(2);

/// A running relay.
pub struct Relay {
    port: u16,
    schedule: Arc<Schedule>,
}

#[derive(Default)]
struct Schedule {
    random: Mutex<fastrand::Rng>,
    /// One in this many commits, and one in this many other requests, meets a fault; none at 0.
    one_in: Mutex<(u32, u32)>,
    /// The fault of the next commit.
    next_commit: Mutex<Option<Fault>>,
    hits: Mutex<BTreeMap<Fault, u32>>,
    /// How many commits have met a fault of the schedule.
    commits_hit: AtomicUsize,
    /// How many requests have come, and after how many of them nothing passes any more; 0 for never.
    requests: AtomicUsize,
    stops_after: AtomicUsize,
}

impl Relay {
    /// Relays to the Unix socket of a cluster. No fault happens before [`Self::set_faults`].
    pub async fn start(socket: PathBuf, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        let schedule = Arc::new(Schedule { random, ..Schedule::default() });
        let faults = Arc::clone(&schedule);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (socket, schedule) = (socket.clone(), Arc::clone(&faults));
                tokio::spawn(async move {
                    client.set_nodelay(true)?;
                    let server = UnixStream::connect(socket).await?;
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    let link = Arc::<Link>::default();
                    // Both connections end when one of them does.
                    tokio::select! {
                        ended = requests(from_client, to_server, &schedule, &link) => ended,
                        ended = answers(from_server, to_client, &link) => ended,
                    }
                });
            }
        });
        Self { port, schedule }
    }

    /// The URL of a database behind the relay.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Lets one commit in `commits` meet a fault, and one other request in `others`.
    pub fn set_faults(&self, commits: u32, others: u32) {
        *self.schedule.one_in.lock().unwrap() = (commits, others);
    }

    /// Lets the next commit meet this fault.
    pub fn hit_next_commit(&self, fault: Fault) {
        *self.schedule.next_commit.lock().unwrap() = Some(fault);
    }

    /// Counts requests from now on, and lets nothing pass after `requests` of them; 0 for never.
    pub fn stop_after(&self, requests: usize) {
        self.schedule.requests.store(0, Ordering::Relaxed);
        self.schedule.stops_after.store(requests, Ordering::Relaxed);
    }

    /// How many requests have come since [`Self::stop_after`].
    pub fn requests(&self) -> usize {
        self.schedule.requests.load(Ordering::Relaxed)
    }

    /// Whether nothing passes any more.
    pub fn has_stopped(&self) -> bool {
        self.schedule.has_stopped_after(self.requests())
    }

    /// How often each fault happened.
    pub fn hits(&self) -> BTreeMap<Fault, u32> {
        self.schedule.hits.lock().unwrap().clone()
    }
}

impl Schedule {
    fn has_stopped_after(&self, requests: usize) -> bool {
        let stops_after = self.stops_after.load(Ordering::Relaxed);
        stops_after > 0 && requests > stops_after
    }

    fn next(&self, is_commit: bool) -> Option<Fault> {
        if let Some(fault) = is_commit.then(|| self.next_commit.lock().unwrap().take()).flatten() {
            return Some(fault);
        }
        let (commits, others) = *self.one_in.lock().unwrap();
        let one_in = if is_commit { commits } else { others };
        let mut random = self.random.lock().unwrap();
        if one_in == 0 || random.u32(..one_in) > 0 {
            return None;
        }
        // Only a commit may fail with a code: another request has no transaction that would end with it. Commits meet the
        // faults in turn.
        let fault = match is_commit {
            true => FAULTS[self.commits_hit.fetch_add(1, Ordering::Relaxed) % FAULTS.len()],
            false => FAULTS[random.usize(..4)],
        };
        *self.hits.lock().unwrap().entry(fault).or_default() += 1;
        Some(fault)
    }
}

/// The state that both directions of a connection share.
#[derive(Default)]
struct Link {
    is_muted: Mutex<bool>,
    /// The code that replaces the next report of a rollback.
    failure: Mutex<Option<&'static str>>,
}

async fn requests(
    mut from: tcp::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    schedule: &Schedule,
    link: &Link,
) -> io::Result<()> {
    let mut is_first = true;
    loop {
        let mut message = read(&mut from, !is_first).await?;
        is_first = false;
        // A request ends with a Sync, or is a query as text.
        let is_request = usize::from(matches!(message[0], b'S' | b'Q'));
        if schedule.has_stopped_after(schedule.requests.fetch_add(is_request, Ordering::Relaxed) + is_request) {
            // Until the client ends the connection.
            while read(&mut from, true).await.is_ok() {}
            return Ok(());
        }
        let is_commit = message.starts_with(b"Q") && message.ends_with(b"COMMIT\0");
        // Requests other than commits end with a Sync.
        let fault = if is_commit || message[0] == b'S' { schedule.next(is_commit) } else { None };
        match fault {
            None => {}
            Some(Fault::DropRequest) => return Ok(()),
            Some(Fault::Reset) => return to.write_all(&message).await,
            Some(Fault::DropAnswer) => {
                *link.is_muted.lock().unwrap() = true;
                to.write_all(&message).await?;
                sleep(Duration::from_millis(50)).await;
                return Ok(());
            }
            Some(Fault::Silence) => sleep(SILENCE).await,
            Some(fault) => {
                let code = if fault == Fault::Deadlock { "40P01" } else { "40001" };
                *link.failure.lock().unwrap() = Some(code);
                message = framed(b'Q', b"ROLLBACK\0");
            }
        }
        to.write_all(&message).await?;
    }
}

async fn answers(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    link: &Link,
) -> io::Result<()> {
    loop {
        let mut message = read(&mut from, true).await?;
        if message.starts_with(b"C") && message.ends_with(b"ROLLBACK\0") {
            let failure = link.failure.lock().unwrap().take();
            if let Some(code) = failure {
                let fields = format!("SERROR\0VERROR\0C{code}\0Minjected by the relay\0\0");
                message = framed(b'E', fields.as_bytes());
            }
        }
        if !*link.is_muted.lock().unwrap() {
            to.write_all(&message).await?;
        }
    }
}

/// Reads a message: its kind (except in a connection's first message), and its length, which includes the length field.
async fn read(from: &mut (impl AsyncReadExt + Unpin), has_kind: bool) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4 + usize::from(has_kind)];
    from.read_exact(&mut message).await?;
    let length: [u8; 4] = message[message.len() - 4..].try_into().unwrap();
    let header = message.len();
    message.resize(header + usize::try_from(u32::from_be_bytes(length)).unwrap() - 4, 0);
    from.read_exact(&mut message[header..]).await?;
    Ok(message)
}

fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).unwrap().to_be_bytes();
    [&[kind][..], &length, content].concat()
}
