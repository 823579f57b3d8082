//! The store on sled: one directory, one process.
//!
//! The committer makes changes durable (`committer`), by the journal (`journal`), and the applier brings them to sled
//! (`applier`). `tables` says what a write does to the records and `keys` where each lies. Reads find what is durable, in sled
//! or before it (`records`).

mod applier;
mod backup;
mod check;
mod claims;
mod committer;
mod deliveries;
mod engine;
mod journal;
mod keys;
mod migrate;
mod outbox;
mod packed;
mod records;
mod squeezed;
mod stop;
mod tables;
mod telling;
mod until;
mod whole_file;

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

pub(crate) use self::{
    backup::{Sources, needs_after, restore},
    check::{Checked, check_journal},
    until::{LeftOut, Restored, Until},
};

use async_trait::async_trait;
use payments_core::{
    AppId, Currency, Delivery, DeliveryId, DeveloperApp, DeveloperId, Environment, LedgerAccount, Page, PageRequest,
    Payment, PaymentId, Posting, Status, Timestamp, WebhookEndpoint, WebhookId,
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, time::timeout};

use self::{
    applier::{Applier, Replay},
    backup::Copier,
    committer::Committer,
    journal::{Archivist, Journal, JournalError, Retention, Writes},
    keys::{List, Marks},
    records::Records,
    tables::Stored,
};
use super::{BackedUp, Change, CommitError, OutboxHead, Store, StoreError};
use crate::domain::{
    ApiKey, Endpoint, Figures, IdempotencyKey, KeptResponse, KeptToken, KeyHash, Outgoing, Scope, Session, Workspace,
};
use crate::{ambient::Ambient, metrics::Commits};

/// The layout of `keys`. A store of another number is not opened.
const FORMAT: u32 = 6;
/// How long a list of deliveries waits for those that are about to be made.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// A store in a directory.
pub(crate) struct SledStore {
    records: Records,
    copier: Copier,
    /// Last, so that it is dropped last: whoever waits for its thread finds everything else let go of.
    committer: Committer,
}

/// Waits for the committer to finish, once the store itself is gone.
pub(crate) struct Closing {
    committer: thread::JoinHandle<()>,
    engine: PathBuf,
    mark: PathBuf,
    /// Held until the store is closed.
    _lock: File,
}

/// The file that whoever has a store open holds a lock on. Its text is the number of that process.
const LOCK: &str = "lock";
/// A file that is there while a store is open: where it is found at the start, the last end was not in order.
const MARK: &str = "open";

impl Closing {
    pub(crate) fn wait(self) {
        // A committer that panicked has ended the process already.
        let _ = self.committer.join();
        // An end is in order when all that sled ever writes is on the disk.
        if let Err(error) = engine::sync_closed(&self.engine).and_then(|()| fs::remove_file(&self.mark)) {
            tracing::warn!(%error, "the next start will say that this end was not in order");
        }
    }
}

impl SledStore {
    /// Opens the store of a directory, or makes one where the directory is missing or empty. `outbox` is told of each
    /// endpoint that is owed a new delivery.
    pub(crate) fn open(
        directory: &Path,
        outbox: mpsc::UnboundedSender<WebhookId>,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        // Webhook secrets lie in there in clear, so it is nobody else's to read.
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // sled has a lock of its own, but a start does something before that and beside it.
        let lock = lock(directory)?;
        let engine_directory = directory.join("sled");
        let journal_directory = directory.join("journal");
        engine::finish_making_anew(&engine_directory)?;
        if journal_directory.exists() && !engine_directory.exists() {
            return Err(OpenError::HalfAStore { missing: engine_directory });
        }
        let mark = directory.join(MARK);
        let after_crash = mark.exists();
        // Nobody was ever answered by a store that was never open.
        let is_new = !after_crash && !journal::is_begun(&journal_directory)?;
        let tree = match engine::open(&engine_directory).and_then(|tree| with_its_mark(tree, &engine_directory)) {
            Err(error @ OpenError::Damaged { .. }) if is_new => engine::begin_again(&engine_directory, &error)?,
            // A power cut can leave sled's file so, even one soon after an orderly end; the journal can make it anew.
            Err(error @ OpenError::Damaged { .. }) if journal_directory.exists() => {
                engine::make_anew(&engine_directory, &journal_directory, error)?
            }
            opened => opened?,
        };
        if let Some(found) = format_of(&tree)?.filter(|found| *found < FORMAT) {
            tracing::warn!(found, present = FORMAT, "an earlier version wrote this store; it is brought up to date");
        }
        let applied = tables::read(&tree, keys::APPLIED).map_err(OpenError::Store)?.unwrap_or(0);
        let (mut replayed, mut replay) = (0_u64, Replay::new(&tree));
        let mut journal = if is_new && tree.is_empty() {
            Journal::create(&journal_directory)
        } else if journal_directory.exists() {
            Journal::open(&journal_directory, applied, |number, writes| {
                replayed += 1;
                Ok(replay.add(number, writes)?)
            })
        } else {
            return Err(OpenError::HalfAStore { missing: journal_directory });
        }?;
        replay.finish().map_err(StoreError::engine)?;
        if after_crash {
            tracing::warn!(
                replayed,
                "the server did not shut down cleanly; the journal brought the store up to date, and what was being \
                 delivered is delivered again"
            );
        }
        fs::write(&mark, b"")?;
        for made in [&engine_directory, &journal_directory, directory] {
            whole_file::sync_directory(made)?;
        }
        if let Some(parent) = directory.canonicalize()?.parent() {
            whole_file::sync_directory(parent)?;
        }
        // Through the journal, so that it is as durable and as whole as any change.
        let mut change = |mut writes: Writes| -> Result<(), OpenError> {
            let number = journal.append(&writes).map_err(|error| OpenError::Journal(Box::new(error)))?;
            writes.insert(keys::APPLIED.to_vec(), Some(number.to_string().into_bytes()));
            Ok(applier::apply(&tree, &writes).map_err(StoreError::engine)?)
        };
        while let Some(writes) = migrate::next_step(&tree)? {
            change(writes)?;
        }
        let void = claims::of_a_gone_process(&tree)?;
        if !void.is_empty() {
            change(void)?;
        }
        let applied = tables::read(&tree, keys::APPLIED)?.unwrap_or(0);
        let owed = tree.scan_prefix(keys::OUTBOX).keys().count();
        commits.outbox.set(i64::try_from(owed).unwrap_or(i64::MAX));
        let retention = Arc::<Retention>::default();
        let archivist = Archivist::start(journal_directory.clone(), journal.list())?;
        let records = Records::new(tree, applied);
        let copier = Copier {
            records: records.clone(),
            journal: journal_directory,
            retention: Arc::clone(&retention),
            closing: Arc::default(),
        };
        let engine = Arc::new(File::options().write(true).open(engine_directory.join("db"))?);
        let applier = Applier::start(records.clone(), Arc::clone(&engine))?;
        let files = committer::Files { journal, archivist, applier, reserve: committer::Reserve::of(engine) };
        let (committer, thread) = Committer::start(records.clone(), files, retention, ambient, outbox, commits)?;
        Ok((
            Self { records, committer, copier },
            Closing { committer: thread, engine: engine_directory, mark, _lock: lock },
        ))
    }

    /// Proves what must always hold of the whole store, which nobody may write to meanwhile. `progress` is told how many
    /// records have been read.
    pub(crate) fn check(&self, progress: impl FnMut(u64)) -> Result<Checked, StoreError> {
        check::check(self.records.tree(), progress)
    }

    /// Every payment with its session, in the order of their ids.
    pub(crate) fn each_session(&self) -> impl Iterator<Item = Result<Session, StoreError>> {
        self.each::<Stored>(keys::SESSIONS).map(|stored| Ok(stored?.session))
    }

    /// Every delivery, in the order of their ids.
    pub(crate) fn each_delivery(&self) -> impl Iterator<Item = Result<Outgoing, StoreError>> {
        self.records.under(keys::DELIVERIES).map(|entry| deliveries::of_entry(&self.records, entry))
    }

    /// What each change of a payment posted, oldest first.
    pub(crate) fn postings_of(&self, id: &PaymentId) -> Result<Vec<Vec<Posting>>, StoreError> {
        self.each(&keys::postings_of(id)).collect()
    }

    fn each<T: DeserializeOwned>(&self, prefix: &[u8]) -> impl Iterator<Item = Result<T, StoreError>> {
        self.records.under(prefix).map(|entry| entry.and_then(|(key, json)| tables::parse(&key, &json)))
    }

    /// How many records there are. It counts them, so it is for a progress bar only.
    pub(crate) fn records(&self) -> u64 {
        self.records.tree().len() as u64
    }

    fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.records.read(key)
    }

    /// A page of a list, newest first, with whatever its entries name: of all entries, or of those that are marked.
    fn page<T>(
        &self,
        list: &List,
        marks: Option<&Marks>,
        request: PageRequest,
        mut item: impl FnMut(&str) -> Result<Option<T>, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let total: u64 = self.get(&marks.map_or_else(|| list.count(), Marks::count))?.unwrap_or_default();
        let places = match marks {
            // Made of what `total` counted: an entry that came meanwhile has a later place.
            None => {
                let end = total.saturating_sub(request.skipped());
                (end.saturating_sub(request.limit().into())..end).rev().collect()
            }
            Some(marks) => self.marked(marks, request.skipped(), request.limit())?,
        };
        let mut items = Vec::new();
        for ids in places.chunk_by(|one, next| one / keys::LEAF == next / keys::LEAF) {
            let leaf = self.records.bytes(&list.leaf(ids[0]))?;
            let leaf: Vec<_> = packed::lines(&leaf).collect();
            for place in ids {
                if let Some(id) = usize::try_from(place % keys::LEAF).ok().and_then(|nth| leaf.get(nth)) {
                    items.extend(item(id)?);
                }
            }
        }
        Ok(Page { items, total, page: request.page(), limit: request.limit() })
    }

    /// The places of marked entries, the latest first, after so many that are passed.
    fn marked(&self, marks: &Marks, mut skip: u64, limit: u32) -> Result<Vec<u64>, StoreError> {
        let blocks = marks.blocks();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut places = Vec::new();
        for entry in self.records.under_from_the_end(&blocks) {
            let (key, block) = entry?;
            let count = packed::marked(&block);
            if skip >= count {
                skip -= count;
                continue;
            }
            let Some((_, number)) = keys::numbered(keys::MARKS, &key) else { continue };
            let passed = usize::try_from(std::mem::take(&mut skip)).unwrap_or(usize::MAX);
            let in_block = packed::marks_down(&block).skip(passed).map(|mark| number * keys::BLOCK + mark);
            places.extend(in_block.take(limit - places.len()));
            if places.len() >= limit {
                break;
            }
        }
        Ok(places)
    }

    /// The payments whose ids an index holds.
    fn sessions_under(&self, prefix: &[u8]) -> Result<Vec<Session>, StoreError> {
        let mut found = Vec::new();
        for entry in self.records.under(prefix) {
            let (key, _) = entry?;
            let id = String::from_utf8_lossy(&key[prefix.len()..]).parse().ok();
            let stored = id.map(|id| self.get::<Stored>(&keys::session(&id))).transpose()?.flatten();
            found.extend(stored.map(|stored| stored.session));
        }
        Ok(found)
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.copier.closing.store(true, Ordering::Relaxed);
    }
}

/// Takes the lock of a directory, for as long as the file is open.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK);
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let process = fs::read_to_string(path).unwrap_or_default();
            return Err(OpenError::InUse { directory: directory.to_owned(), process });
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

/// The tree, unless it holds records and not the mark of their format: then sled has lost what was written first.
fn with_its_mark(tree: sled::Db, directory: &Path) -> Result<sled::Db, OpenError> {
    if tree.is_empty() || tree.contains_key(keys::FORMAT).map_err(StoreError::engine)? {
        return Ok(tree);
    }
    let what = "it holds records and not the mark of their format".into();
    Err(OpenError::Damaged { directory: directory.to_owned(), what })
}

/// The format of a store, if it is not new. One of a later version is refused before anything is done to it.
fn format_of(tree: &sled::Tree) -> Result<Option<u32>, OpenError> {
    match tables::read::<u32>(tree, keys::FORMAT).map_err(OpenError::Store)? {
        Some(found) if found > FORMAT => Err(OpenError::Format { found }),
        found => Ok(found),
    }
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the data directory cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("process {process} has {directory} open; stop it, or use another --data-dir",
        directory = directory.display())]
    InUse { directory: PathBuf, process: String },
    #[error("the store in {directory} is damaged and was not opened: {what}; make it anew with payments-server restore, \
        from its journal and, if there is one, from a backup", directory = directory.display())]
    Damaged { directory: PathBuf, what: String },
    #[error("{missing} is missing, the other half of the store is there; it was not opened; make it anew with \
        payments-server restore, from its journal or from a backup", missing = missing.display())]
    HalfAStore { missing: PathBuf },
    #[error("{0}")]
    Journal(Box<dyn std::error::Error + Send + Sync>),
    #[error("the store has format {found} and this server reads up to {FORMAT}; use the version that wrote it")]
    Format { found: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        Self::Journal(Box::new(error))
    }
}

#[async_trait]
impl Store for SledStore {
    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        self.committer.commit(change).await
    }

    async fn settled(&self) -> Result<(), StoreError> {
        self.committer.settled().await
    }

    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, StoreError> {
        let copier = self.copier.clone();
        let copied = tokio::task::spawn_blocking(move || copier.copy_to(&directory)).await;
        copied.map_err(StoreError::engine)?.map_err(|error| StoreError::Backup(error.to_string()))
    }

    fn keep_journal_after(&self, number: u64) {
        self.copier.retention.backed_up(number);
    }

    async fn api_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.get(&keys::api_key(hash))
    }

    async fn api_keys(&self) -> Result<Vec<(KeyHash, ApiKey)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.records.under(keys::API_KEY_IDS) {
            let (_, hash) = entry?;
            let Ok(bytes) = <[u8; 32]>::try_from(hash.as_ref()) else { continue };
            let hash = KeyHash::from_bytes(bytes);
            let record = self.get(&keys::api_key(&hash))?;
            found.extend(record.map(|record| (hash, record)));
        }
        Ok(found)
    }

    async fn workspace(&self, id: &str) -> Result<Option<Workspace>, StoreError> {
        self.get(&keys::workspace(id))
    }

    async fn workspace_of(&self, developer: &DeveloperId) -> Result<Option<Workspace>, StoreError> {
        match self.get::<String>(&keys::workspace_of(developer))? {
            Some(id) => self.get(&keys::workspace(&id)),
            None => Ok(None),
        }
    }

    async fn figures(&self, scope: &Scope, currency: Currency) -> Result<Figures, StoreError> {
        let balance = self.get(&keys::balance(scope, currency, LedgerAccount::Merchant))?.unwrap_or_default();
        let (volume_minor, payments) = self.get(&keys::volume(scope, currency))?.unwrap_or_default();
        Ok(Figures { balance_minor: balance, volume_minor, payments })
    }

    async fn app(&self, developer: &DeveloperId, id: &AppId) -> Result<Option<DeveloperApp>, StoreError> {
        self.get(&keys::app(developer, id))
    }

    async fn apps(&self, developer: &DeveloperId) -> Result<Vec<DeveloperApp>, StoreError> {
        self.each(&keys::apps_of(developer)).collect()
    }

    async fn kept_response(&self, key: &IdempotencyKey) -> Result<Option<KeptResponse>, StoreError> {
        let at = keys::idempotency(key);
        let Some(used_at) = self.get(&at)? else { return Ok(None) };
        let record = keys::responses(used_at);
        let responses = self.records.bytes(&record)?;
        let response = tables::response_of(&record, &responses, &keys::name_of_used(&at).unwrap_or_default())?;
        // Where the key is being used anew after its day, it may be just gone: then the committer decides.
        response.map(|response| response.resolve(&record, |id| self.get(&keys::session(id)))).transpose()
    }

    async fn has_response_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        Ok(self.records.range(keys::responses_before(time)).next().transpose()?.is_some())
    }

    async fn has_claim_ended_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        Ok(!claims::ended_before_in(&self.records, time, 1)?.is_empty())
    }

    async fn has_delivery_body_before(&self, time: Timestamp) -> Result<bool, StoreError> {
        Ok(!tables::delivery_bodies_before(&self.records, time, 1)?.is_empty())
    }

    async fn session(&self, id: &PaymentId) -> Result<Option<Session>, StoreError> {
        Ok(self.get::<Stored>(&keys::session(id))?.map(|stored| stored.session))
    }

    async fn sessions_over(&self, now: Timestamp, at_most: usize) -> Result<Vec<PaymentId>, StoreError> {
        let mut found = Vec::new();
        for entry in self.records.range(keys::ends_before(now)) {
            found.extend(packed::lines(&entry?.1).filter_map(|id| id.parse().ok()));
            if found.len() >= at_most {
                break;
            }
        }
        found.truncate(at_most);
        Ok(found)
    }

    async fn checks_due(&self, now: Timestamp, at_most: usize) -> Result<Vec<PaymentId>, StoreError> {
        let mut found = Vec::new();
        for entry in self.records.range(keys::checks_before(now)).take(at_most) {
            found.extend(keys::payment_to_check(&entry?.0));
        }
        Ok(found)
    }

    async fn unsettled_refunds(&self) -> Result<Vec<Session>, StoreError> {
        self.sessions_under(keys::UNSETTLED)
    }

    async fn reviews(&self) -> Result<Vec<Session>, StoreError> {
        self.sessions_under(keys::REVIEWS)
    }

    async fn payments_by_status(&self) -> Result<Vec<(Environment, Status, u64)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.records.under(keys::COUNTS) {
            let (key, count) = entry?;
            if let Some((environment, status)) = keys::count_of_status(&key) {
                found.push((environment, status, tables::parse(&key, &count)?));
            }
        }
        Ok(found)
    }

    async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut oldest = None;
        for endpoint in self.endpoints_with_outbox().await? {
            for id in outbox::names(&self.records, &endpoint, 1)? {
                let Some(at) = id.created_at() else { continue };
                oldest = Some(oldest.map_or(at, |known: Timestamp| known.min(at)));
            }
        }
        Ok(oldest)
    }

    async fn gateway_token(&self, name: &str) -> Result<Option<KeptToken>, StoreError> {
        self.get(&keys::gateway_token(name))
    }

    async fn payments(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<Payment>, StoreError> {
        let marks = status.map(|status| Marks::of(scope, status));
        self.page(&List::payments(scope), marks.as_ref(), page, |id| {
            let Ok(id) = id.parse() else { return Ok(None) };
            Ok(self.get::<Stored>(&keys::session(&id))?.map(|stored| stored.session.payment))
        })
    }

    async fn endpoint(&self, id: &WebhookId) -> Result<Option<Endpoint>, StoreError> {
        self.get(&keys::endpoint(id))
    }

    async fn endpoints(&self, scope: &Scope) -> Result<Vec<WebhookEndpoint>, StoreError> {
        let prefix = keys::endpoints_of(scope);
        let mut endpoints = Vec::new();
        for entry in self.records.under(&prefix) {
            let (key, _) = entry?;
            let id = String::from_utf8_lossy(&key[prefix.len()..]).parse();
            let endpoint = id.ok().map(|id| self.get::<Endpoint>(&keys::endpoint(&id))).transpose()?.flatten();
            endpoints.extend(endpoint.map(|endpoint| endpoint.endpoint));
        }
        Ok(endpoints)
    }

    async fn deliveries(
        &self,
        scope: &Scope,
        endpoint: Option<&WebhookId>,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        // Those of whatever was answered before; where so much is owed, those that there are.
        let _ = timeout(SETTLES_WITHIN, self.settled()).await;
        let list = match endpoint {
            Some(endpoint) => List::deliveries_to(scope, endpoint),
            None => List::deliveries(scope),
        };
        self.page(&list, None, page, |id| {
            let Ok(id) = id.parse::<DeliveryId>() else { return Ok(None) };
            Ok(deliveries::read(&self.records, &id)?.map(|outgoing| outgoing.delivery))
        })
    }

    async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead, StoreError> {
        outbox::head(&self.records, endpoint, at_most)
    }

    async fn outgoing(&self, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
        deliveries::read(&self.records, id)
    }

    async fn endpoints_with_outbox(&self) -> Result<Vec<WebhookId>, StoreError> {
        let mut endpoints = Vec::new();
        // One step for each endpoint, not for each delivery: go on after the last key an endpoint can have.
        let mut from = keys::OUTBOX.to_vec();
        while let Some(entry) = self.records.range(from.clone()..).next() {
            let (key, _) = entry?;
            let Some(rest) = key.strip_prefix(keys::OUTBOX) else { break };
            let id = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
            let Ok(id) = String::from_utf8_lossy(id).parse() else { break };
            from = keys::outbox_of(&id);
            from.push(0xff);
            endpoints.push(id);
        }
        Ok(endpoints)
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{
        DeliveryStatus, Environment, EventId, EventKind, RANDOM_BYTES, RawJson, aliased::UnknownFields,
    };

    use super::*;
    use crate::{
        ambient::OperatingSystem,
        metrics::Metrics,
        store::{ClaimEnd, Keep, Write},
    };

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + hours * 3_600_000).unwrap()
    }

    /// A new store, whose outbox nobody sees to.
    fn opened(directory: &Path) -> (SledStore, Closing) {
        let (outbox, _woken) = mpsc::unbounded_channel();
        SledStore::open(directory, outbox, Arc::new(OperatingSystem), Metrics::new().commits).unwrap()
    }

    fn key(text: &str) -> IdempotencyKey {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        IdempotencyKey::new(&scope, "POST", "/webhooks", text)
    }

    fn keeping(text: &str, created_at: Timestamp) -> Keep {
        let body = RawJson::of(&serde_json::json!({"id": "wh_1"})).unwrap();
        Keep { key: key(text), fingerprint: String::new(), created_at, body, claim: ClaimEnd::NotClaimed }
    }

    /// A clock that says what it is told to.
    struct Stepping(std::sync::atomic::AtomicI64);

    impl Ambient for Stepping {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Relaxed)).unwrap()
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            OperatingSystem.fill_random(bytes);
        }
    }

    #[tokio::test]
    async fn however_the_clock_steps_the_times_of_entries_never_decrease_after_a_start_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let ambient = Arc::new(Stepping(0.into()));
        for nth in 0..2 {
            let (outbox, _woken) = mpsc::unbounded_channel();
            let commits = Metrics::new().commits;
            let (store, closing) =
                SledStore::open(directory.path(), outbox, Arc::clone(&ambient) as Arc<dyn Ambient>, commits).unwrap();
            for (text, hours) in [("first", 0), ("forward", 9_000), ("back", 1 + nth), ("later", 2 + nth)] {
                ambient.0.store(at(hours).as_millis(), Ordering::Relaxed);
                let keep = keeping(&format!("{text}-{nth}"), at(hours));
                store.commit(Change { idempotency: Some(keep), writes: Vec::new() }).await.unwrap();
            }
            drop(store);
            closing.wait();
        }
        let mut times = Vec::new();
        journal::read_closed(&directory.path().join("journal"), 0, None, |_, writes| {
            let at = writes.get(keys::COMMITTED_AT).and_then(|at| String::from_utf8(at.clone()?).ok());
            times.extend(at.map(|at| at.parse::<i64>().unwrap()));
            Ok(())
        })
        .unwrap();
        assert_eq!(times.len(), 8);
        assert_eq!(times[0], at(0).as_millis());
        assert!(times[1..].iter().all(|time| *time == at(9_000).as_millis()), "{times:?}");
    }

    #[tokio::test]
    async fn responses_are_forgotten_when_they_no_longer_count_the_oldest_first() {
        let directory = tempfile::tempdir().unwrap();
        let (store, closing) = opened(directory.path());
        for (text, hours) in [("first", 0), ("second", 1), ("third", 2), ("again", 0), ("again", 30)] {
            let change = Change { idempotency: Some(keeping(text, at(hours))), writes: Vec::new() };
            store.commit(change).await.unwrap();
        }
        let forget = |now, at_most| {
            let kept_before = KeptResponse::stale_before(now);
            store.commit(Change::of(Write::ResponsesForgotten { kept_before, at_most }))
        };
        let kept = async || {
            let mut kept = Vec::new();
            for text in ["first", "second", "third", "again"] {
                if store.kept_response(&key(text)).await.unwrap().is_some() {
                    kept.push(text);
                }
            }
            kept
        };
        forget(at(24), 10).await.unwrap();
        assert_eq!(kept().await, ["first", "second", "third", "again"], "to the last moment");
        forget(at(26), 1).await.unwrap();
        assert_eq!(kept().await, ["second", "third", "again"]);
        forget(at(26), 10).await.unwrap();
        assert_eq!(kept().await, ["third", "again"]);
        assert!(store.has_response_before(at(3)).await.unwrap());
        forget(at(53), 10).await.unwrap();
        assert_eq!(kept().await, ["again"]);
        assert!(!store.has_response_before(at(30)).await.unwrap());
        let findings = store.check(|_| ()).unwrap().findings;
        assert!(findings.is_empty(), "{findings:?}");
        drop(store);
        closing.wait();
    }

    /// A ping's delivery of a time.
    fn delivered(hours: i64, status: DeliveryStatus) -> Box<Outgoing> {
        let id = EventId::new(at(hours), [7; RANDOM_BYTES]);
        let envelope = serde_json::json!({"id": id, "event": "test.ping", "createdAt": at(hours), "data": {"a": 1}});
        let envelope = RawJson::of(&envelope).unwrap();
        let delivery = Delivery {
            id: DeliveryId::new(at(hours), [7; RANDOM_BYTES]),
            webhook_id: "wh_1".parse().unwrap(),
            developer_id: "dev_1".parse().unwrap(),
            event: EventKind::TestPing,
            payload: envelope,
            response_status: Some(200),
            response_body: Some("thanks".into()),
            error: None,
            duration_ms: Some(7),
            attempts: 1,
            status,
            delivered_at: Some(at(hours)),
            created_at: at(hours),
            unknown: UnknownFields::default(),
        };
        Box::new(Outgoing { environment: Environment::Test, payment: None, event: None, delivery })
    }

    #[tokio::test]
    async fn deliveries_that_have_ended_are_redacted_the_oldest_first_and_one_that_is_pending_holds_up_none() {
        let directory = tempfile::tempdir().unwrap();
        let (store, closing) = opened(directory.path());
        let (over, pending) = (DeliveryStatus::Success, DeliveryStatus::Pending);
        for (hours, status) in [(0, &over), (1, &over), (2, &pending), (3, &over), (9, &over)] {
            store.commit(Change::of(Write::Delivery(delivered(hours, status.clone())))).await.unwrap();
        }
        let forget = |hours, at_most| {
            store.commit(Change::of(Write::DeliveryBodiesForgotten { created_before: at(hours), at_most }))
        };
        let remember = || {
            let deliveries = store.each_delivery().map(|outgoing| outgoing.unwrap().delivery);
            let full = deliveries.filter(|delivery| delivery.response_body.is_some());
            full.map(|delivery| (delivery.created_at.as_millis() - at(0).as_millis()) / 3_600_000).collect::<Vec<_>>()
        };
        forget(5, 1).await.unwrap();
        assert_eq!(remember(), [1, 2, 3, 9]);
        forget(5, 10).await.unwrap();
        assert_eq!(remember(), [2, 9], "what is pending is still to be sent");
        assert!(!store.has_delivery_body_before(at(5)).await.unwrap());
        let first = store.each_delivery().next().unwrap().unwrap().delivery;
        assert!(first.payload.as_str().ends_with(r#""data":{}}"#), "{}", first.payload.as_str());

        store.commit(Change::of(Write::DeliveryEnded(delivered(2, over)))).await.unwrap();
        assert_eq!(remember(), [9], "its time was over when it ended");
        let findings = store.check(|_| ()).unwrap().findings;
        assert!(findings.is_empty(), "{findings:?}");
        drop(store);
        closing.wait();
    }
}
