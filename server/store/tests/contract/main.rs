//! The [store's contract](payments_store) as tests: every sentence of it, on every engine.
//!
//! Each sentence is a function that gets an empty store. After it, the engine starts again, and the store is checked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod broken_connections;
mod changes;
mod damaged_rows;
mod damaged_values;
mod days;
mod events;
mod found;
mod keys;
mod lists;
mod many_creates;
mod moving;
mod pruning;
mod samples;
mod several_cells;
mod side_by_side;
mod tables;
mod transactions;
mod work;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use payments_store::ambient::OperatingSystem;
use payments_store::{
    Finding, Snapshot, Store, Write,
    embedded::{Closing, EmbeddedStore},
    layout::MemoryStore,
    postgres::{Closing as PostgresClosing, PostgresSnapshot, PostgresStore, Target},
};
use tempfile::TempDir;
use test_support::cluster::{Cluster, client_of, shared_url};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_postgres::Client;

/// A way to have stores.
trait Engine {
    /// An engine whose store is empty.
    async fn new() -> Self;
    fn store(&self) -> Arc<Store>;
    /// The same store after an orderly end and a start.
    async fn restarted(self) -> Self;
    /// Checks the store, if the engine can.
    async fn findings(&self) -> Vec<Finding>;
    /// An orderly end. An engine that is still closing fails when the directory of its test is removed.
    async fn end(self);
}

/// A store in memory loses its records when it ends. So it is not started again.
struct Memory(Arc<MemoryStore>);

impl Engine for Memory {
    async fn new() -> Self {
        Self(Arc::default())
    }

    fn store(&self) -> Arc<Store> {
        self.0.store()
    }

    async fn restarted(self) -> Self {
        self
    }

    async fn findings(&self) -> Vec<Finding> {
        self.0.check(&mut |_| ()).unwrap().findings
    }

    async fn end(self) {}
}

struct Embedded {
    store: Arc<EmbeddedStore>,
    closing: Closing,
    directory: TempDir,
}

impl Embedded {
    fn open(directory: TempDir) -> Self {
        let (store, closing) = EmbeddedStore::open(directory.path(), Arc::new(OperatingSystem), |_, _| ()).unwrap();
        Self { store: Arc::new(store), closing, directory }
    }

    fn close(self) -> TempDir {
        drop(Arc::into_inner(self.store).unwrap());
        self.closing.wait();
        self.directory
    }
}

impl Engine for Embedded {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> Arc<Store> {
        self.store.store()
    }

    async fn restarted(self) -> Self {
        Self::open(self.close())
    }

    async fn findings(&self) -> Vec<Finding> {
        self.store.check(&mut |_| ()).unwrap().findings
    }

    async fn end(self) {
        self.close();
    }
}

/// Each store has a schema of its own in one database.
struct Postgres {
    store: Arc<PostgresStore>,
    closing: PostgresClosing,
    target: Target,
}

impl Postgres {
    async fn open(target: Target) -> Self {
        let (store, closing) = PostgresStore::open(target.clone(), &OperatingSystem).await.unwrap();
        Self { store: Arc::new(store), closing, target }
    }

    async fn close(self) -> Target {
        drop(Arc::into_inner(self.store).unwrap());
        self.closing.wait().await;
        self.target
    }
}

/// Waits until somebody waits for a lock in the database of this connection.
async fn somebody_waits(client: &Client) {
    let waiting = "SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                   WHERE NOT l.granted AND a.datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        sleep(Duration::from_millis(5)).await;
        // Within a transaction PostgreSQL shows the sessions that were there at the first look.
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    }
}

/// A new database in a cluster apart, for tests that end connections and hold transactions open.
async fn database_apart() -> String {
    spawn_blocking(|| apart().new_database()).await.unwrap()
}

fn apart() -> &'static Cluster {
    static APART: OnceLock<Cluster> = OnceLock::new();
    APART.get_or_init(|| Cluster::start(&["fsync=off"]))
}

/// A schema of its own, and a connection that finds its tables.
async fn schema(name: &str) -> (Target, Client) {
    let url = shared_url().await;
    let client = client_of(&url).await;
    client.batch_execute(&format!("SET search_path = {name}")).await.unwrap();
    (Target::new(&url.into(), None).unwrap().with_schema(name), client)
}

/// A new and empty database.
async fn own_database() -> String {
    spawn_blocking(|| Cluster::shared().new_database()).await.unwrap()
}

impl Engine for Postgres {
    async fn new() -> Self {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let schema = format!("contract_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
        Self::open(Target::new(&shared_url().await.into(), None).unwrap().with_schema(&schema)).await
    }

    fn store(&self) -> Arc<Store> {
        self.store.store()
    }

    async fn restarted(self) -> Self {
        Self::open(self.close().await).await
    }

    async fn findings(&self) -> Vec<Finding> {
        let snapshot = PostgresSnapshot::open(&self.target).await.unwrap();
        spawn_blocking(move || snapshot.check(&mut |_| ()).unwrap().findings).await.unwrap()
    }

    async fn end(self) {
        self.close().await;
    }
}

/// Starts an engine again, which then checks itself. The records of these tests are a developer's who has a workspace.
async fn check<E: Engine>(engine: E) -> E {
    if engine.store().workspace_of(&samples::scope().developer_id).await.unwrap().is_none() {
        samples::commit(&engine.store(), vec![Write::Workspace(samples::workspace(0))]).await.unwrap();
    }
    let engine = engine.restarted().await;
    let findings = engine.findings().await;
    assert!(findings.is_empty(), "{findings:?}");
    engine
}

/// Makes a test of each sentence, on each engine.
macro_rules! contract {
    ($( $subject:ident { $( $sentence:ident, )* } )*) => {
        contract!(@on memory Memory $( $( $subject $sentence )* )*);
        contract!(@on embedded Embedded $( $( $subject $sentence )* )*);
        contract!(@on postgres Postgres $( $( $subject $sentence )* )*);
    };
    (@on $name:ident $engine:ident $( $subject:ident $sentence:ident )*) => {
        mod $name {
            use crate::{Engine, check, $engine};
            $(
                #[tokio::test]
                async fn $sentence() {
                    let engine = $engine::new().await;
                    crate::$subject::$sentence(engine.store()).await;
                    check(engine).await.end().await;
                }
            )*

            #[tokio::test]
            async fn what_a_commit_answered_is_there_after_a_restart() {
                let engine = $engine::new().await;
                let written = crate::changes::written(engine.store()).await;
                let engine = check(engine).await;
                assert_eq!(crate::changes::read(engine.store()).await, written);
                engine.end().await;
            }
        }
    };
}

contract! {
    changes {
        a_change_is_whole_or_not_there,
        a_record_is_written_only_with_the_version_after_the_stored_one,
        a_change_of_a_key_that_was_just_read_is_read_at_once,
        a_part_of_the_log_of_requests_is_read_by_its_place_in_its_own_scope,
        of_changes_of_one_version_made_at_once_one_succeeds,
        a_scope_never_has_more_endpoints_than_it_may,
        of_conditions_that_do_not_hold_the_first_is_reported,
        additions_of_changes_made_at_once_add_up,
        what_was_written_is_read_as_it_was,
    }
    days {
        a_payment_counts_on_the_day_of_its_creation_in_its_own_scope_and_currency,
        payments_made_and_paid_at_once_add_up_on_their_day,
    }
    events {
        events_are_listed_in_the_order_of_their_commits_in_their_own_scope,
        whoever_reads_on_after_an_event_misses_none_and_reads_none_twice,
        an_event_keeps_its_data_in_the_list_when_its_payment_changes,
        every_delivery_of_a_payments_events_is_among_its_deliveries,
        whoever_reads_on_through_the_deliveries_to_an_endpoint_misses_none,
    }
    transactions {
        each_change_with_postings_is_a_transaction_with_the_balance_after_it,
        whoever_reads_on_to_older_transactions_misses_none_and_reads_none_twice,
    }
    found {
        whoever_reads_on_after_a_payment_misses_none_and_reads_none_twice,
        a_part_between_times_has_every_payment_of_them,
        a_payment_is_found_by_each_of_its_values_in_their_normal_form_and_in_its_own_scope,
        of_new_payments_that_alone_may_have_a_value_one_is_made,
    }
    keys {
        a_response_is_kept_under_a_key_for_a_day,
        of_responses_kept_under_a_key_at_once_one_succeeds_and_the_others_get_it,
        a_response_that_an_event_holds_too_stays_as_it_was,
        a_key_has_one_holder_until_it_finishes_releases_or_its_lease_ends,
        a_claim_on_a_key_that_was_made_before_the_clock_went_back_ends,
    }
    lists {
        payments_are_listed_newest_first_and_an_order_once_seen_never_changes,
        whoever_pages_through_a_list_misses_none_that_was_there_at_the_beginning,
        every_page_of_a_long_list_has_what_the_ones_before_it_leave,
        a_payment_is_in_the_list_of_its_status_and_in_no_other,
        a_payment_is_served_as_its_last_change_left_it_and_in_its_own_scope_alone,
        payments_wait_for_a_person_until_one_has_decided,
        a_cursor_of_endpoints_finds_all_later_ids_whenever_they_came,
        an_outbox_begins_with_the_oldest_however_late_it_came,
        a_clock_that_steps_back_changes_no_list_and_no_outbox,
    }
    work {
        work_has_one_holder_until_it_is_released_or_its_lease_ends,
        a_renewed_claim_lasts_longer_and_one_that_was_taken_over_is_not_renewed,
        a_claim_that_was_released_or_taken_over_finishes_nothing,
        a_lane_is_claimed_if_it_has_a_pending_delivery_and_nobody_has_it,
        of_a_payments_events_the_later_waits_while_the_earlier_is_claimed,
        an_endpoint_committed_before_a_payments_change_receives_its_event,
        an_event_of_a_scope_without_endpoints_is_never_pending,
        an_event_is_handed_out_until_all_its_endpoints_were_looked_at,
        sessions_and_gateway_checks_are_handed_out_when_due_the_earliest_first,
        a_delivery_that_waits_is_in_no_outbox_and_is_handed_out_when_due_the_earliest_first,
        a_delivery_that_waits_is_handed_out_once_if_the_time_of_its_attempt_changed,
        a_claim_that_was_made_before_the_clock_went_back_ends,
        what_is_planned_is_listed_by_its_time_and_what_has_one_time_together,
    }
    pruning {
        old_responses_are_dropped_the_oldest_first_and_no_more_than_asked,
        ended_claims_on_keys_are_dropped_the_oldest_first,
        a_claim_that_takes_over_while_the_old_one_is_dropped_stays,
        ended_deliveries_are_redacted_the_oldest_first_and_a_pending_one_holds_up_none,
        a_delivery_that_ends_after_those_of_its_time_were_redacted_is_redacted,
        a_delivery_that_waits_for_its_next_attempt_keeps_its_payload,
    }
}
