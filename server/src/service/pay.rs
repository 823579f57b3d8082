//! Paying: a test payment goes to the simulator, a live one to its gateway.

use std::sync::Arc;

use payments_core::{
    Cause, Customer, ErrorCode, Invalid, MobileNumber, Pay, Payment, PaymentId, PaymentMethod, RawStatus, Refusal,
    Simulate, Simulation, redirect_target,
};
use tokio::time::timeout;

use super::{
    Result, Service, ServiceError,
    confirm::awaits_gateway,
    next_check::{WaitsFor, next_check},
    retry_on_conflict,
    turns::{For, Turn},
};
use crate::{
    domain::{GatewayAttempt, Session, owner_of},
    gateway::{AttemptRequest, BeginOutcome, GatewayError, Offer, Return, chosen, each_once, is_way},
};

/// Where the customer goes to pay.
#[derive(Debug)]
pub enum Paying {
    /// The gateway's page.
    Gateway { redirect_url: String },
    /// Nowhere: the simulator decided the payment.
    Simulated(Simulation),
}

impl Service {
    /// Begins an attempt at the payment's gateway, or returns to the one that can be paid. There is only one, so nobody pays
    /// twice in two tabs.
    pub async fn pay(&self, id: &str, pay: &Pay) -> Result<Paying> {
        let _turn = self.turn_to_begin(id).await?;
        // If a concurrent request commits its attempt first, the retry returns that attempt.
        retry_on_conflict(|| async {
            let session = self.session(id).await?;
            pay.check_against(&session.payment)?;
            let now = self.ambient.now();
            if let (RawStatus::Processing, Some(attempt)) = (&session.payment.raw_status, &session.attempt) {
                if session.expires_at <= now {
                    return Err(Refusal::State { from: RawStatus::Expired, to: RawStatus::Processing }.into());
                }
                let redirect_url = attempt.customer_url.clone();
                if pay.redirect_url.is_some() && pay.redirect_url != attempt.paid_url {
                    let attempt = GatewayAttempt { paid_url: pay.redirect_url.clone(), ..attempt.clone() };
                    let next = Session { attempt: Some(attempt), ..session.next() };
                    self.commit_without_event(next).await?;
                }
                return Ok(Paying::Gateway { redirect_url });
            }
            let payment = &session.payment;
            if session.needs_manual_review() {
                return Err(Refusal::State { from: payment.raw_status.clone(), to: RawStatus::Processing }.into());
            }
            let workspace = self.directory.store.workspace_of(&owner_of(&payment.developer_id)).await?;
            let ways = workspace.as_ref().map_or(&[][..], |workspace| &workspace.ways);
            let offers = self.offers(payment, ways).await?;
            let offer = chosen_of(&offers, payment, pay)?;
            if !payment.is_simulated {
                // Refuse before calling the gateway.
                let status = self.expired(&session, now).map_or(&payment.raw_status, |_| &RawStatus::Expired);
                payments_core::transition(
                    status,
                    payment.environment,
                    &Cause::SentToGateway(offer.way.method.clone()),
                )?;
            }
            let merchant = workspace.as_ref().map_or("", |workspace| &workspace.name);
            self.pay_at(offer, &session, merchant, pay).await
        })
        .await
    }

    /// Waits for the payment's turn, if this request would begin an attempt at a gateway.
    async fn turn_to_begin(&self, id: &str) -> Result<Option<Turn>> {
        let begins = |session: &Session| {
            let payment = &session.payment;
            !payment.is_simulated && matches!(payment.raw_status, RawStatus::Created | RawStatus::Pending)
        };
        let session = self.session(id).await?;
        if !begins(&session) {
            return Ok(None);
        }
        let ways = self.gateways.ways(session.payment.environment, session.payment.currency);
        let Some(first) = ways.first() else { return Ok(None) };
        let turn = timeout(self.settings.gateway_timeout, self.turns.take(&session.payment.id, For::Attempt)).await;
        // Another request has waited for the gateway all that time.
        let mut turn = turn.map_err(|_| GatewayError::CircuitOpen { gateway: first.gateway.name() })?;
        if let Some(turn) = &mut turn
            && begins(&self.session(id).await?)
        {
            turn.begin(&Return::default()).await;
        }
        Ok(turn)
    }

    /// Confirms a payment whose customer returned from the gateway. Returns the shop's URL if a live payment is paid.
    pub async fn confirm_return(self: &Arc<Self>, id: PaymentId, back: Return) -> Result<Option<String>> {
        let session = self.session(id.as_str()).await?;
        if awaits_gateway(&session)
            && let Some(mut turn) = self.turns.take(&id, For::Return).await
            && !turn.was_answered(&back)
        {
            let (service, id) = (Arc::clone(self), id.clone());
            // A separate task, so that the query completes even if the customer disconnects. The log has its failure.
            let asked = self.tasks.spawn(async move {
                turn.begin(&back).await;
                service.confirm(&id, &back).await
            });
            let _ = asked.await;
        }
        let session = self.session(id.as_str()).await?;
        let is_paid = !session.payment.is_simulated && session.payment.raw_status == RawStatus::Paid;
        Ok(is_paid.then(|| session.return_url()))
    }

    async fn pay_at(
        &self,
        Offer { gateway, way }: Offer<'_>,
        session: &Session,
        merchant_name: &str,
        pay: &Pay,
    ) -> Result<Paying> {
        let payment = &session.payment;
        let now = self.ambient.now();
        let invoice = gateway.declared().reference.make(&payment.id, &*self.ambient);
        let (base_url, name) = (&self.settings.base_url, gateway.declared().name);
        let [least, most] = gateway.declared().session_seconds;
        let customer = known_customer(payment, pay);
        let missing = way.asks.iter().filter(|ask| ask.is_required && ask.field.of(&customer).is_none());
        let mut invalid = Invalid::default();
        for ask in missing.filter(|_| !payment.is_simulated) {
            invalid.add(
                ask.field.name(),
                ErrorCode::FieldMissing,
                format_args!("must be given to pay by {}", way.name),
                (),
            );
        }
        invalid.or(())?;
        let order = AttemptRequest {
            payment,
            invoice: &invoice,
            merchant_name,
            return_url: &format!("{base_url}/gateways/{name}/return/{}", payment.id),
            customer: &customer,
            expires_at: session.expires_at.clamp(now.plus_seconds(least), now.plus_seconds(most)),
        };
        match gateway.begin(&order).await? {
            BeginOutcome::Simulated(outcome) => {
                let mut ended = self.simulate(payment.id.as_str(), Simulate { outcome }).await?;
                if let Some(address) = pay.redirect_url.as_ref().filter(|_| ended.success) {
                    ended.redirect_url = redirect_target(address, &payment.id, &ended.status.public());
                }
                Ok(Paying::Simulated(ended))
            }
            BeginOutcome::Rejected(rejection) => Err(rejection.into()),
            BeginOutcome::SendTo { external_id, customer_url } => {
                let now = self.ambient.now();
                let decision = payments_core::decide(payment, Cause::SentToGateway(way.method.clone()), now)?;
                let status = &decision.payment.raw_status;
                let check_at = next_check(status, WaitsFor::Customer, now, session.expires_at, now);
                let attempt = GatewayAttempt {
                    gateway: gateway.name(),
                    invoice,
                    external_id,
                    customer_url: customer_url.clone(),
                    capture_sent_at: None,
                    transaction: None,
                    failure: None,
                    failure_code: None,
                    paid_url: pay.redirect_url.clone(),
                    silent_since: None,
                };
                let next = Session { check_at, attempt: Some(attempt), ..session.next() };
                self.records().commit_decision(session, next, decision).await?;
                Ok(Paying::Gateway { redirect_url: customer_url })
            }
        }
    }
}

/// The way to pay that the customer chose.
fn chosen_of<'g>(offers: &[Offer<'g>], payment: &Payment, pay: &Pay) -> Result<Offer<'g>> {
    if offers.is_empty() {
        return Err(ServiceError::NoGateway(payment.currency));
    }
    // The simulator takes every word that a live payment may take.
    let is_known = |word: &PaymentMethod| PaymentMethod::known(word.as_str()).is_some() || is_way(word.as_str());
    let word = pay.payment_method.as_ref().filter(|word| !(payment.is_simulated && is_known(word)));
    chosen(offers, word).ok_or_else(|| {
        let words = each_once(offers.iter().flat_map(|it| [it.way.method.as_str(), it.way.name]));
        let error = match payment.is_simulated {
            true => "must be one of mfs, card, test".to_owned(),
            false => format!("must be {} for a live payment in {}", words.join(" or "), payment.currency),
        };
        Invalid::field("paymentMethod", ErrorCode::PaymentMethodInvalid, error).into()
    })
}

/// What is known of the customer: from the payment, or else typed at the checkout. A blank text tells nothing. The typed number
/// takes precedence: it is that of the wallet.
fn known_customer(payment: &Payment, pay: &Pay) -> Customer {
    let or = |known: &Option<String>, typed: &Option<String>| {
        [known, typed].into_iter().flatten().find(|text| !text.trim().is_empty()).cloned()
    };
    let phone = or(&pay.phone_number, &payment.customer.phone).and_then(|text| text.parse::<MobileNumber>().ok());
    Customer {
        name: or(&payment.customer.name, &pay.customer_name),
        email: or(&payment.customer.email, &pay.customer_email),
        phone: phone.map(|number| number.as_str().to_owned()),
        ..Customer::default()
    }
}
