//! Changes of the platform's own accounts that an operator records: money paid in, bank charges, fees taken.

use payments_core::{Amount, Currency, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Directory, Result, ServiceError,
    operator_text::{amount_as_text, invalid, named},
    retry_on_conflict,
};
use crate::{
    domain::{BooksChange, BooksEntry},
    store::{Change, Write},
};

/// A change to record.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct BooksRequest {
    pub change: BooksChange,
    #[serde(with = "amount_as_text")]
    #[schemars(with = "String")]
    pub amount: Amount,
    #[serde(deserialize_with = "Currency::deserialize_closed")]
    pub currency: Currency,
    pub reference: String,
    /// Whose fees were taken, by id or name.
    pub workspace: Option<String>,
}

/// The recorded change.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BooksRow {
    pub change: BooksChange,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    pub reference: String,
    pub workspace: Option<WorkspaceId>,
    pub recorded_at: Timestamp,
}

impl Directory {
    /// Records a change. The same one again changes nothing.
    pub(super) async fn record_in_books(&self, request: BooksRequest) -> Result<BooksRow> {
        let BooksRequest { change, amount, currency, reference, workspace } = request;
        let reference = named("reference", &reference)?;
        if amount.as_minor() == 0 {
            return Err(invalid("the amount must be more than 0"));
        }
        let workspace = match (workspace, change) {
            (Some(name), BooksChange::FeesTaken) => Some(self.named_workspace(&name).await?),
            (None, BooksChange::FeesTaken) => return Err(invalid("name with --workspace whose fees were taken")),
            (None, _) => None,
            (Some(_), _) => return Err(invalid("--workspace is only for fees-taken")),
        };
        let developer_id = workspace.as_ref().map(|it| it.developer_id.clone());
        let recorded_at = self.ambient.now();
        let reference = reference.to_owned();
        let new = BooksEntry { change, reference, amount, currency, developer_id, recorded_at };
        let entry = retry_on_conflict(|| self.keep_entry(&new)).await?;
        let BooksEntry { reference, recorded_at, .. } = entry;
        let (amount, workspace) = (amount.to_string(), workspace.map(|it| it.id));
        Ok(BooksRow { change, amount, currency, reference, workspace, recorded_at })
    }

    async fn keep_entry(&self, new: &BooksEntry) -> Result<BooksEntry> {
        let BooksEntry { change, reference, developer_id, .. } = new;
        if let Some(known) = self.store.books_entry(developer_id.as_ref(), *change, reference).await? {
            let is_same = BooksEntry { recorded_at: known.recorded_at, ..new.clone() } == known;
            let BooksEntry { amount, currency, .. } = known;
            return if is_same {
                Ok(known)
            } else {
                Err(invalid(format!("{reference} is already recorded, with {amount} {currency}")))
            };
        }
        match self.commit(Change::of(Write::Books(Box::new(new.clone())))).await.map_err(ServiceError::from) {
            Ok(()) => Ok(new.clone()),
            Err(ServiceError::Overdrawn) => Err(invalid("these are more fees than the workspace's payments brought")),
            Err(error) => Err(error),
        }
    }
}
