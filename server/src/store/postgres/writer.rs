//! Group commit over the wire: the changes that wait are decided together and committed in one transaction.
//!
//! A batch takes two round trips: one reads and locks the rows that its changes need, one writes and commits. If the
//! connection breaks meanwhile, nobody knows whether the batch was committed. The transaction has marked the connection's row
//! with the batch's number, so the next connection of the same row knows.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};
use tokio_postgres::{Error, error::SqlState, types::ToSql};
use tokio_util::task::AbortOnDropHandle;

use super::{
    batch::Batch,
    connector::{Connector, Purpose},
    load::{Keys, LoadError},
    save,
    session::Session,
    sqlstate::{describe, store_error},
    statements::Statements,
    target::Target,
};
use crate::metrics::Commits;
use crate::store::{Change, CommitError, Committed, Conflict, StoreError};

/// How many changes are committed together.
const MAX_BATCH: usize = 128;
/// How often a batch is tried while servers get in each other's way.
const TRIES: u32 = 10;
/// The longest pause between two tries of a batch.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long changes wait for a database that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries to connect.
const RECONNECT: Duration = Duration::from_millis(200);

/// Among how many rows of each sum the connections are spread.
const SLOTS: u8 = 16;

/// A change and where its outcome goes.
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) answer: oneshot::Sender<Result<Committed, CommitError>>,
}

/// The changes that wait, for all writers.
pub(super) type Queue = Arc<Mutex<mpsc::Receiver<Job>>>;

/// The outcomes of a batch, in the order of its changes.
type Outcomes = Vec<Result<Committed, CommitError>>;

/// Commits batches over one connection, one at a time.
pub(super) struct Writer {
    connector: Arc<Connector>,
    /// The connection's row in the database.
    id: [u8; 16],
    commits: Commits,
    /// The number of the last batch.
    number: i64,
    connection: Option<Connected>,
    /// The connection that is being made. It may wait for a standby for longer than a batch waits for it; a second one would
    /// only wait behind it.
    connecting: Option<AbortOnDropHandle<Result<Connected, String>>>,
}

struct Connected {
    session: Session,
    statements: Statements,
}

/// Why a try of a batch failed.
enum Failed {
    /// Nothing was committed, and the same batch may succeed.
    TryAgain(Error),
    /// A change was refused, and the first try did not read everything.
    ReadAll,
    /// The connection broke, or is of no use, before the commit was sent.
    Broken(String),
    /// The connection broke. If the batch was committed, these are its outcomes.
    Unknown(Outcomes),
    /// Nothing was committed.
    Refused(StoreError),
}

impl Writer {
    pub(super) fn new(target: Target, id: [u8; 16], commits: Commits) -> Self {
        let connector = Connector::new(target, Purpose::Writing(Some(id)));
        Self { connector, id, commits, number: 0, connection: None, connecting: None }
    }

    /// Commits what waits, until nobody can send any more.
    pub(super) async fn run(mut self, queue: Queue) {
        loop {
            let mut jobs = Vec::new();
            if queue.lock().await.recv_many(&mut jobs, MAX_BATCH).await == 0 {
                break;
            }
            let (changes, answers): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.change, job.answer)).unzip();
            let begun = Instant::now();
            let outcomes = self.commit(&changes).await;
            self.commits.synced(changes.len(), begun.elapsed());
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may be gone.
                let _ = answer.send(outcome);
            }
        }
        if let Some(Connected { session, .. }) = &self.connection {
            // A row that stays is removed when it is old.
            let _ = session.in_time(session.leave(&self.id)).await;
        }
    }

    /// Commits changes together, and one after another if the database refuses them together.
    async fn commit(&mut self, changes: &[Change]) -> Outcomes {
        match self.commit_batch(changes).await {
            Ok(outcomes) => outcomes,
            Err(error) if changes.len() > 1 && !matches!(error, StoreError::Unknown) && self.connection.is_some() => {
                tracing::warn!(%error, changes = changes.len(), "a batch is refused; its changes are committed one by one");
                let mut outcomes = Vec::new();
                for change in changes {
                    let outcome = self.commit_batch(std::slice::from_ref(change)).await;
                    outcomes.extend(outcome.unwrap_or_else(|error| vec![Err(error.into())]));
                }
                outcomes
            }
            Err(error) => changes.iter().map(|_| Err(error.repeated().into())).collect(),
        }
    }

    async fn commit_batch(&mut self, changes: &[Change]) -> Result<Outcomes, StoreError> {
        let patience = Instant::now() + PATIENCE;
        self.number += 1;
        let (mut tries, mut unknown) = (0, None);
        loop {
            let connected = match self.connection.take().filter(|connected| !connected.session.is_closed()) {
                Some(connected) => connected,
                None => {
                    let connected = self.connect(patience, unknown.is_some()).await?;
                    if let Some(outcomes) = unknown.take().filter(|_| connected.session.last_batch == self.number) {
                        self.connection = Some(connected);
                        return Ok(outcomes);
                    }
                    connected
                }
            };
            tries += 1;
            let outcome = self.try_batch(&connected, changes, tries == 1).await;
            if !connected.session.is_closed() {
                self.connection = Some(connected);
            }
            match outcome {
                Ok(outcomes) => return Ok(outcomes),
                Err(Failed::Refused(error)) => match &self.connection {
                    Some(connected) => return Err(connected.session.name_privileges(error).await),
                    None => return Err(error),
                },
                Err(Failed::ReadAll) => {}
                Err(Failed::TryAgain(error)) if tries >= TRIES => {
                    return Err(StoreError::unavailable(describe(&error)));
                }
                Err(Failed::TryAgain(_)) => sleep(LONGEST_PAUSE.mul_f64(pause_share(&self.id, tries))).await,
                Err(Failed::Broken(what)) if tries >= TRIES => {
                    let said = format!("the connections to the database break one after another: {what}");
                    return Err(StoreError::unavailable(said));
                }
                Err(Failed::Broken(_)) => self.connection = None,
                Err(Failed::Unknown(outcomes)) => {
                    self.connection = None;
                    unknown = Some(outcomes);
                }
            }
        }
    }

    async fn try_batch(&self, connected: &Connected, changes: &[Change], is_first: bool) -> Result<Outcomes, Failed> {
        let Connected { session, statements } = connected;
        let keys = Keys::of(changes, is_first);
        let (id, number) = (&self.id[..], self.number);
        let mark: [&(dyn ToSql + Sync); 2] = [&id, &number];
        let read = async {
            tokio::join!(
                session.client().batch_execute("BEGIN"),
                session.client().execute(&statements.mark, &mark),
                keys.load(session, statements),
            )
        };
        let broken = |what: &str| Failed::Broken(what.to_owned());
        let Some((begun, marked, loaded)) = session.in_time(read).await else {
            return Err(broken("it does not answer"));
        };
        let loaded = match begun.and(marked).map_err(LoadError::from) {
            // Somebody removed the row as old. The next connection makes it again.
            Ok(0) => return Err(broken("its row is gone")),
            Ok(_) => loaded,
            Err(error) => Err(error),
        };
        let mut batch: Batch = match loaded {
            Ok(batch) => batch,
            Err(error) => {
                let is_over = roll_back(session).await;
                return Err(match error {
                    LoadError::Store(error) => Failed::Refused(error),
                    LoadError::Database(error) if !is_over => Failed::Broken(describe(&error)),
                    LoadError::Database(error) => refused(error),
                });
            }
        };
        let outcomes: Outcomes = changes.iter().map(|change| batch.decide(change.clone())).collect();
        if is_first && outcomes.iter().any(depends_on_writes) {
            // An earlier write of the same change may be stale because of a row that was not read.
            return Err(if roll_back(session).await { Failed::ReadAll } else { broken("it does not answer") });
        }
        let steps = match save::steps(batch, i16::from(self.id[0] % SLOTS), statements) {
            Ok(steps) => steps,
            Err(error) => {
                roll_back(session).await;
                return Err(Failed::Refused(error));
            }
        };
        let Some(committed) = session.in_time(save::commit(session, &steps)).await else {
            return Err(Failed::Unknown(outcomes));
        };
        match committed {
            Ok(()) => Ok(outcomes),
            Err(error) if error.as_db_error().is_some() && !session.is_closed() => Err(refused(error)),
            Err(error) => {
                tracing::warn!(error = %describe(&error), "the connection to the database broke during a commit");
                Err(Failed::Unknown(outcomes))
            }
        }
    }

    /// Connects, passes the barrier and prepares the statements.
    async fn connect(&mut self, until: Instant, is_unknown: bool) -> Result<Connected, StoreError> {
        let mut last = None;
        loop {
            let connecting = self
                .connecting
                .get_or_insert_with(|| AbortOnDropHandle::new(tokio::spawn(connect_once(Arc::clone(&self.connector)))));
            let error = match timeout_at(until, connecting).await {
                Ok(ended) => {
                    self.connecting = None;
                    match ended {
                        Ok(Ok(connected)) => return Ok(connected),
                        Ok(Err(error)) => error,
                        Err(error) => error.to_string(),
                    }
                }
                // The next try is under way, and an earlier one may have had an answer.
                Err(_) => last.take().unwrap_or_else(|| "it does not answer".to_owned()),
            };
            if Instant::now() + RECONNECT >= until {
                tracing::error!(%error, "the database cannot be reached");
                return Err(match is_unknown {
                    true => StoreError::Unknown,
                    false => StoreError::unavailable(format!("the database cannot be reached: {error}")),
                });
            }
            last = Some(error);
            sleep(RECONNECT).await;
        }
    }
}

/// Ends a transaction without a commit. Returns whether the connection still works.
async fn roll_back(session: &Session) -> bool {
    let rolled_back = session.in_time(session.client().batch_execute("ROLLBACK")).await;
    rolled_back.is_some_and(|outcome| outcome.is_ok()) && !session.is_closed()
}

async fn connect_once(connector: Arc<Connector>) -> Result<Connected, String> {
    let session = connector.connect().await.map_err(|error| error.to_string())?;
    let prepared = session.in_time(Statements::prepare(session.client())).await.ok_or("it does not answer")?;
    let statements = prepared.map_err(|error| describe(&error))?;
    Ok(Connected { session, statements })
}

/// Whether a change was refused by one of its writes. Those are the last of its conditions.
fn depends_on_writes(outcome: &Result<Committed, CommitError>) -> bool {
    matches!(
        outcome,
        Err(CommitError::Conflict(Conflict::Stale | Conflict::LookupUsed | Conflict::TooManyEndpoints { .. }))
    )
}

/// What an error of the database means for a batch of which nothing was committed.
fn refused(error: Error) -> Failed {
    let again = [
        // Another server inserted a row that this one did not find.
        SqlState::UNIQUE_VIOLATION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
    ];
    // It has become a standby, or it is shutting down.
    let elsewhere = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
    match error.code() {
        Some(code) if again.contains(code) => Failed::TryAgain(error),
        Some(code) if elsewhere.contains(code) => Failed::Broken(describe(&error)),
        _ => Failed::Refused(store_error(&error)),
    }
}

/// A part of the longest pause, other for each connection and each try.
fn pause_share(id: &[u8; 16], tries: u32) -> f64 {
    let nth = usize::try_from(tries).unwrap_or_default() % id.len();
    f64::from(id[nth]) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_parts_of_the_longest_and_others_for_each_connection_and_try() {
        let mut id = [0; 16];
        (id[1], id[15]) = (255, 51);
        let shares: Vec<_> = [0, 1, 15, 16, 17, 31].map(|tries| pause_share(&id, tries)).into();
        assert_eq!(shares, [0.0, 1.0, 0.2, 0.0, 1.0, 0.2]);
    }

    #[test]
    fn a_change_that_was_refused_by_its_writes_depends_on_those_before_it() {
        let refused = |conflict: Conflict| depends_on_writes(&Err(conflict.into()));
        assert!(refused(Conflict::Stale) && refused(Conflict::LookupUsed));
        assert!(refused(Conflict::TooManyEndpoints { at_most: 1 }));
        assert!(!refused(Conflict::WorkLost) && !refused(Conflict::ClaimLost));
        assert!(!depends_on_writes(&Ok(Committed { has_pending_event: false })));
        assert!(!depends_on_writes(&Err(StoreError::Stopped.into())));
    }
}
