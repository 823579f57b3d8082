//! Coverage: whether the bank and the gateways hold what merchants are owed. Each day's figure is kept.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use payments_core::{Currency, Day, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{Directory, Result, Service, operator_text::invalid};
use crate::{
    domain::{Cover, Coverage},
    store::{Change, CommitError, Conflict, Write},
};

const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// What covers the money that merchants are owed, now or on a day.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoverageReply {
    /// The day in Dhaka; `None` now.
    pub day: Option<Day>,
    pub taken_at: Timestamp,
    pub covers: Vec<CoverRow>,
}

/// A currency. Amounts are in minor units.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CoverRow {
    pub currency: Currency,
    #[serde(flatten)]
    pub cover: Cover,
    pub surplus: i64,
}

impl Service {
    /// Keeps the figure of each day when the next one begins in Dhaka. Runs forever.
    pub async fn keep_coverage(self: Arc<Self>) {
        // The last day whose figure is there, so that the store is asked once a day.
        let mut kept = None;
        loop {
            let taken_at = self.ambient.now();
            let day = Day::in_dhaka(taken_at).minus(1);
            if kept != Some(day) {
                match self.directory.keep_coverage(day, taken_at).await {
                    Ok(is_kept) => kept = is_kept.then_some(day),
                    Err(error) => {
                        tracing::error!(%day, %error, "could not keep the coverage of the last day; trying again")
                    }
                }
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Directory {
    /// Keeps the figure of a day that has ended. Returns whether it is there: not while the books are empty.
    async fn keep_coverage(&self, day: Day, taken_at: Timestamp) -> Result<bool> {
        if self.store.coverage(day).await?.is_some() {
            return Ok(true);
        }
        let covers = self.store.gauges().await?.covers;
        if covers.is_empty() {
            return Ok(false);
        }
        let kept = Coverage { day, taken_at, covers };
        match self.commit(Change::of(Write::Coverage(Box::new(kept)))).await {
            // Another server kept it.
            Ok(()) | Err(CommitError::Conflict(Conflict::Stale)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The figure that was kept for a day; without a day, the figure now.
    pub(super) async fn coverage(&self, day: Option<Day>) -> Result<CoverageReply> {
        let Some(day) = day else {
            return Ok(reply(None, self.ambient.now(), self.store.gauges().await?.covers));
        };
        if day >= Day::in_dhaka(self.ambient.now()) {
            return Err(invalid(format!(
                "{day} has not ended in Dhaka; without --date the command shows the figure now"
            )));
        }
        match self.store.coverage(day).await? {
            Some(Coverage { day, taken_at, covers }) => Ok(reply(Some(day), taken_at, covers)),
            None => Err(invalid(format!(
                "nothing was kept for {day}: no server ran on the day after, or the books were empty"
            ))),
        }
    }
}

fn reply(day: Option<Day>, taken_at: Timestamp, covers: BTreeMap<Currency, Cover>) -> CoverageReply {
    let row = |(currency, cover): (Currency, Cover)| CoverRow { currency, cover, surplus: cover.surplus() };
    CoverageReply { day, taken_at, covers: covers.into_iter().map(row).collect() }
}
