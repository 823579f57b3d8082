//! Tests of every sentence of the [store's contract](payments_store), in every place for bytes.
//!
//! Each sentence is a function that gets an empty store. After it, the store is opened again and checked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod books;
mod broken_connections;
mod changes;
mod damaged_rows;
mod damaged_values;
mod days;
mod disputes;
mod erasure;
mod events;
mod found;
mod keys;
mod limits;
mod lists;
mod many_creates;
mod moving;
mod payouts;
mod pruning;
mod samples;
mod settlements;
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

/// A store in one place for bytes.
trait Engine {
    /// An empty store.
    async fn new() -> Self;
    fn store(&self) -> Arc<Store>;
    /// The same store, closed and opened again.
    async fn restarted(self) -> Self;
    /// Checks the store, if it can be checked.
    async fn findings(&self) -> Vec<Finding>;
    /// Closes the store. It would fail if it was still closing when the directory of its test is removed.
    async fn end(self);
}

/// A store in memory loses its records when it is closed. So it is not opened again.
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

/// Waits until a session waits for a lock in the database of this connection.
async fn somebody_waits(client: &Client) {
    let waiting = "SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                   WHERE NOT l.granted AND a.datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        sleep(Duration::from_millis(5)).await;
        // Within a transaction PostgreSQL shows the sessions that were there at the first look.
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    }
}

/// A new database in a separate cluster, for tests that end connections and hold transactions open.
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

/// A new and empty database in the shared cluster.
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

/// Opens a store again and checks it. Adds the workspace of the tests' developer if it is missing, because the check needs
/// it.
async fn check<E: Engine>(engine: E) -> E {
    if engine.store().workspace_of(&samples::scope().developer_id).await.unwrap().is_none() {
        samples::commit(&engine.store(), vec![Write::Workspace(samples::workspace(0))]).await.unwrap();
    }
    let engine = engine.restarted().await;
    let findings = engine.findings().await;
    assert!(findings.is_empty(), "{findings:?}");
    engine
}

/// Makes a test of each sentence, in each place for bytes.
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
            async fn acknowledged_changes_are_there_after_a_restart() {
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
    audit {
        an_audited_change_leaves_its_fields_and_is_dropped_by_age,
    }
    changes {
        a_change_is_whole_or_not_there,
        a_record_is_written_only_with_the_version_after_the_stored_one,
        a_session_is_removed_only_as_it_was_read,
        a_change_of_an_api_key_that_was_just_read_is_seen_at_once,
        a_part_of_the_log_of_requests_is_read_by_its_place_in_its_own_scope,
        one_of_several_simultaneous_changes_of_one_version_succeeds,
        a_scope_never_has_more_endpoints_than_it_may,
        the_first_condition_that_does_not_hold_is_reported,
        simultaneous_changes_add_up,
        records_are_read_as_they_were_written,
    }
    days {
        a_payment_counts_on_the_day_of_its_creation_in_its_own_scope_and_currency,
        simultaneous_payments_add_up_on_their_day,
    }
    erasure {
        erased_payments_are_found_by_their_values_no_more_and_the_others_still_are,
        a_sweep_finds_ended_payments_with_a_customers_data_by_their_last_change,
        an_erasure_reaches_events_deliveries_and_stored_responses,
    }
    events {
        events_are_listed_in_the_order_of_their_commits_in_their_own_scope,
        a_reader_of_the_list_of_events_misses_none_and_reads_none_twice,
        an_event_keeps_its_data_in_the_list_when_its_payment_changes,
        every_delivery_of_a_payments_events_is_listed_with_the_payment,
        a_reader_of_the_deliveries_to_an_endpoint_misses_none,
    }
    transactions {
        each_booking_of_a_merchant_is_a_transaction_with_the_balance_after_it,
        a_booking_without_an_event_is_a_transaction_too,
        a_reader_of_older_transactions_misses_none_and_reads_none_twice,
    }
    disputes {
        a_disputed_payment_is_listed_until_the_dispute_is_decided_and_is_found_by_it,
    }
    settlements {
        a_settled_row_counts_once_and_its_payment_waits_no_longer,
    }
    books {
        what_merchants_are_owed_and_owe_is_known_after_each_change,
        an_entry_of_an_operator_is_recorded_once_and_takes_no_more_fees_than_there_are,
    }
    payouts {
        a_payout_takes_only_what_is_available_and_only_one_is_open,
        payouts_are_listed_and_each_statement_begins_after_the_last_one,
        a_statement_that_was_written_before_the_last_one_ended_is_written_again,
    }
    found {
        a_reader_of_the_list_of_payments_misses_none_and_reads_none_twice,
        a_part_between_two_times_has_every_payment_created_between_them,
        a_payment_is_found_by_the_normal_form_of_each_of_its_values_in_its_own_scope,
        one_of_several_new_payments_that_demand_a_unique_value_is_made,
    }
    keys {
        a_response_is_stored_under_a_key_for_a_day,
        one_of_several_simultaneous_responses_to_a_key_is_stored_and_the_others_get_it,
        a_response_that_is_also_the_data_of_an_event_stays_as_it_was,
        a_key_has_one_holder_until_it_finishes_releases_or_its_lease_ends,
        a_claim_on_a_key_that_was_made_before_the_clock_went_back_ends,
    }
    limits {
        simultaneous_payments_never_exceed_the_amount_of_a_day,
        a_payment_above_the_maximum_and_one_too_many_within_a_minute_are_refused,
        a_workspace_has_no_more_endpoints_than_its_limit_and_that_of_the_server,
    }
    lists {
        payments_are_listed_newest_first_and_an_order_once_seen_never_changes,
        a_reader_of_pages_misses_no_payment_that_was_there_at_the_start,
        every_page_of_a_long_list_continues_the_page_before,
        a_payment_is_in_the_list_of_its_status_and_in_no_other,
        a_payment_is_served_as_its_last_change_left_it_and_only_in_its_own_scope,
        payments_are_listed_for_manual_review_until_a_person_has_decided,
        a_cursor_of_endpoints_finds_all_later_ids_whenever_they_were_added,
        an_outbox_begins_with_the_oldest_delivery_however_late_it_was_committed,
        a_clock_that_steps_back_changes_no_list_and_no_outbox,
    }
    work {
        work_has_one_holder_until_it_is_released_or_its_lease_ends,
        a_renewed_claim_lasts_longer_and_one_that_was_taken_over_is_not_renewed,
        a_claim_that_was_released_or_taken_over_finishes_nothing,
        a_lane_can_be_claimed_if_it_has_a_pending_delivery_and_no_holder,
        a_later_event_of_a_payment_waits_while_an_earlier_one_is_claimed,
        an_endpoint_committed_before_a_payments_change_receives_its_event,
        an_event_of_a_scope_without_endpoints_is_never_pending,
        an_event_is_handed_out_until_all_its_endpoints_are_handled,
        sessions_and_gateway_checks_are_handed_out_when_due_the_earliest_first,
        a_delivery_that_waits_is_in_no_outbox_and_is_handed_out_when_due_the_earliest_first,
        a_delivery_that_waits_is_handed_out_once_if_the_time_of_its_attempt_changed,
        a_claim_that_was_made_before_the_clock_went_back_ends,
        planned_work_is_listed_by_its_time_and_work_of_the_same_time_together,
    }
    pruning {
        old_responses_are_dropped_the_oldest_first_and_no_more_than_asked,
        ended_claims_on_keys_are_dropped_the_oldest_first,
        a_claim_that_takes_over_while_the_old_one_is_dropped_stays,
        ended_deliveries_are_redacted_the_oldest_first_and_a_pending_one_holds_up_none,
        a_delivery_that_ends_after_pruning_has_passed_it_is_redacted,
        a_delivery_that_waits_for_its_next_attempt_keeps_its_payload,
    }
}
