//! Stripe's Checkout Session, its payment intent, and whether they paid a payment.

use payments_core::{Amount, Payment};
use serde::Deserialize;

use super::error::StripeError;
use crate::gateway::{
    answer::Names,
    contract::{AttemptState, Receipt, is_amount},
};

#[derive(Debug, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) url: Option<String>,
    pub(super) status: Option<String>,
    pub(super) payment_status: Option<String>,
    pub(super) amount_total: Option<u64>,
    pub(super) currency: Option<String>,
    pub(super) client_reference_id: Option<String>,
    pub(super) payment_intent: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PaymentIntent {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) last_payment_error: Option<StripeError>,
}

impl Names for Session {
    fn names(&self, session: &str) -> bool {
        self.id == session
    }
}

impl Names for PaymentIntent {
    fn names(&self, intent: &str) -> bool {
        self.id == intent
    }
}

impl Session {
    /// The state after money moved. It is paid only if the session's ids, amount and currency all match the payment.
    pub(super) fn paid(&self, payment: &Payment) -> AttemptState {
        let amount = self.amount_total.map(Amount::from_minor);
        let fits = self.client_reference_id.as_deref() == Some(payment.id.as_str())
            && is_amount(payment, self.currency.as_deref().unwrap_or_default(), amount);
        match &self.payment_intent {
            Some(transaction) if fits => {
                AttemptState::Paid(Receipt { transaction: transaction.clone(), ..Receipt::default() })
            }
            transaction => AttemptState::Discrepancy {
                transaction: transaction.clone(),
                what: format!(
                    "Stripe reports session {} paid by {:?}: {} {} for {:?}; expected {} {} for {}",
                    self.id,
                    transaction.as_deref().unwrap_or_default(),
                    amount.map(|amount| amount.to_string()).unwrap_or_default(),
                    self.currency.as_deref().unwrap_or("?"),
                    self.client_reference_id.as_deref().unwrap_or_default(),
                    payment.amount,
                    payment.currency.code(),
                    payment.id,
                ),
            },
        }
    }
}
