//! Stripe's payouts to the bank, and the balance transactions of each.

use payments_core::{Day, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Stripe,
    list::{Page, payment_named},
};
use crate::{
    domain::{RowKind, StatementRow},
    gateway::{contract::StatementPart, error::GatewayError},
};

#[derive(Debug, Deserialize)]
struct Payout {
    id: String,
    status: String,
    reconciliation_status: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    amount: i64,
    fee: i64,
    net: i64,
    currency: String,
    created: i64,
    reporting_category: String,
    /// The whole charge, refund or dispute.
    #[serde(default)]
    source: Value,
}

impl Row {
    fn read(&self) -> Option<StatementRow> {
        let kind = match &*self.reporting_category {
            "charge" => RowKind::Payment,
            "refund" => RowKind::Refund,
            "dispute" | "dispute_reversal" => RowKind::Dispute,
            "fee" => RowKind::Fee,
            _ => RowKind::Other,
        };
        let intent = &self.source["payment_intent"];
        let payment = payment_named(&self.source["metadata"], intent).map(|id| id.to_string());
        let intent = intent["id"].as_str().map(str::to_owned);
        Some(StatementRow {
            id: self.id.clone(),
            kind,
            references: payment.into_iter().chain(intent).collect(),
            gross: self.amount,
            fee: self.fee,
            net: self.net,
            currency: self.currency.to_ascii_uppercase().parse().ok()?,
            date: Day::of(Timestamp::from_millis(self.created.checked_mul(1000)?).ok()?),
        })
    }
}

impl Stripe {
    /// A part of the rows of the payouts since a time, newest first. A place in them is a payout's id, and with a colon the
    /// last row that was read of it.
    pub(super) async fn payout_rows(
        &self,
        since: Timestamp,
        after: Option<&str>,
    ) -> Result<StatementPart, GatewayError> {
        let (payout, row) = match after {
            Some(after) => after.split_once(':').map_or((after, None), |(payout, row)| (payout, Some(row))),
            None => {
                return Ok(StatementPart { rows: Vec::new(), next: self.payout_after(since, None).await? });
            }
        };
        let query = [("payout", payout), ("expand[]", "data.source.payment_intent")];
        let page: Page<Row> = self.page("list a payout's rows", "balance_transactions", &query, row).await?;
        let next = match page.data.last().filter(|_| page.has_more) {
            Some(last) => Some(format!("{payout}:{}", last.id)),
            None => self.payout_after(since, Some(payout)).await?,
        };
        // The payout's own row says only what leaves.
        let rows = page.data.iter().filter(|row| row.reporting_category != "payout");
        let rows = rows.map(|row| row.read().ok_or_else(|| self.unreadable(row))).collect::<Result<_, _>>()?;
        Ok(StatementPart { rows, next })
    }

    fn unreadable(&self, row: &Row) -> GatewayError {
        self.client.unanswered(&format!("row {} is in {}, which this server does not have", row.id, row.currency))
    }

    /// The next payout whose rows are all known.
    async fn payout_after(&self, since: Timestamp, after: Option<&str>) -> Result<Option<String>, GatewayError> {
        let since = since.as_unix_seconds().to_string();
        let mut after = after.map(str::to_owned);
        loop {
            let query = [("created[gte]", since.as_str())];
            let page: Page<Payout> = self.page("list payouts", "payouts", &query, after.as_deref()).await?;
            let is_whole = |it: &&Payout| it.status == "paid" && it.reconciliation_status == "completed";
            if let Some(found) = page.data.iter().find(is_whole) {
                return Ok(Some(found.id.clone()));
            }
            match page.data.last().filter(|_| page.has_more) {
                Some(last) => after = Some(last.id.clone()),
                None => return Ok(None),
            }
        }
    }
}
