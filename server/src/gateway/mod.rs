//! Whoever takes a customer's money: the sandbox, a mobile-money gateway, a card processor.
//!
//! A gateway is asked, never believed by hearsay: what a browser or a webhook brings back is a hint to look. Each
//! implementation turns what its gateway says into one [`Standing`], and into [`Standing::Disputed`] whatever does not
//! fit the payment; the service moves payments by that alone.

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

use self::{call::Line, proxy::GatewayProxy};
use crate::{ambient::Ambient, domain::GatewayName, metrics::GatewayCalls, store::Store};

pub(crate) use contract::{Begun, Captured, Gateway, Order, RefundOrder, RefundWay, Standing};
pub(crate) use credentials::{CREDENTIALS, CredentialError, Credentials};
pub(crate) use error::{GatewayError, GatewaySetupError};
pub(crate) use stripe::{EventAbout, EventFault, RefundFault, Stripe, StripeEvent};

/// The gateways that this server was given.
pub(crate) struct Gateways {
    sandbox: Arc<dyn Gateway>,
    bkash: Option<Arc<dyn Gateway>>,
    stripe: Option<Arc<Stripe>>,
}

impl Gateways {
    /// Those that there are credentials for; the sandbox needs none.
    pub(crate) fn new(
        credentials: Credentials,
        store: &Arc<dyn Store>,
        ambient: &Arc<dyn Ambient>,
        timeout: Duration,
        proxy: Option<SecretString>,
        calls: &GatewayCalls,
    ) -> Result<Self, GatewaySetupError> {
        let proxy = proxy.map(GatewayProxy::new).transpose()?;
        let line = |name| Line::new(name, timeout, proxy.as_ref(), calls.clone());
        let bkash = credentials.bkash.map(|bkash| -> Result<_, GatewaySetupError> {
            bkash::Bkash::new(bkash, line(GatewayName::Bkash)?, Arc::clone(store), Arc::clone(ambient))
        });
        let stripe = credentials
            .stripe
            .map(|stripe| -> Result<_, GatewaySetupError> { Stripe::new(stripe, line(GatewayName::Stripe)?) });
        let stripe = stripe.transpose()?;
        Ok(Self {
            sandbox: Arc::new(sandbox::Sandbox),
            bkash: bkash.transpose()?.map(|bkash| Arc::new(bkash) as Arc<dyn Gateway>),
            stripe: stripe.map(Arc::new),
        })
    }

    /// Only the sandbox: for a command line that takes no payments.
    pub(crate) fn none() -> Self {
        Self { sandbox: Arc::new(sandbox::Sandbox), bkash: None, stripe: None }
    }

    /// Who takes the money of a payment in this environment and currency.
    pub(crate) fn of(&self, environment: Environment, currency: Currency) -> Option<Arc<dyn Gateway>> {
        match (environment, currency) {
            (Environment::Test, _) => Some(Arc::clone(&self.sandbox)),
            (Environment::Live, Currency::Bdt) => self.bkash.clone(),
            (Environment::Live, Currency::Usd) => self.stripe.clone().map(|stripe| stripe as Arc<dyn Gateway>),
        }
    }

    /// Where an attempt was made. `None` if this server is no longer given that gateway.
    pub(crate) fn named(&self, name: GatewayName) -> Option<Arc<dyn Gateway>> {
        match name {
            GatewayName::Sandbox => Some(Arc::clone(&self.sandbox)),
            GatewayName::Bkash => self.bkash.clone(),
            GatewayName::Stripe => self.stripe.clone().map(|stripe| stripe as Arc<dyn Gateway>),
        }
    }

    /// The card processor, which judges its own events.
    pub(crate) fn card_processor(&self) -> Result<&Stripe, EventFault> {
        self.stripe.as_deref().ok_or(EventFault::NoProcessor)
    }
}
