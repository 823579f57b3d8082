//! The payment gateways: each in a folder of its own, and the sandbox.
//!
//! A report of a browser or a notice is only a reason to query the gateway. Each implementation maps its gateway's response
//! to one [`AttemptState`], and to [`AttemptState::Discrepancy`] if it contradicts the payment. The service changes payments
//! only by that state.
//!
//! To add a gateway, write its folder and add its line to the [`REGISTRY`].

mod answer;
mod bkash;
mod call;
mod circuit;
mod contract;
mod decimal;
mod declaration;
mod error;
mod health;
#[cfg(test)]
mod invented;
mod notice;
mod parts;
mod probe;
mod proxy;
mod reference;
mod returns;
mod sandbox;
mod settings;
mod sslcommerz;
mod statement_columns;
mod stripe;

use std::{sync::Arc, time::Duration};

use payments_core::{
    Amount, CreatePayment, Currency, Environment, ErrorCode, Invalid, Payment, PaymentMethod, UnknownCurrency,
};
use secrecy::SecretString;
use tokio_util::task::TaskTracker;

use self::{
    call::{GatewayClient, Network},
    health::Health,
    parts::{Make, Parts},
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
    AttemptRequest, AttemptState, BeginOutcome, CaptureOutcome, Gateway, KnownRefund, Listed, Receipt, RefundOutcome,
    RefundRequest, StatementPart,
};
pub use declaration::{AmountLimits, CustomerField, Declaration, GatewayList, RefundWay, Way, Words, each_once};
pub use error::{GatewayError, GatewaySetupError};
pub use notice::{Notice, NoticeError, NoticeSubject, PaymentOf};
pub use probe::{Probe, probe};
pub use proxy::GatewayProxy;
pub use returns::{Hint, Return};
pub use settings::{Credentials, variable};
pub use statement_columns::{PLAIN, StatementColumns};

/// All gateways that a server can have, in the order in which customers see them.
static REGISTRY: &[(&Declaration, Make)] = &[
    (&bkash::DECLARED, |parts| Ok(Box::new(bkash::Bkash::new(parts)))),
    (&stripe::DECLARED, |parts| Ok(Box::new(stripe::Stripe::new(parts)?))),
    (&sslcommerz::DECLARED, |parts| Ok(Box::new(sslcommerz::SslCommerz::new(parts)))),
    #[cfg(test)]
    (&invented::DECLARED, |parts| Ok(Box::new(invented::Invented::new(parts)))),
];

/// What the gateways of the registry declare.
pub fn registry() -> impl Iterator<Item = &'static Declaration> {
    REGISTRY.iter().map(|(declared, _)| *declared)
}

/// The gateway of test payments.
pub const SANDBOX: GatewayName = GatewayName::of("sandbox");

pub use sandbox::WAY as SANDBOX_WAY;

/// What the gateway of a name declares; `None` for one that moves no money.
pub fn declared(name: &str) -> Option<&'static Declaration> {
    registry().find(|it| it.name.as_str() == name)
}

/// Whether a word names a way to pay at a gateway of the registry.
pub fn is_way(word: &str) -> bool {
    registry().any(|it| it.ways.iter().any(|way| way.is_named(word)))
}

/// What a code of a gateway's errors means.
pub fn meaning(gateway: GatewayName, code: &str) -> Option<Words> {
    declared(gateway.as_str())?.meaning(code)
}

/// A gateway's name in messages to people.
pub fn title(gateway: GatewayName) -> &'static str {
    match declared(gateway.as_str()) {
        Some(declared) => declared.title,
        None if gateway == SANDBOX => "the simulator",
        None => "a gateway that this version does not know",
    }
}

/// A gateway and a way to pay there.
#[derive(Clone, Copy)]
pub struct Offer<'g> {
    pub gateway: &'g dyn Gateway,
    pub way: &'static Way,
}

/// The configured gateways and their health, in the order of the registry.
pub struct Gateways(Vec<(Box<dyn Gateway>, Arc<Health>)>);

impl Gateways {
    /// The gateways with credentials. A call may take `timeout`.
    pub fn new(
        credentials: &Credentials,
        store: &Arc<Store>,
        ambient: &Arc<dyn Ambient>,
        timeout: Duration,
        proxy: Option<SecretString>,
        calls: &GatewayCalls,
        tasks: &TaskTracker,
    ) -> Result<Self, GatewaySetupError> {
        let proxy = proxy.map(GatewayProxy::new).transpose()?;
        if credentials.configured().next().is_none() {
            return Ok(Self::none());
        }
        let http = call::client(timeout, proxy.as_ref())?;
        let transport = |_| -> Box<dyn Transport> { Box::new(Network(http.clone())) };
        Self::by(credentials, store, ambient, &http, transport, calls, tasks)
    }

    /// The gateways, with these transports for their requests.
    pub fn by(
        credentials: &Credentials,
        store: &Arc<Store>,
        ambient: &Arc<dyn Ambient>,
        http: &reqwest::Client,
        transport: impl Fn(&'static str) -> Box<dyn Transport>,
        calls: &GatewayCalls,
        tasks: &TaskTracker,
    ) -> Result<Self, GatewaySetupError> {
        let make = |(declared, make, settings): (&'static Declaration, Make, &settings::Settings)| {
            let health = Arc::<Health>::default();
            let transport = transport(declared.name.as_str());
            let gateway = make(Parts {
                settings: settings.clone(),
                client: GatewayClient::by(declared, http.clone(), transport, Arc::clone(&health), calls.clone()),
                store: Arc::clone(store),
                ambient: Arc::clone(ambient),
                tasks: tasks.clone(),
            })?;
            Ok((gateway, health))
        };
        let configured = REGISTRY
            .iter()
            .filter_map(|(declared, make)| Some((*declared, *make, credentials.settings_of(declared.name)?)));
        configured.map(make).collect::<Result<_, _>>().map(Self)
    }

    /// Only the sandbox, which moves no money.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    #[cfg(test)]
    pub fn of(gateway: impl Gateway + 'static) -> Self {
        Self(vec![(Box::new(gateway), Arc::default())])
    }

    pub fn each(&self) -> impl Iterator<Item = &dyn Gateway> {
        self.0.iter().map(|(gateway, _)| &**gateway)
    }

    /// Each gateway with its health.
    pub fn with_health(&self) -> impl Iterator<Item = (&'static Declaration, &Health)> {
        self.0.iter().map(|(gateway, health)| (gateway.declared(), &**health))
    }

    /// The ways to pay in this environment and currency, the preferred one first.
    pub fn ways(&self, environment: Environment, currency: Currency) -> Vec<Offer<'_>> {
        match environment {
            Environment::Test => vec![Offer { gateway: &Sandbox, way: &sandbox::WAY }],
            _ => {
                let offers = self
                    .each()
                    .flat_map(|gateway| gateway.declared().ways.iter().map(move |way| Offer { gateway, way }));
                offers.filter(|offer| offer.way.limits_in(currency).is_some()).collect()
            }
        }
    }

    /// The ways to pay a payment: those that take its amount, of those that the merchant named for it, and that its workspace
    /// has, in the workspace's order.
    pub fn ways_of(&self, payment: &Payment, of_workspace: &[String]) -> Vec<Offer<'_>> {
        let mut offers = self.ways(payment.environment, payment.currency);
        if payment.is_simulated {
            return offers;
        }
        offers.retain(|it| it.way.takes(payment.amount, payment.currency));
        offers.retain(|it| payment.ways.as_ref().is_none_or(|named| named.iter().any(|name| it.way.is_named(name))));
        let place = |it: &Offer<'_>| of_workspace.iter().position(|name| it.way.name == name);
        offers.retain(|it| of_workspace.is_empty() || place(it).is_some());
        offers.sort_by_key(place);
        offers
    }

    /// Refuses an amount that no way to pay takes. Test payments have the limits of live ones, so that an amount that works in
    /// the sandbox also works live: those of the configured gateways, or else of all in the registry.
    pub fn check_amount(&self, amount: Amount, currency: Currency) -> Result<(), Invalid> {
        let limits = |declared: &'static Declaration| {
            declared.ways.iter().filter_map(move |way| Some((declared.title, way.limits_in(currency)?)))
        };
        let mut found: Vec<_> = self.each().flat_map(|gateway| limits(gateway.declared())).collect();
        if found.is_empty() {
            found = registry().flat_map(limits).collect();
        }
        if found.iter().any(|(_, AmountLimits { least, most })| (*least..=*most).contains(&amount)) {
            return Ok(());
        }
        let Some(least) = found.iter().map(|(_, limits)| limits.least).min() else {
            return Err(Invalid::field("currency", ErrorCode::CurrencyInvalid, UnknownCurrency));
        };
        let most = found.iter().map(|(_, limits)| limits.most).max().unwrap_or(least);
        let titles = each_once(found.iter().map(|(title, _)| *title)).join(" and ");
        let error = format!("must be from {least} to {most} in {currency}, the limits of {titles}");
        Err(Invalid::field("amount", ErrorCode::AmountInvalid, error))
    }

    /// Refuses names of ways to pay that nothing has, or by which this live payment cannot be paid.
    pub fn check_ways(
        &self,
        named: &[String],
        params: &CreatePayment,
        environment: Environment,
    ) -> Result<(), Invalid> {
        let refuse = |error: String| Err(Invalid::field("ways", ErrorCode::PaymentMethodInvalid, error));
        if let Some(unknown) = named.iter().find(|name| !is_way(name) && PaymentMethod::known(name).is_none()) {
            return refuse(format!("names no way to pay with {unknown}"));
        }
        let offers = self.ways(environment, params.currency);
        let fits = |it: &Offer<'_>| {
            it.way.takes(params.amount, params.currency) && named.iter().any(|name| it.way.is_named(name))
        };
        if environment == Environment::Test || offers.iter().any(fits) {
            return Ok(());
        }
        let names: Vec<_> = offers.iter().map(|it| it.way.name).collect();
        refuse(format!("must name one that takes this amount in {}, of {}", params.currency, names.join(", ")))
    }

    /// The gateway of that name. `None` if this server has no credentials for it.
    pub fn named(&self, name: GatewayName) -> Option<&dyn Gateway> {
        if name == SANDBOX {
            return Some(&Sandbox);
        }
        self.each().find(|gateway| gateway.name() == name)
    }

    /// Who sends the refunds of a gateway's payments. `None` if only the gateway could, and this server has no credentials for
    /// it.
    pub fn refund_way(&self, name: GatewayName) -> Option<RefundWay> {
        let configured = self.named(name).map(Gateway::refund_way);
        configured.or_else(|| declared(name.as_str()).map(|it| it.refunds).filter(|way| *way == RefundWay::Manual))
    }

    /// The gateway of an attempt. Without its credentials, the error says that nobody answers.
    pub fn of_attempt(&self, attempt: &GatewayAttempt) -> Result<&dyn Gateway, GatewayError> {
        let gateway = attempt.gateway;
        self.named(gateway).ok_or_else(|| {
            let what = "this server has no credentials for it".to_owned();
            GatewayError::Unanswered { gateway, what, was_sent: false }
        })
    }
}

/// The way to pay that a customer chose by the name of the way or by the specification's word for its kind. Without a word it
/// is the first; so it is with `mfs`, the documented default, if no way is of that kind.
pub fn chosen<'g>(offers: &[Offer<'g>], word: Option<&PaymentMethod>) -> Option<Offer<'g>> {
    let is_of = |word: &PaymentMethod| offers.iter().find(|it| it.way.is_named(word.as_str()));
    let word = word.unwrap_or(&PaymentMethod::Mfs);
    let instead = offers.first().filter(|_| *word == PaymentMethod::Mfs);
    is_of(word).or(instead).copied()
}

#[cfg(test)]
mod tests;
