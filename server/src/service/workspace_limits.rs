//! The limits of a workspace: the operator sets them, and its account shows them.

use std::collections::BTreeMap;

use payments_core::{AccountLimits, Amount, Currency, LimitInEachCurrency, UnknownFields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Directory, Result, ServiceError, operator_text::invalid, retry_on_conflict};
use crate::{
    domain::{Edit, Limits, LimitsChange, Workspace},
    store::{Change, Write},
};

/// Sets limits of a workspace, and shows all. Without a change it only shows them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsRequest {
    pub workspace: String,
    /// Amounts in major units, or `none`.
    #[serde(default)]
    pub payment_at_most: BTreeMap<Currency, String>,
    #[serde(default)]
    pub day_at_most: BTreeMap<Currency, String>,
    #[serde(default)]
    pub payments_a_minute: Option<Edit<u32>>,
    #[serde(default)]
    pub keys: Option<Edit<u32>>,
    #[serde(default)]
    pub endpoints: Option<Edit<u32>>,
}

/// The limits of a workspace, with amounts in major units.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsRow {
    pub payment_at_most: BTreeMap<Currency, String>,
    pub day_at_most: BTreeMap<Currency, String>,
    pub payments_a_minute: Option<u32>,
    pub keys: Option<u32>,
    pub endpoints: Option<u32>,
}

impl From<Limits> for LimitsRow {
    fn from(limits: Limits) -> Self {
        let Limits { payment_at_most, day_at_most, payments_a_minute, keys, endpoints } = limits;
        let [payment_at_most, day_at_most] = [payment_at_most, day_at_most]
            .map(|amounts| amounts.into_iter().map(|(currency, it)| (currency, it.to_string())).collect());
        Self { payment_at_most, day_at_most, payments_a_minute, keys, endpoints }
    }
}

impl LimitsRequest {
    fn change(&self) -> Result<LimitsChange> {
        let amounts = |texts: &BTreeMap<Currency, String>| {
            let edit = |(currency, text): (&Currency, &String)| match text.parse() {
                Ok(Edit::Set(Amount::ZERO)) => Err(too_small()),
                Ok(edit) => Ok((*currency, edit)),
                Err(error) => Err(invalid(format!("{text} is no limit in {currency}: {error}"))),
            };
            texts.iter().map(edit).collect::<Result<_>>()
        };
        let Self { payments_a_minute, keys, endpoints, .. } = self.clone();
        if [&payments_a_minute, &keys, &endpoints].into_iter().flatten().any(|it| *it == Edit::Set(0)) {
            return Err(too_small());
        }
        let (payment_at_most, day_at_most) = (amounts(&self.payment_at_most)?, amounts(&self.day_at_most)?);
        Ok(LimitsChange { payment_at_most, day_at_most, payments_a_minute, keys, endpoints })
    }
}

fn too_small() -> ServiceError {
    invalid("a limit must be above zero; `none` removes it")
}

impl Directory {
    pub(super) async fn limits(&self, request: LimitsRequest) -> Result<Limits> {
        let (workspace, change) = (&request.workspace, &request.change()?);
        retry_on_conflict(|| async {
            let mut workspace = self.named_workspace(workspace).await?;
            if *change == LimitsChange::default() {
                return Ok(workspace.limits);
            }
            workspace.version += 1;
            workspace.limits.apply(change);
            self.commit(Change::of(Write::Workspace(workspace.clone()))).await?;
            Ok(workspace.limits)
        })
        .await
    }

    /// Refuses a new API key beyond the workspace's limit. Returns a write that no other new key of the workspace passes.
    pub(super) async fn room_for_key(&self, workspace: &Workspace) -> Result<Option<Write>> {
        let Some(at_most) = workspace.limits.keys else { return Ok(None) };
        let now = self.ambient.now();
        let keys = self.store.api_keys_of(&workspace.id).await?;
        let working = keys.iter().filter(|(_, key)| {
            key.revoked_at.is_none() && key.replaced_by.is_none() && key.expires_at.is_none_or(|at| at > now)
        });
        if working.count() >= usize::try_from(at_most).unwrap_or(usize::MAX) {
            return Err(ServiceError::TooManyKeys { at_most });
        }
        Ok(Some(Write::Workspace(Workspace { version: workspace.version + 1, ..workspace.clone() })))
    }
}

/// The limits as the account shows them; `None` without any.
pub(super) fn shown(limits: &Limits) -> Option<AccountLimits> {
    let in_each = |amounts: &BTreeMap<Currency, _>| LimitInEachCurrency {
        bdt: amounts.get(&Currency::Bdt).copied(),
        usd: amounts.get(&Currency::Usd).copied(),
        unknown: UnknownFields::new(),
    };
    (!limits.is_empty()).then(|| AccountLimits {
        payment_at_most: in_each(&limits.payment_at_most),
        day_at_most: in_each(&limits.day_at_most),
        payments_a_minute: limits.payments_a_minute,
        keys: limits.keys,
        endpoints: limits.endpoints,
        unknown: UnknownFields::new(),
    })
}
