//! Compares the final state with the model.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    steps::{Operation, STATUSES, Who},
    world::World,
};

impl World {
    /// Reads everything and compares it with the model.
    pub(super) async fn assert_matches(mut self) {
        if self.session_ttl < Duration::from_secs(3600) {
            self.wait_for_expiry(Instant::now() + self.session_ttl).await;
        }
        for who in [Who::Test, Who::Live] {
            for index in 0..self.of(who).payments.len() {
                self.read(who, index).await;
            }
            for status in [None].into_iter().chain(STATUSES.map(Some)) {
                let count = self.of(who).payments.len();
                for limit in [3, 100] {
                    for page in 1..=count / limit + 2 {
                        self.list(who, status, page, limit).await;
                    }
                }
                for currency in ["BDT", "USD"] {
                    self.find(who, currency, status).await;
                }
            }
            self.account(who).await;
            self.endpoints(who).await;
            // Now the failed deliveries that were not resent are resent, and no others.
            for index in 0..self.of(who).endpoints.len() {
                self.recover(who, index).await;
            }
            self.check_deliveries(who).await;
            for index in 0..self.of(who).stored.len() {
                self.step(&(who, Operation::Replay { index })).await;
            }
        }
        self.money_moved_once();
        // Without a server, the command reads the store itself. Dropping the server runs `check`.
        assert!(self.live.server.terminate().success());
        if self.live.server.database().is_some() {
            // A database has tools of its own.
            return;
        }
        let exported = self.live.server.run(&["export", "payments"]);
        let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
        let expected: BTreeMap<_, _> = payments.map(|payment| (&*payment.id, &*payment.text)).collect();
        assert_eq!(exported.lines().collect::<Vec<_>>(), expected.into_values().collect::<Vec<_>>());
    }

    /// Asserts that the gateways took money only for paid payments and refunded exactly the card refunds.
    pub(super) fn money_moved_once(&self) {
        let books = [self.live.bkash.program().books(), self.live.stripe.program().books()].concat();
        for payment in &self.of(Who::Live).payments {
            let its = books.iter().filter(|entry| entry.reference.starts_with(&payment.id));
            let moved = its.fold((0, 0), |sum, entry| (sum.0 + entry.taken, sum.1 + entry.refunded_minor));
            let by_processor = if payment.currency == "USD" { payment.refunded() } else { 0 };
            let was_paid = matches!(payment.raw, "paid" | "refunded");
            assert_eq!(moved, (was_paid.into(), by_processor), "{}", payment.text);
        }
    }
}
