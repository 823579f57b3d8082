//! Reads the gateways' lists of refunds, disputes and costs, again and again.

use std::{sync::Arc, time::Duration};

use payments_core::{PaymentId, RawJson, Timestamp, TransactionId};
use tokio::time::sleep;

use super::{Result, Service, retry_on_conflict};
use crate::{
    domain::{CostRow, GatewayCost, Session},
    gateway::{Gateway, GatewayError, GatewayList, Listed},
    store::{BookingWrite, Change, PaymentWrite, Write},
};

/// How far back the worker reads, in days. A customer may dispute a payment for 120 days, and a dispute may take as long.
const fn days_read(list: GatewayList) -> i64 {
    match list {
        GatewayList::Refunds | GatewayList::Costs => 30,
        GatewayList::Disputes => 240,
    }
}
/// The time between two parts of a list.
const PART_INTERVAL: Duration = Duration::from_secs(5);
/// The time between two readings.
const READING_INTERVAL: Duration = Duration::from_secs(600);
/// The time from the start of the server to the first reading.
const FIRST_READING_AFTER: Duration = Duration::from_secs(2);

impl Service {
    /// Reads the gateways' lists again and again. Runs forever.
    pub async fn follow_gateway_lists(self: Arc<Self>) {
        let lists_of = |gateway: &'_ dyn Gateway| gateway.declared().lists;
        if self.gateways.each().all(|gateway| lists_of(gateway).is_empty()) {
            return std::future::pending().await;
        }
        sleep(FIRST_READING_AFTER).await;
        loop {
            for gateway in self.gateways.each() {
                for list in lists_of(gateway) {
                    if let Err(error) = self.read(gateway, *list).await {
                        let gateway = gateway.declared().name.as_str();
                        tracing::warn!(gateway, ?list, %error, "could not read a list to its end; reading it again later");
                    }
                }
            }
            sleep(READING_INTERVAL).await;
        }
    }

    async fn read(&self, gateway: &dyn Gateway, list: GatewayList) -> Result<(), GatewayError> {
        let begin = self.ambient.now().as_millis() - days_read(list) * 24 * 60 * 60 * 1000;
        let since = Timestamp::from_millis(begin).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut after = None;
        loop {
            let part = gateway.list(list, since, after.as_deref()).await?;
            for (payment, listed) in &part.items {
                let followed = match listed {
                    Listed::Refund(refund) => self.follow_if_unknown(payment, refund).await,
                    Listed::Dispute(dispute) => self.follow_dispute(payment, dispute).await,
                    Listed::Cost(row) => self.book_cost(payment, row).await,
                };
                if let Err(error) = followed {
                    tracing::warn!(%payment, ?list, %error, "could not follow an item of the gateway's list; trying again later");
                }
            }
            match part.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
            sleep(PART_INTERVAL).await;
        }
    }

    /// Books what the gateway kept of a payment, once for each row of its books.
    pub(super) async fn book_cost(&self, id: &PaymentId, row: &CostRow) -> Result<()> {
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            let mut next = session.next();
            let Some(booking) = self.cost_of(&mut next, row) else { return Ok(()) };
            let write = PaymentWrite::new(next, RawJson::of(&session.payment)?, None, None);
            let write = PaymentWrite { without_event: vec![booking], ..write };
            Ok(self.commit(Change::of(Write::Payment(Box::new(write)))).await?)
        })
        .await
    }

    /// Adds a cost to a session; `None` if it has it.
    pub(super) fn cost_of(&self, next: &mut Session, row: &CostRow) -> Option<BookingWrite> {
        if !next.lacks_cost(row) {
            return None;
        }
        let is_of_merchant = self.settings.merchants_bear_costs;
        let cost = GatewayCost { row: row.id.clone(), minor: row.minor, is_of_merchant };
        let created_at = self.ambient.now().max(next.payment.updated_at);
        let id = TransactionId::new(next.payment.developer_id.slot(), created_at, self.ambient.id_bytes());
        let booking = BookingWrite { id, created_at, booking: cost.booking() };
        next.costs.push(cost);
        Some(booking)
    }
}
