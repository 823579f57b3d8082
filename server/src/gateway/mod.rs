//! The payment gateways: the sandbox, a mobile-money gateway, a card processor.
//!
//! A report of a browser or a webhook is only a reason to query the gateway. Each implementation maps its gateway's response
//! to one [`AttemptState`], and to [`AttemptState::Discrepancy`] if it contradicts the payment. The service changes payments
//! only by that state.

mod answer;
mod bkash;
mod call;
mod circuit;
mod contract;
mod credentials;
mod error;
mod probe;
mod proxy;
mod sandbox;
mod stripe;

use std::{sync::Arc, time::Duration};

use payments_core::{Amount, Currency, Environment, ErrorCode, Invalid, Timestamp, UnknownCurrency};
use secrecy::SecretString;
use tokio_util::task::TaskTracker;

use self::{
    bkash::Bkash,
    call::{GatewayClient, Network},
    contract::AmountLimits,
    sandbox::Sandbox,
};
use crate::{
    ambient::Ambient,
    domain::{GatewayAttempt, GatewayName},
    metrics::GatewayCalls,
    store::Store,
};

pub use answer::Rejection;
pub use call::Transport;
#[cfg(feature = "simulation")]
pub use call::{NoResponse, Response};
pub use contract::{
    AttemptRequest, AttemptState, BeginOutcome, CaptureOutcome, Gateway, GatewayList, Listed, RefundOutcome,
    RefundRequest, RefundWay, StatementPart,
};
pub use credentials::{CREDENTIALS, Credentials};
pub use error::{GatewayError, GatewaySetupError};
pub use probe::{Probe, probe};
pub use proxy::GatewayProxy;
pub use stripe::{EventError, EventSubject, PaymentOf, Stripe, StripeEvent};

/// The gateway of live payments in a currency, and the amounts that it takes.
const fn live_gateway(currency: Currency) -> Option<(GatewayName, AmountLimits)> {
    match currency {
        Currency::Bdt => Some((GatewayName::Bkash, bkash::LIMITS)),
        Currency::Usd => Some((GatewayName::Stripe, stripe::LIMITS)),
        Currency::Other(_) => None,
    }
}

/// Refuses an amount that the gateway of live payments does not take. Test payments have the same limits, so that an amount
/// that works in the sandbox also works live.
pub fn check_amount(amount: Amount, currency: Currency) -> Result<(), Invalid> {
    let Some((gateway, AmountLimits { least, most })) = live_gateway(currency) else {
        return Err(Invalid::field("currency", ErrorCode::CurrencyInvalid, UnknownCurrency));
    };
    if (least..=most).contains(&amount) {
        return Ok(());
    }
    let error = format!("must be from {least} to {most} in {currency}, the limits of {}", gateway.title());
    Err(Invalid::field("amount", ErrorCode::AmountInvalid, error))
}

pub struct Gateways {
    bkash: Option<Bkash>,
    stripe: Option<Stripe>,
}

impl Gateways {
    /// The gateways with credentials, and the sandbox, which needs none. A call may take `timeout`.
    pub fn new(
        credentials: Credentials,
        store: &Arc<Store>,
        ambient: &Arc<dyn Ambient>,
        timeout: Duration,
        proxy: Option<SecretString>,
        calls: &GatewayCalls,
        tasks: &TaskTracker,
    ) -> Result<Self, GatewaySetupError> {
        let proxy = proxy.map(GatewayProxy::new).transpose()?;
        if credentials.bkash.is_none() && credentials.stripe.is_none() {
            return Ok(Self::none());
        }
        let http = call::client(timeout, proxy.as_ref())?;
        let transport = |_| -> Box<dyn Transport> { Box::new(Network(http.clone())) };
        Self::by(credentials, store, ambient, &http, transport, calls, tasks)
    }

    /// The gateways, with these transports for their requests.
    pub fn by(
        credentials: Credentials,
        store: &Arc<Store>,
        ambient: &Arc<dyn Ambient>,
        http: &reqwest::Client,
        transport: impl Fn(GatewayName) -> Box<dyn Transport>,
        calls: &GatewayCalls,
        tasks: &TaskTracker,
    ) -> Result<Self, GatewaySetupError> {
        let client = |name| GatewayClient::by(name, http.clone(), transport(name), calls.clone());
        let bkash = |bkash| {
            let (store, ambient) = (Arc::clone(store), Arc::clone(ambient));
            Bkash::new(bkash, client(GatewayName::Bkash), store, ambient, tasks.clone())
        };
        let stripe = |stripe| Stripe::new(stripe, client(GatewayName::Stripe));
        Ok(Self { bkash: credentials.bkash.map(bkash), stripe: credentials.stripe.map(stripe).transpose()? })
    }

    /// Only the sandbox, which moves no money.
    pub fn none() -> Self {
        Self { bkash: None, stripe: None }
    }

    /// The gateway for payments of this environment and currency.
    pub fn of(&self, environment: Environment, currency: Currency) -> Option<&dyn Gateway> {
        self.named(match environment {
            Environment::Test => GatewayName::Sandbox,
            Environment::Live => live_gateway(currency)?.0,
            Environment::Other(_) => return None,
        })
    }

    /// The gateway of that name. `None` if this server has no credentials for it.
    pub fn named(&self, name: GatewayName) -> Option<&dyn Gateway> {
        match name {
            GatewayName::Sandbox => Some(&Sandbox),
            GatewayName::Bkash => self.bkash.as_ref().map(|bkash| bkash as &dyn Gateway),
            GatewayName::Stripe => self.stripe.as_ref().map(|stripe| stripe as &dyn Gateway),
        }
    }

    /// Until when the mobile-money gateway's token is valid; requests one if necessary. `None` without that gateway.
    pub async fn token_valid_until(&self) -> Option<Result<Timestamp, GatewayError>> {
        Some(self.bkash.as_ref()?.token_valid_until().await)
    }

    /// The gateway of an attempt. Without its credentials, the error says that nobody answers.
    pub fn of_attempt(&self, attempt: &GatewayAttempt) -> Result<&dyn Gateway, GatewayError> {
        let gateway = attempt.gateway;
        self.named(gateway).ok_or_else(|| {
            let what = "this server has no credentials for it".to_owned();
            GatewayError::Unanswered { gateway, what, was_sent: false }
        })
    }

    /// The card processor, which verifies its own events.
    pub fn card_processor(&self) -> Result<&Stripe, EventError> {
        self.stripe.as_ref().ok_or(EventError::NoProcessor)
    }
}
