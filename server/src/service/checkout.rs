//! The checkout session, for whoever knows its id.

use payments_core::{
    Cause, CheckoutSession, Currency, PaymentMethod, RawStatus, Simulate, Simulation, aliased::UnknownFields,
};

use super::{Refused, Service};

impl Service {
    /// What the checkout page needs to know.
    pub(crate) async fn checkout_session(&self, id: &str) -> Result<CheckoutSession, Refused> {
        let session = self.session(id).await?;
        let payment = session.payment;
        let workspace = self.store.workspace_of(&payment.developer_id).await?;
        let is_open = matches!(payment.raw_status, RawStatus::Created | RawStatus::Pending | RawStatus::Processing);
        let is_over = is_open && session.expires_at <= self.ambient.now();
        Ok(CheckoutSession {
            id: payment.id,
            amount: payment.amount,
            currency: payment.currency,
            description: payment.description,
            customer_name: payment.customer.name,
            customer_email: payment.customer.email,
            customer_phone: payment.customer.phone,
            is_expired: is_over || payment.raw_status == RawStatus::Expired,
            status: payment.raw_status,
            environment: payment.environment,
            merchant_name: workspace.as_ref().map(|workspace| workspace.name.clone()).unwrap_or_default(),
            app_name: None,
            app_logo_url: None,
            website: workspace.and_then(|workspace| workspace.website),
            website_url: None,
            is_simulated: payment.is_simulated,
            payment_methods: match (payment.is_simulated, payment.currency) {
                (true, _) => vec![PaymentMethod::Test],
                (false, Currency::Bdt) => vec![PaymentMethod::Mfs],
                (false, Currency::Usd) => vec![PaymentMethod::Card],
            },
            success_url: payment.success_url,
            cancel_url: payment.cancel_url,
            expires_at: session.expires_at,
            unknown: UnknownFields::default(),
        })
    }

    /// Ends a test session as asked.
    pub(crate) async fn simulate(&self, id: &str, simulate: Simulate) -> Result<Simulation, Refused> {
        let payment = self.move_payment(id, Cause::Simulated(simulate.outcome)).await?;
        Ok(Simulation::of(&payment))
    }
}
