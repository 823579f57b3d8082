//! What every answer and the whole store must be in the end.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    steps::{Operation, STATUSES, Who},
    world::World,
};

impl World {
    /// Everything that can be read says what the model says.
    pub(super) async fn agrees(mut self) {
        if self.life < Duration::from_secs(3600) {
            self.let_sessions_end(Instant::now() + self.life).await;
        }
        for who in [Who::Test, Who::Live] {
            for place in 0..self.of(who).payments.len() {
                self.read(who, place).await;
            }
            for status in [None].into_iter().chain(STATUSES.map(Some)) {
                let count = self.of(who).payments.len();
                for limit in [3, 100] {
                    for page in 1..=count / limit + 2 {
                        self.list(who, status, page, limit).await;
                    }
                }
            }
            self.account(who).await;
            self.endpoints(who).await;
            self.every_delivery(who).await;
            for place in 0..self.of(who).kept.len() {
                self.step(&(who, Operation::Replay { place })).await;
            }
        }
        self.money_moved_once();
        // Without the server, so that it reads the store itself. When the server is dropped the store is checked.
        assert!(self.live.server.terminate().success());
        let exported = self.live.administer(&["export", "payments"]);
        let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
        let expected: BTreeMap<_, _> = payments.map(|payment| (&*payment.id, &*payment.text)).collect();
        assert_eq!(exported.lines().collect::<Vec<_>>(), expected.into_values().collect::<Vec<_>>());
    }

    /// The gateways took money for what is paid and for nothing else, and gave back what they are to give back.
    pub(super) fn money_moved_once(&self) {
        let books = [self.live.bkash.program().books(), self.live.stripe.program().books()].concat();
        for payment in &self.of(Who::Live).payments {
            let entry = books.iter().find(|entry| entry.reference.starts_with(&payment.id));
            let moved = entry.map_or((0, 0), |entry| (entry.taken, entry.refunded));
            let by_processor = payment.raw == "refunded" && payment.currency == "USD";
            let was_paid = matches!(payment.raw, "paid" | "refunded");
            assert_eq!(moved, (was_paid.into(), by_processor.into()), "{}", payment.text);
        }
    }
}
