//! Pauses of gateways: customers cannot choose one that is paused. Attempts that are open there are still queried.

use futures_util::future::try_join_all;
use payments_core::{Payment, RawStatus, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Directory, Result, Service, operator_text::invalid, retry_on_conflict};
use crate::{
    domain::{GatewayName, GatewayPause},
    gateway::{self, GatewayError, Gateways, Offer, registry},
    store::{Change, Write},
};

/// A command about gateways.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum GatewayRequest {
    /// Lists all gateways of the registry.
    List,
    /// Pauses a gateway until a time, or ends its pause.
    Pause { gateway: GatewayName, until: Option<Timestamp> },
    /// Fetches the token that a gateway's calls need, unless there is a valid one.
    Token { gateway: GatewayName },
}

/// The answer to a [`GatewayRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum GatewayReply {
    Rows { rows: Vec<GatewayRow> },
    Paused { gateway: GatewayName, paused_until: Timestamp },
    Token { token_until: Timestamp },
}

/// A gateway, as `gateways list` shows it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayRow {
    pub gateway: GatewayName,
    pub title: String,
    pub ways: Vec<String>,
    /// How the running server sees it; `None` if it has no credentials for it.
    pub health: Option<GatewayHealth>,
    pub paused_until: Option<Timestamp>,
}

/// How a gateway answered a server in the last hour.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayHealth {
    pub answered: u64,
    pub unanswered: u64,
    /// Whether the circuit breaker holds calls back.
    pub is_held_back: bool,
}

impl Service {
    /// The ways to pay a payment now. If all are paused, the error names the pause that ends first.
    pub(super) async fn offers(&self, payment: &Payment, of_workspace: &[String]) -> Result<Vec<Offer<'_>>> {
        let all = self.gateways.ways_of(payment, of_workspace);
        // Nobody chooses a way of another payment, whose page asks for it again and again.
        let may_be_paid = matches!(payment.raw_status, RawStatus::Created | RawStatus::Pending);
        if payment.is_simulated || !may_be_paid {
            return Ok(all);
        }
        let until = try_join_all(all.iter().map(|offer| self.directory.paused_until(offer.gateway.name()))).await?;
        let first = all.iter().zip(&until).filter_map(|(offer, until)| Some(((*until)?, offer.gateway.name())));
        let first = first.min_by_key(|(until, _)| *until);
        let offers: Vec<_> = all.iter().zip(&until).filter(|(_, until)| until.is_none()).map(|(it, _)| *it).collect();
        match first {
            Some((until, gateway)) if offers.is_empty() => Err(GatewayError::Paused { gateway, until }.into()),
            _ => Ok(offers),
        }
    }
}

impl Directory {
    async fn paused_until(&self, gateway: GatewayName) -> Result<Option<Timestamp>> {
        let pause = self.store.gateway_pause(gateway).await?;
        Ok(pause.map(|pause| pause.until).filter(|until| *until > self.ambient.now()))
    }

    pub(super) async fn of_gateways(&self, gateways: &Gateways, request: GatewayRequest) -> Result<GatewayReply> {
        Ok(match request {
            GatewayRequest::List => GatewayReply::Rows { rows: self.list_gateways(gateways).await? },
            GatewayRequest::Pause { gateway, until } => {
                let pause = self.pause_gateway(gateway, until).await?;
                GatewayReply::Paused { gateway, paused_until: pause.until }
            }
            GatewayRequest::Token { gateway } => {
                let gateway = gateways.named(gateway).ok_or_else(|| {
                    let title = gateway::title(gateway);
                    invalid(format!("the running server has no credentials of {title}; restart it with them"))
                })?;
                let until = gateway.token_valid_until().await;
                let until = until.ok_or_else(|| invalid("its calls need no token".to_owned()))?;
                GatewayReply::Token { token_until: until? }
            }
        })
    }

    async fn list_gateways(&self, gateways: &Gateways) -> Result<Vec<GatewayRow>> {
        let mut rows = Vec::new();
        for declared in registry() {
            let health = gateways.with_health().find(|(it, _)| it.name == declared.name).map(|(_, health)| {
                let (answered, unanswered) = health.last_hour();
                GatewayHealth { answered, unanswered, is_held_back: health.is_held_back() }
            });
            rows.push(GatewayRow {
                gateway: declared.name,
                title: declared.title.to_owned(),
                ways: declared.ways.iter().map(|way| way.name.to_owned()).collect(),
                health,
                paused_until: self.paused_until(declared.name).await?,
            });
        }
        Ok(rows)
    }

    /// Pauses a gateway until a time, or ends its pause.
    async fn pause_gateway(&self, gateway: GatewayName, until: Option<Timestamp>) -> Result<GatewayPause> {
        let now = self.ambient.now();
        if until.is_some_and(|until| until <= now) {
            return Err(invalid("this time has passed; name a later one"));
        }
        retry_on_conflict(|| async {
            let version = self.store.gateway_pause(gateway).await?.map_or(0, |known| known.version + 1);
            let pause = GatewayPause { version, gateway, until: until.unwrap_or(now) };
            self.commit(Change::of(Write::GatewayPause(Box::new(pause.clone())))).await?;
            Ok(pause)
        })
        .await
    }
}
