//! Whoever takes a customer's money: the sandbox, a mobile-money gateway, a card processor.
//!
//! A gateway is asked, never believed by hearsay: what a browser or a webhook brings back is a hint to look. Each
//! implementation turns what its gateway says into one [`Standing`], and into [`Standing::Disputed`] whatever does not
//! fit the payment; the service moves payments by that alone.

mod bkash;
mod call;
mod circuit;
mod credentials;
mod proxy;
mod sandbox;
mod sealed;
mod stripe;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use payments_core::{Amount, Currency, Environment, Payment, PaymentMethod, SimulateOutcome, Timestamp};
use secrecy::SecretString;

use self::{call::Line, proxy::GatewayProxy};
use crate::{
    ambient::Ambient,
    domain::{Attempt, GatewayName},
    metrics::GatewayCalls,
    store::Store,
};

pub(crate) use credentials::{CREDENTIALS, CredentialError, Credentials};
pub(crate) use stripe::{EventAbout, EventFault, RefundFault, Stripe, StripeEvent};

/// Where the customer of a new attempt goes.
#[derive(Debug)]
pub(crate) enum Begun {
    /// To the gateway's page.
    SendTo { external_id: String, customer_url: String },
    /// Nowhere: no money is to move, and the payment ends so.
    Simulated(SimulateOutcome),
}

/// What an attempt is begun with.
#[derive(Debug)]
pub(crate) struct Order<'o> {
    pub(crate) payment: &'o Payment,
    /// Unique among all attempts.
    pub(crate) invoice: &'o str,
    /// Who is paid, as the customer reads it.
    pub(crate) merchant_name: &'o str,
    /// Where the gateway sends the customer back to.
    pub(crate) return_url: &'o str,
    /// The wallet's number, if the customer gave it.
    pub(crate) phone: Option<&'o str>,
    /// When the checkout session's life ends.
    pub(crate) expires_at: Timestamp,
    /// The present time.
    pub(crate) now: Timestamp,
}

/// How an attempt stands, as the gateway itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The customer has not approved it yet.
    Open,
    /// The customer has approved it; the money moves once it is taken.
    Approved,
    /// The gateway has yet to decide.
    Pending,
    /// The money was taken: this payment's, in its amount and currency.
    Paid { transaction: String },
    /// It came to nothing.
    Failed,
    /// The customer gave up, or the attempt was closed unpaid.
    Cancelled,
    /// The gateway tells of money that does not fit this payment. A person must look.
    Disputed { what: String },
}

/// What came of telling a gateway to take the money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It says how the attempt stands now.
    Stands(Standing),
    /// It says something of which only a look tells what it means.
    Unclear,
    /// It did not take the money this time. The attempt ended so, unless a look tells of an earlier time that it did.
    Refused(Standing),
}

/// How a gateway's payments are refunded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefundWay {
    /// The gateway sends the money back.
    Gateway,
    /// A person does, and records it.
    ByHand,
}

/// Takes customers' money.
#[async_trait]
pub(crate) trait Gateway: Send + Sync {
    fn name(&self) -> GatewayName;
    /// The way to pay that leads here.
    fn method(&self) -> PaymentMethod;
    /// Opens an attempt. Until its answer was kept, no customer is sent to it.
    async fn begin(&self, order: &Order<'_>) -> Result<Begun, GatewayError>;
    /// Asks how an attempt stands. Moves nothing.
    async fn look(&self, payment: &Payment, attempt: &Attempt) -> Result<Standing, GatewayError>;
    /// Whether the money moves only when it is [taken](Self::take) after the customer's approval.
    fn takes(&self) -> bool;
    /// Takes the money of an attempt that the customer approved.
    async fn take(&self, payment: &Payment, attempt: &Attempt) -> Result<Taken, GatewayError>;
    /// Sees to it that an open attempt can no longer be paid, and says how it stands then.
    async fn close(&self, payment: &Payment, attempt: &Attempt) -> Result<Standing, GatewayError>;
    /// How refunds go.
    fn refund_way(&self) -> RefundWay;
    /// Sends the money back, once, however often it is asked under the refund's id.
    async fn refund(&self, payment: &Payment, attempt: &Attempt, refund: &RefundOrder<'_>) -> Result<(), GatewayError>;
}

/// What a refund is asked for with.
#[derive(Debug)]
pub(crate) struct RefundOrder<'r> {
    /// The refund's id: the idempotency key at the gateway.
    pub(crate) id: &'r str,
    pub(crate) reason: Option<&'r str>,
}

/// A gateway did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GatewayError {
    /// Nobody knows whether it was done: no answer, half an answer, a server error. It must be asked again.
    #[error("{gateway} did not answer: {what}", gateway = gateway.title())]
    Unanswered { gateway: GatewayName, what: String },
    /// It was not done, and the gateway says why.
    #[error("{gateway} refused: {message} (code {code})", gateway = gateway.title())]
    Refused { gateway: GatewayName, code: String, message: String },
    /// It was not even asked, because it has not answered for a while.
    #[error("{gateway} has not answered for a while; it is asked again in a moment", gateway = gateway.title())]
    CircuitOpen { gateway: GatewayName },
}

/// A gateway cannot be set up with what it was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewaySetupError {
    #[error("the connection to the gateways cannot be prepared: {0}")]
    Client(#[from] reqwest::Error),
    #[error("PAYMENTS_STRIPE_WEBHOOK_SECRET cannot be used: {0}")]
    WebhookSecret(#[from] webhook_verify::SecretError),
    #[error(transparent)]
    Proxy(#[from] proxy::ProxyAddressError),
    #[error("PAYMENTS_BKASH_APP_SECRET cannot be made a key")]
    Seal,
}

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

/// Whether what a gateway calls the amount is the amount of this payment.
fn is_amount(payment: &Payment, currency: &str, amount: Option<Amount>) -> bool {
    amount == Some(payment.amount) && currency.eq_ignore_ascii_case(payment.currency.code())
}
