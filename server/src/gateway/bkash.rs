//! Mobile money: bKash tokenized checkout, mode 0011, version 1.2.0-beta.
//!
//! The customer approves on bKash's page, and `execute` captures the money. The parameters that the browser brings back are
//! unsigned, so they are only a hint. Unless `execute` answers that the money moved, the server queries the payment's status.
//! bKash executes a `paymentID` once, however often `execute` is called.

mod declared;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use payments_core::{Amount, Payment, Timestamp};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answer::{About, Names, Rejection},
    call::{GatewayClient, Response, sensitive},
    contract::{AttemptRequest, AttemptState, BeginOutcome, CaptureOutcome, Gateway, Receipt, is_amount},
    declaration::{Declaration, Parts},
    error::GatewayError,
    settings::Settings,
};
use crate::domain::GatewayAttempt;
use token::Tokens;

pub(super) use declared::DECLARED;

pub(super) struct Bkash {
    client: Arc<GatewayClient>,
    settings: Arc<Settings>,
    tokens: Arc<Tokens>,
}

/// Whether an `execute` with this code took no money and never will: the customer's wallet, OTP or PIN, a balance that is too
/// small, an account that may not pay, a payment that the customer cancelled. After any other code the outcome is unknown.
fn is_certain(code: &str) -> bool {
    let number = code.parse::<u16>().unwrap_or_default();
    code == CANCELLED || matches!(number, 2009..=2019 | 2023 | 2037..=2041 | 2043..=2046 | 2057..=2059)
}

const CANCELLED: &str = "2069";
const MAINTENANCE: &str = "503";

/// Any bKash response. It has one shape for success and four for failure, most of them with status 200.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reply {
    status_code: Option<String>,
    status_message: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    internal_code: Option<String>,
    external_code: Option<String>,
    error_message_en: Option<String>,
    message: Option<String>,
    #[serde(rename = "paymentID")]
    payment_id: Option<String>,
    #[serde(rename = "bkashURL")]
    bkash_url: Option<String>,
    #[serde(rename = "trxID")]
    trx_id: Option<String>,
    transaction_status: Option<String>,
    verification_status: Option<String>,
    amount: Option<String>,
    currency: Option<String>,
    merchant_invoice_number: Option<String>,
    /// The invoice in a status response.
    merchant_invoice: Option<String>,
    #[serde(rename = "id_token")]
    id_token: Option<SecretString>,
    #[serde(rename = "refresh_token")]
    refresh_token: Option<SecretString>,
    #[serde(rename = "expires_in")]
    expires_in: Option<u32>,
}

impl Names for Reply {
    fn names(&self, payment: &str) -> bool {
        self.payment_id.as_deref() == Some(payment)
    }
}

/// An error of `execute` does not name the payment, so its code tells whether it is about the payment.
impl Names for Rejection {
    fn names(&self, _payment: &str) -> bool {
        is_certain(&self.code)
    }
}

impl Bkash {
    fn new(Parts { settings, client, store, ambient, tasks }: Parts) -> Self {
        let (client, settings) = (Arc::new(client), Arc::new(settings));
        let tokens = Tokens::new(Arc::clone(&client), Arc::clone(&settings), store, ambient, tasks);
        Self { client, settings, tokens: Arc::new(tokens) }
    }

    /// Calls bKash. The inner error is bKash's own.
    async fn call(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<Result<Reply, Rejection>, GatewayError> {
        let token = self.tokens.get().await?;
        // The token has no prefix: bKash uses no authorization scheme.
        let headers = [("authorization", &token), ("x-app-key", &self.settings.secret("app_key"))];
        let response = post(&self.client, self.settings.text("base_url"), what, path, headers, body).await?;
        if response.status == StatusCode::UNAUTHORIZED {
            self.tokens.refuse(&token);
        }
        read(&self.client, &response.body)
    }

    /// The state that a reply reports. A reply that does not name the attempt says nothing about it.
    fn state(&self, reply: Reply, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let reply = About::new(reply, &attempt.external_id);
        let reply = reply.ok_or_else(|| self.client.unanswered("the response is about another payment"))?;
        Ok(state(&reply, payment, attempt))
    }
}

async fn post(
    client: &GatewayClient,
    base_url: &str,
    what: &'static str,
    path: &str,
    headers: [(&str, &SecretString); 2],
    body: &Value,
) -> Result<Response, GatewayError> {
    let mut request =
        client.http.post(format!("{base_url}/tokenized/checkout{path}")).header("accept", "application/json");
    for (name, value) in headers {
        request = request.header(name, sensitive(value));
    }
    client.call(what, request.json(body)).await
}

#[async_trait]
impl Gateway for Bkash {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    async fn token_valid_until(&self) -> Option<Result<Timestamp, GatewayError>> {
        Some(self.tokens.valid_until().await)
    }

    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        let body = json!({
            "mode": "0011",
            "payerReference": request.customer.phone.as_deref().unwrap_or(request.payment.id.as_str()),
            "callbackURL": request.return_url,
            "amount": with_two_decimals(request.payment.amount),
            "currency": request.payment.currency.code(),
            "intent": "sale",
            "merchantInvoiceNumber": request.invoice,
        });
        let reply = match self.call("create", "/create", &body).await? {
            Ok(reply) => reply,
            Err(rejection) => return Ok(BeginOutcome::Rejected(rejection)),
        };
        match (reply.payment_id, reply.bkash_url) {
            (Some(external_id), Some(customer_url)) => Ok(BeginOutcome::SendTo { external_id, customer_url }),
            _ => Err(self.client.unanswered("the new payment has no paymentID or no bkashURL")),
        }
    }

    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let body = json!({"paymentID": attempt.external_id});
        match self.call("payment status", "/payment/status", &body).await? {
            Ok(reply) => self.state(reply, payment, attempt),
            Err(rejection) if rejection.code == CANCELLED => Ok(AttemptState::Cancelled),
            Err(rejection) => Err(self.client.unanswered(&rejection.to_string())),
        }
    }

    async fn capture(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<CaptureOutcome, GatewayError> {
        let body = json!({"paymentID": attempt.external_id});
        let rejection = match self.call("execute", "/execute", &body).await? {
            Ok(reply) => return Ok(CaptureOutcome::State(self.state(reply, payment, attempt)?)),
            Err(rejection) => rejection,
        };
        tracing::info!(payment = %payment.id, code = rejection.code, message = rejection.message, "bKash did not execute");
        let ended = match rejection.code.as_str() {
            CANCELLED => AttemptState::Cancelled,
            code => AttemptState::Failed { why: Some(format!("{} ({code})", rejection.message)) },
        };
        Ok(match About::new(rejection, &attempt.external_id) {
            Some(no) => CaptureOutcome::Rejected { ended, rejection: no.final_rejection(no.clone()) },
            None => CaptureOutcome::Unknown,
        })
    }

    /// Only queries the payment: without an `execute` no money moves, and the caller sends none from here on.
    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        match self.query(payment, attempt).await? {
            AttemptState::Open | AttemptState::Approved => Ok(AttemptState::Cancelled),
            state => Ok(state),
        }
    }
}

/// The state that a reply reports.
fn state(reply: &Reply, payment: &Payment, attempt: &GatewayAttempt) -> AttemptState {
    match reply.transaction_status.as_deref() {
        Some("Completed") => completed(reply, payment, attempt),
        Some("Initiated") if reply.verification_status.as_deref() == Some("Complete") => AttemptState::Approved,
        Some("Initiated") => AttemptState::Open,
        Some("Failed" | "Declined") => AttemptState::Failed { why: None },
        Some("Cancelled" | "Expired") => AttemptState::Cancelled,
        _ => AttemptState::Pending,
    }
}

/// The state after money moved. It is paid only if the reply's ids, amount and currency all match the payment.
fn completed(reply: &Reply, payment: &Payment, attempt: &GatewayAttempt) -> AttemptState {
    let amount: Option<Amount> = reply.amount.as_deref().and_then(decimal);
    let invoice = reply.merchant_invoice_number.as_deref().or(reply.merchant_invoice.as_deref());
    let fits =
        is_amount(payment, reply.currency.as_deref().unwrap_or_default(), amount) && invoice == Some(&attempt.invoice);
    match &reply.trx_id {
        Some(transaction) if fits => {
            AttemptState::Paid(Receipt { transaction: transaction.clone(), ..Receipt::default() })
        }
        transaction => AttemptState::Discrepancy {
            transaction: transaction.clone(),
            what: format!(
                "bKash completed paymentID {:?} as transaction {:?}: {} {} for invoice {:?}; expected {} {} for {}",
                reply.payment_id.as_deref().unwrap_or_default(),
                transaction.as_deref().unwrap_or_default(),
                reply.amount.as_deref().unwrap_or("?"),
                reply.currency.as_deref().unwrap_or("?"),
                invoice.unwrap_or_default(),
                payment.amount,
                payment.currency.code(),
                attempt.invoice,
            ),
        },
    }
}

/// Parses `15`, `15.5` and `15.00`, and also `15.000`.
fn decimal(text: &str) -> Option<Amount> {
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => text,
    };
    text.parse().ok()
}

fn with_two_decimals(amount: Amount) -> String {
    format!("{}.{:02}", amount.as_minor() / 100, amount.as_minor() % 100)
}

/// Reads a reply: a success, or bKash's error.
fn read(client: &GatewayClient, body: &[u8]) -> Result<Result<Reply, Rejection>, GatewayError> {
    let reply: Reply =
        serde_json::from_slice(body).map_err(|_| client.unanswered("the response is not the expected JSON"))?;
    let codes = [&reply.status_code, &reply.error_code, &reply.external_code, &reply.internal_code];
    let messages = [&reply.status_message, &reply.error_message, &reply.error_message_en];
    let message = messages.into_iter().flatten().next().map_or("no reason given", String::as_str);
    let code = codes.into_iter().flatten().next().cloned();
    match code.as_deref() {
        Some("0000") => Ok(Ok(reply)),
        Some(MAINTENANCE) => Err(client.unanswered(message)),
        Some(code) => Ok(Err(client.rejection(code, message))),
        // `{message}` comes from a server in front of the gateway, so the effect is unknown.
        None => Err(client.unanswered(reply.message.as_deref().unwrap_or("unknown response shape"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_reply(json: &str) -> Result<Result<Reply, Rejection>, GatewayError> {
        let calls = crate::metrics::Metrics::new().gateways;
        let http = reqwest::Client::new();
        let transport = Box::new(crate::gateway::call::Network(http.clone()));
        let client = GatewayClient::by(&DECLARED, http, transport, Arc::default(), calls);
        read(&client, json.as_bytes())
    }

    #[test]
    fn an_execute_ends_an_attempt_only_with_a_code_about_the_customer() {
        for code in ["2009", "2019", "2023", "2037", "2041", "2044", "2045", "2046", "2057", "2059", "2069"] {
            assert!(is_certain(code), "{code}");
        }
        for code in [
            "2001", "2002", "2003", "2006", "2008", "2020", "2024", "2029", "2031", "2033", "2048", "2050", "2056",
            "2060", "2061", "2062", "2065", "2067", "2068", "2117", "2119", "503", "9999", "7777", "x", "",
        ] {
            assert!(!is_certain(code), "{code}");
        }
    }

    #[test]
    fn rejections_of_every_shape_are_distinguished_from_unusable_responses() {
        for (json, code) in [
            (r#"{"statusCode":"2023","statusMessage":"Insufficient Balance"}"#, "2023"),
            (r#"{"errorCode":"2056","errorMessage":"Invalid Payment State"}"#, "2056"),
            (r#"{"internalCode":"x","externalCode":"2069","errorMessageEn":"no","errorMessageBn":"না"}"#, "2069"),
        ] {
            assert_eq!(read_reply(json).unwrap().unwrap_err().code, code, "{json}");
        }
        for json in [
            r#"{"message":"Unauthorized"}"#,
            r#"{"message":"Endpoint request timed out"}"#,
            r#"{"statusCode":"503","statusMessage":"System is undergoing maintenance"}"#,
            "{}",
            "",
            "<html>",
            "[]",
        ] {
            assert!(matches!(read_reply(json), Err(GatewayError::Unanswered { .. })), "{json}");
        }
        assert!(read_reply(r#"{"statusCode":"0000"}"#).unwrap().is_ok());
    }

    #[test]
    fn amounts_compare_as_decimals() {
        for (text, minor) in
            [("15", 1500), ("15.0", 1500), ("15.00", 1500), ("15.50", 1550), ("0.01", 1), ("100", 10_000)]
        {
            assert_eq!(decimal(text), Some(Amount::from_minor(minor)), "{text}");
        }
        for text in ["", "15.001", "-15", "x"] {
            assert_eq!(decimal(text), None, "{text}");
        }
        assert_eq!(with_two_decimals(Amount::from_minor(1500)), "15.00");
        assert_eq!(with_two_decimals(Amount::from_minor(7)), "0.07");
    }
}
