//! Checkout sessions. Their routes need the session's id, not an API key.

use payments_core::{
    Amount, Cause, CheckoutSession, DemoCheckout, DemoSession, EventKind, Payment, PaymentId, PaymentMethod, RawStatus,
    Simulate, Simulation, Timestamp, WayToPay, aliased::UnknownFields,
};

use super::{Result, Service, ServiceError, payments::EventData, retry_on_conflict};
use crate::{
    domain::{Brand, Endpoint, Scope, owner_of},
    gateway::{self, Declaration, GatewayError, Way, Words, each_once},
    store::{Change, StoreError, Write},
};

const DEMO_TTL_SECONDS: u32 = 3600;

/// A checkout session, with fields that only the checkout page may show.
pub struct CheckoutView {
    pub session: CheckoutSession,
    /// The ways to pay, the preferred one first.
    pub ways: Vec<&'static Way>,
    pub brand: Brand,
    /// The merchant's reference, if the merchant gave one.
    pub order: Option<String>,
    /// How many seconds are left to pay; `None` if the session has expired.
    pub seconds_left: Option<i64>,
    pub receipt: Option<Receipt>,
    /// Why the last attempt failed, if the payment failed or waits for another one.
    pub why: Option<Words>,
    /// The shop's URL for the returning customer. It depends on the payment's status.
    pub return_url: String,
    /// The gateway's page, while the payment is processing.
    pub customer_url: Option<String>,
}

/// What the page shows only if the payment is paid.
pub struct Receipt {
    pub paid_at: Timestamp,
    /// The way by which it was paid, in English and Bangla.
    pub way: Option<Words>,
    /// The sum of all refunds and the time of the last one.
    pub refunded: Option<(Amount, Timestamp)>,
}

impl Receipt {
    fn of(payment: &Payment, gateway: Option<&Declaration>) -> Option<Self> {
        let last = payment.refunds.iter().rfind(|refund| refund.stands());
        let refunded = last.map(|last| (payment.amount_refunded(), last.created_at));
        let mut of_gateway = gateway.map_or(&[][..], |gateway| gateway.ways).iter();
        let of_gateway = of_gateway.find(|way| payment.payment_method.as_ref() == Some(&way.method));
        let way = of_gateway.map(|way| way.title).or_else(|| kind_of_way(payment.payment_method.as_ref()?));
        Some(Self { paid_at: payment.paid_at?, way, refunded })
    }
}

/// A kind of ways to pay, for a payment that a person recorded or that the simulator paid.
fn kind_of_way(method: &PaymentMethod) -> Option<Words> {
    match method {
        PaymentMethod::Mfs => Some(["Mobile money", "মোবাইল ব্যাংকিং"]),
        PaymentMethod::Card => Some(["Card", "কার্ড"]),
        PaymentMethod::Test => Some(gateway::SANDBOX_WAY.title),
        _ => None,
    }
}

fn way_to_pay(way: &Way) -> WayToPay {
    let [title, _] = way.title;
    WayToPay {
        name: way.name.to_owned(),
        method: way.method.clone(),
        title: title.to_owned(),
        unknown: UnknownFields::default(),
    }
}

impl Service {
    pub async fn checkout_view(&self, id: &str) -> Result<CheckoutView> {
        let session = self.session(id).await?;
        let now = self.ambient.now();
        let has_expired = self.expired(&session, now).is_some();
        let is_processing = session.payment.raw_status == RawStatus::Processing && session.expires_at > now;
        let return_url = session.return_url();
        let has_failed = match session.payment.raw_status {
            RawStatus::Pending => !has_expired,
            ref status => *status == RawStatus::Failed,
        };
        let failed = session.last_attempt().filter(|_| has_failed);
        let why = failed.and_then(|it| gateway::meaning(it.gateway, it.failure_code.as_deref()?));
        let paid_at = session.attempt.as_ref().map(|attempt| attempt.gateway);
        let attempt = session.attempt.filter(|_| is_processing);
        let millis_left = session.expires_at.as_millis() - now.as_millis();
        let seconds_left = (millis_left > 0).then_some((millis_left + 999) / 1000);
        let payment = session.payment;
        let gateway = paid_at.as_ref().and_then(|gateway| gateway::declared(gateway.as_str()));
        let receipt = Receipt::of(&payment, gateway);
        let workspace = self.directory.store.workspace_of(&owner_of(&payment.developer_id)).await?;
        let of_workspace = workspace.as_ref().map_or(&[][..], |workspace| &workspace.ways);
        let offers = match self.offers(&payment, of_workspace).await {
            Err(ServiceError::Gateway(GatewayError::Paused { .. })) => Vec::new(),
            offers => offers?,
        };
        let ways: Vec<_> = offers.iter().map(|offer| offer.way).collect();
        let payment_methods = each_once(ways.iter().map(|way| way.method.clone()));
        let order = Some(payment.merchant_transaction_id).filter(|reference| *reference != payment.id.as_str());
        let app = match &payment.app_id {
            Some(id) => self.directory.store.app(&owner_of(&payment.developer_id), id).await?,
            None => None,
        };
        let (app_name, brand) = app.map(|app| (app.app.name, app.brand)).unzip();
        let brand = brand.unwrap_or_default();
        let session = CheckoutSession {
            id: payment.id,
            amount: payment.amount,
            currency: payment.currency,
            description: payment.description,
            line_items: payment.line_items,
            customer_name: payment.customer.name,
            customer_email: payment.customer.email,
            customer_phone: payment.customer.phone,
            is_expired: has_expired || payment.raw_status == RawStatus::Expired,
            status: payment.raw_status,
            environment: payment.environment,
            merchant_name: workspace.as_ref().map(|workspace| workspace.name.clone()).unwrap_or_default(),
            app_name,
            app_logo_url: brand.logo_url.as_ref().map(|logo| logo.as_str().to_owned()),
            website: workspace.and_then(|workspace| workspace.website),
            // An app's website is a copy of its webhook URL, which customers should not see.
            website_url: None,
            is_simulated: payment.is_simulated,
            payment_methods,
            ways: Some(ways.iter().map(|way| way_to_pay(way)).collect()),
            success_url: payment.success_url,
            cancel_url: payment.cancel_url,
            expires_at: session.expires_at,
            unknown: UnknownFields::default(),
        };
        let customer_url = attempt.map(|attempt| attempt.customer_url);
        Ok(CheckoutView { session, ways, brand, order, seconds_left, receipt, why, return_url, customer_url })
    }

    /// Whether the shop has an endpoint that gets this payment's `payment.completed`.
    pub async fn tells_shop(&self, id: &PaymentId) -> Result<bool> {
        let payment = self.session(id.as_str()).await?.payment;
        let scope = Scope { developer_id: payment.developer_id, environment: payment.environment };
        let endpoints = self.store.endpoints(&scope, None, self.settings.max_webhook_endpoints).await?;
        let wants = |endpoint: &Endpoint| endpoint.wants(&EventKind::PaymentCompleted, payment.app_id.as_ref());
        Ok(endpoints.iter().any(wants))
    }

    /// Creates a test session in the sandbox workspace. Needs no API key.
    pub async fn create_demo_session(&self, demo: DemoSession) -> Result<DemoCheckout> {
        self.gateways.check_amount(demo.params.amount, demo.params.currency)?;
        let sandbox = self.sandbox().await?;
        let now = self.ambient.now();
        let id = PaymentId::new(sandbox.scope.developer_id.slot(), now, self.ambient.id_bytes());
        let id: PaymentId = format!("test_{id}").parse().map_err(StoreError::unavailable)?;
        let checkout_path = format!("/checkout/{id}");
        let mut params = demo.params;
        params.success_url = format!("{}{checkout_path}", self.settings.base_url);
        params.cancel_url = params.success_url.clone();
        let expires_at = now.plus_seconds(DEMO_TTL_SECONDS);
        let decision = payments_core::create(params, self.new_payment(&sandbox, id, now));
        let created = self.records().created(decision, expires_at, EventData::Wrapped)?;
        let payment = created.session.payment.clone();
        self.commit(Change::of(Write::Payment(Box::new(created)))).await?;
        Ok(DemoCheckout {
            id: payment.id,
            amount: payment.amount,
            currency: payment.currency,
            description: payment.description,
            customer_name: payment.customer.name,
            customer_email: payment.customer.email,
            status: payment.raw_status,
            environment: payment.environment,
            is_simulated: payment.is_simulated,
            checkout_path,
            checkout_url: payment.checkout_url,
            expires_at,
            unknown: UnknownFields::default(),
        })
    }

    /// Cancels a live payment whose customer goes back to the shop. Refuses while an attempt can be paid.
    pub async fn leave(&self, id: &str) -> Result<()> {
        self.end(id, Cause::CustomerLeft).await.map(drop)
    }

    pub async fn simulate(&self, id: &str, simulate: Simulate) -> Result<Simulation> {
        Ok(Simulation::of(&self.end(id, Cause::Simulated(simulate.outcome)).await?))
    }

    /// Ends an open session, unless it has expired.
    async fn end(&self, id: &str, cause: Cause) -> Result<Payment> {
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            let now = self.ambient.now();
            let expired = self.expired(&session, now);
            let payment = expired.as_ref().unwrap_or(&session.payment);
            let decision = payments_core::decide(payment, cause.clone(), now)?;
            self.records().commit_decision(&session, session.next(), decision).await
        })
        .await
    }
}
