//! bKash's responses in both versions.

use payments_core::{Amount, Currency, Payment};
use secrecy::SecretString;
use serde::Deserialize;

use super::dialect::Dialect;
use crate::{
    domain::{GatewayAttempt, GatewayRefund, GatewayRefundState},
    gateway::{
        answer::{Names, Rejection},
        call::{GatewayClient, Response},
        contract::{AttemptState, Receipt, is_amount},
        decimal::decimal,
        error::GatewayError,
    },
};

const SUCCESS: &str = "0000";
const MAINTENANCE: &str = "503";

/// Any bKash response. v1 has one shape for success and four for failure, most of them with status 200. A success of v2 has
/// no code, and its names of ids end in `Id`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reply {
    status_code: Option<String>,
    status_message: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    internal_code: Option<String>,
    external_code: Option<String>,
    error_message_en: Option<String>,
    message: Option<String>,
    #[serde(alias = "paymentID")]
    pub(super) payment_id: Option<String>,
    #[serde(rename = "bkashURL", alias = "bKashURL")]
    pub(super) bkash_url: Option<String>,
    #[serde(alias = "trxID")]
    trx_id: Option<String>,
    transaction_status: Option<String>,
    verification_status: Option<String>,
    amount: Option<String>,
    currency: Option<String>,
    merchant_invoice_number: Option<String>,
    /// The invoice in a status response.
    merchant_invoice: Option<String>,
    #[serde(rename = "id_token")]
    pub(super) id_token: Option<SecretString>,
    #[serde(rename = "refresh_token")]
    pub(super) refresh_token: Option<SecretString>,
    #[serde(rename = "expires_in")]
    pub(super) expires_in: Option<u32>,
    #[serde(alias = "originalTrxID")]
    original_trx_id: Option<String>,
    #[serde(alias = "refundTrxID")]
    refund_trx_id: Option<String>,
    refund_transaction_status: Option<String>,
    refund_amount: Option<String>,
    /// All refunds, in a status response of v2.
    refund_transactions: Option<Vec<Reply>>,
}

/// A reply is about a payment, or about the transaction that it refunds.
impl Names for Reply {
    fn names(&self, subject: &str) -> bool {
        [&self.payment_id, &self.original_trx_id].into_iter().flatten().any(|it| it == subject)
    }
}

/// Reads a reply: a success, or bKash's error. A success without a code still lacks the caller's check that it has the
/// expected fields.
pub(super) fn read(
    client: &GatewayClient,
    dialect: &Dialect,
    response: &Response,
) -> Result<Result<Reply, Rejection>, GatewayError> {
    let reply: Reply = serde_json::from_slice(&response.body)
        .map_err(|_| client.unanswered("the response is not the expected JSON"))?;
    let codes = [&reply.status_code, &reply.error_code, &reply.external_code, &reply.internal_code];
    let messages = [&reply.status_message, &reply.error_message, &reply.error_message_en];
    let message = messages.into_iter().flatten().next().map_or("no reason given", String::as_str);
    let code = codes.into_iter().flatten().next().cloned();
    let is_ok = response.status.is_success();
    match code.as_deref() {
        Some(SUCCESS) if is_ok => Ok(Ok(reply)),
        Some(SUCCESS | MAINTENANCE) => Err(client.unanswered(message)),
        Some(code) => Ok(Err(client.rejection(code, message))),
        None if dialect.succeeds_without_code && is_ok && reply.message.is_none() => Ok(Ok(reply)),
        // `{message}` comes from a server in front of the gateway, so the effect is unknown.
        None => Err(client.unanswered(reply.message.as_deref().unwrap_or("unknown response shape"))),
    }
}

impl Reply {
    /// The state that it reports.
    pub(super) fn state(&self, payment: &Payment, attempt: &GatewayAttempt) -> AttemptState {
        match self.transaction_status.as_deref() {
            Some("Completed") => self.completed(payment, attempt),
            Some("Initiated") if self.verification_status.as_deref() == Some("Complete") => AttemptState::Approved,
            Some("Initiated") => AttemptState::Open,
            Some("Failed" | "Declined") => AttemptState::Failed { why: None, code: None },
            Some("Cancelled") => AttemptState::Cancelled,
            Some("Expired") => AttemptState::Expired,
            _ => AttemptState::Pending,
        }
    }

    /// The state after money moved. It is paid only if the reply's ids, amount and currency all match the payment.
    fn completed(&self, payment: &Payment, attempt: &GatewayAttempt) -> AttemptState {
        let amount: Option<Amount> = self.amount.as_deref().and_then(decimal);
        let invoice = self.merchant_invoice_number.as_deref().or(self.merchant_invoice.as_deref());
        let fits = is_amount(payment, self.currency.as_deref().unwrap_or_default(), amount)
            && invoice == Some(&attempt.invoice);
        match &self.trx_id {
            Some(transaction) if fits => {
                AttemptState::Paid(Receipt { transaction: transaction.clone(), ..Receipt::default() })
            }
            transaction => AttemptState::Discrepancy {
                transaction: transaction.clone(),
                what: format!(
                    "bKash completed paymentID {:?} as transaction {:?}: {} {} for invoice {:?}; expected {} {} for {}",
                    self.payment_id.as_deref().unwrap_or_default(),
                    transaction.as_deref().unwrap_or_default(),
                    self.amount.as_deref().unwrap_or("?"),
                    self.currency.as_deref().unwrap_or("?"),
                    invoice.unwrap_or_default(),
                    payment.amount,
                    payment.currency.code(),
                    attempt.invoice,
                ),
            },
        }
    }

    /// The refunds that it reports: its list, or itself. `None` if a field lacks.
    pub(super) fn refunds(&self) -> Option<Vec<GatewayRefund>> {
        match &self.refund_transactions {
            Some(all) => all.iter().map(Self::refund).collect(),
            None => self.refund().map(|refund| vec![refund]),
        }
    }

    /// The refund that it reports. A word that this server does not know decides nothing.
    pub(super) fn refund(&self) -> Option<GatewayRefund> {
        let state = match self.refund_transaction_status.as_deref().or(self.transaction_status.as_deref())? {
            "Completed" => GatewayRefundState::Succeeded,
            _ => GatewayRefundState::Pending,
        };
        let amount = self.refund_amount.as_deref().or(self.amount.as_deref()).and_then(decimal)?;
        let is_taka = self.currency.as_deref().is_none_or(|it| it == Currency::Bdt.code());
        is_taka.then_some(GatewayRefund { reference: self.refund_trx_id.clone()?, id: None, amount, state })
    }
}
