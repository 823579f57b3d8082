//! The payment gateways: the sandbox, a mobile-money gateway, a card processor.
//!
//! What a browser or a webhook reports is only a reason to query the gateway. Each implementation maps its gateway's
//! response to one [`Standing`], and to [`Standing::Disputed`] if it contradicts the payment. The service changes payments
//! by that alone.

mod bkash;
mod call;
mod circuit;
mod contract;
mod credentials;
mod error;
mod proxy;
mod sandbox;
mod sealed;
mod stripe;

use std::{sync::Arc, time::Duration};

use payments_core::{Currency, Environment};
use secrecy::SecretString;

use self::{call::GatewayClient, proxy::GatewayProxy};
use crate::{ambient::Ambient, domain::GatewayName, metrics::GatewayCalls, store::Store};

pub(crate) use contract::{Begun, Captured, Gateway, Order, RefundOrder, RefundWay, Standing};
pub(crate) use credentials::{CREDENTIALS, CredentialError, Credentials};
pub(crate) use error::{GatewayError, GatewaySetupError};
pub(crate) use stripe::{EventAbout, EventFault, RefundFault, Stripe, StripeEvent};

/// The gateways of this server.
pub(crate) struct Gateways {
    sandbox: Arc<dyn Gateway>,
    bkash: Option<Arc<dyn Gateway>>,
    stripe: Option<Arc<Stripe>>,
}

impl Gateways {
    /// The gateways with credentials, and the sandbox, which needs none.
    pub(crate) fn new(
        credentials: Credentials,
        store: &Arc<dyn Store>,
        ambient: &Arc<dyn Ambient>,
        timeout: Duration,
        proxy: Option<SecretString>,
        calls: &GatewayCalls,
    ) -> Result<Self, GatewaySetupError> {
        let proxy = proxy.map(GatewayProxy::new).transpose()?;
        let client = |name| GatewayClient::new(name, timeout, proxy.as_ref(), calls.clone());
        let bkash = credentials.bkash.map(|bkash| -> Result<_, GatewaySetupError> {
            bkash::Bkash::new(bkash, client(GatewayName::Bkash)?, Arc::clone(store), Arc::clone(ambient))
        });
        let stripe = credentials
            .stripe
            .map(|stripe| -> Result<_, GatewaySetupError> { Stripe::new(stripe, client(GatewayName::Stripe)?) });
        let stripe = stripe.transpose()?;
        Ok(Self {
            sandbox: Arc::new(sandbox::Sandbox),
            bkash: bkash.transpose()?.map(|bkash| Arc::new(bkash) as Arc<dyn Gateway>),
            stripe: stripe.map(Arc::new),
        })
    }

    /// Only the sandbox, for commands that take no payments.
    pub(crate) fn none() -> Self {
        Self { sandbox: Arc::new(sandbox::Sandbox), bkash: None, stripe: None }
    }

    /// The gateway for payments of this environment and currency.
    pub(crate) fn of(&self, environment: Environment, currency: Currency) -> Option<Arc<dyn Gateway>> {
        match (environment, currency) {
            (Environment::Test, _) => Some(Arc::clone(&self.sandbox)),
            (Environment::Live, Currency::Bdt) => self.bkash.clone(),
            (Environment::Live, Currency::Usd) => self.stripe.clone().map(|stripe| stripe as Arc<dyn Gateway>),
        }
    }

    /// The gateway of that name. `None` if this server has no credentials for it.
    pub(crate) fn named(&self, name: GatewayName) -> Option<Arc<dyn Gateway>> {
        match name {
            GatewayName::Sandbox => Some(Arc::clone(&self.sandbox)),
            GatewayName::Bkash => self.bkash.clone(),
            GatewayName::Stripe => self.stripe.clone().map(|stripe| stripe as Arc<dyn Gateway>),
        }
    }

    /// The card processor, which verifies its own events.
    pub(crate) fn card_processor(&self) -> Result<&Stripe, EventFault> {
        self.stripe.as_deref().ok_or(EventFault::NoProcessor)
    }
}
