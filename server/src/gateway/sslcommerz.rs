//! Cards, banks and wallets of Bangladesh: SSLCommerz, version 4.
//!
//! A payment is paid if SSLCommerz's own API, asked for our `tran_id`, reports a paid transaction of it, and the validation of
//! that transaction agrees in ids, amounts and currencies. Its signed notices and the browser's return are only a reason to
//! ask. The URLs of its calls contain the credentials, so no URL is logged.

mod declared;
mod errors;
mod hash;
mod refund;
mod row;
mod session;

use async_trait::async_trait;
use payments_core::{Payment, Timestamp};
use serde_json::Value;
use warp::http::HeaderMap;

pub(super) use self::declared::DECLARED;
use self::{
    hash::Hash,
    row::{Row, text},
};
use super::{
    call::{GatewayClient, Response},
    contract::{AttemptRequest, AttemptState, BeginOutcome, Gateway, KnownRefund, RefundOutcome, RefundRequest},
    declaration::Declaration,
    error::GatewayError,
    notice::{Notice, NoticeError, NoticeSubject, PaymentOf},
    parts::Parts,
    settings::Settings,
};
use crate::domain::{GatewayAttempt, GatewayRefund};

const SESSION: &str = "/gwprocess/v4/api.php";
const VALIDATION: &str = "/validator/api/validationserverAPI.php";
const TRANSACTION: &str = "/validator/api/merchantTransIDvalidationAPI.php";

pub(super) struct SslCommerz {
    client: GatewayClient,
    settings: Settings,
}

impl SslCommerz {
    pub(super) fn new(Parts { settings, client, .. }: Parts) -> Self {
        Self { client, settings }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.settings.text("base_url"))
    }

    /// The fields with the credentials, encoded.
    fn encoded<V: AsRef<str>>(&self, fields: &[(&str, V)]) -> String {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("store_id", self.settings.text("store_id"));
        form.append_pair("store_passwd", self.settings.text("store_password"));
        form.extend_pairs(fields.iter().map(|(name, value)| (name, value.as_ref()))).finish()
    }

    fn read(&self, Response { status, body }: &Response) -> Result<Value, GatewayError> {
        if !status.is_success() {
            return Err(self.client.unanswered(&format!("status {}", status.as_u16())));
        }
        let read = serde_json::from_slice(body).ok().filter(Value::is_object);
        read.ok_or_else(|| self.client.unanswered("the response is not the expected JSON"))
    }

    /// Reads what SSLCommerz has, or starts a refund.
    async fn get(&self, what: &'static str, path: &str, fields: &[(&str, &str)]) -> Result<Value, GatewayError> {
        let query = self.encoded(&[fields, &[("format", "json"), ("v", "1")]].concat());
        let request = self.client.http.get(format!("{}?{query}", self.url(path)));
        let reply = self.read(&self.client.call(what, request).await?)?;
        let why = match &*text(&reply, "APIConnect") {
            "DONE" => return Ok(reply),
            "FAILED" => "it refuses the store's credentials",
            "INACTIVE" => "the store is inactive",
            "INVALID_REQUEST" => "it calls the request invalid",
            _ => "the response is not the expected JSON",
        };
        Err(self.client.unanswered(why))
    }

    /// All transactions of an attempt.
    async fn rows(&self, attempt: &GatewayAttempt) -> Result<Vec<Row>, GatewayError> {
        let reply = self.get("query", TRANSACTION, &[("tran_id", &attempt.invoice)]).await?;
        let rows: Vec<_> = reply["element"].as_array().into_iter().flatten().map(Row::read).collect();
        let count = text(&reply, "no_of_trans_found").parse();
        match count == Ok(rows.len()) && rows.iter().all(|row| row.tran_id == attempt.invoice) {
            true => Ok(rows),
            false => Err(self.client.unanswered("the response lacks transactions or has another payment's")),
        }
    }

    async fn validate(&self, val_id: &str) -> Result<Row, GatewayError> {
        let reply = Row::read(&self.get("validate", VALIDATION, &[("val_id", val_id)]).await?);
        match reply.is_paid() || reply.status == "INVALID_TRANSACTION" {
            true => Ok(reply),
            false => Err(self.client.unanswered("the validation has no known status")),
        }
    }
}

#[async_trait]
impl Gateway for SslCommerz {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        let form = match self.form(request) {
            Ok(form) => form,
            Err(rejection) => return Ok(BeginOutcome::Rejected(rejection)),
        };
        let post = self.client.http.post(self.url(SESSION)).header("content-type", "application/x-www-form-urlencoded");
        let response = self.client.call("create session", post.body(self.encoded(&form))).await?;
        self.begun(&self.read(&response)?)
    }

    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let rows = self.rows(attempt).await?;
        let Some((row, others)) = row::paid(&rows, attempt.transaction.as_deref()) else {
            return Ok(row::unpaid(&rows));
        };
        let validated = match row.val_id.is_empty() {
            true => None,
            false => self.validate(&row.val_id).await.ok(),
        };
        Ok(row.state(validated.as_ref(), &others, payment, attempt))
    }

    /// Only queries the payment: SSLCommerz has no call that cancels. Its page may still be paid, for a time that nobody
    /// documents. Such money is found: by its notice, and because this gateway does not [close](Gateway::closes) attempts.
    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        match self.query(payment, attempt).await? {
            AttemptState::Open => Ok(AttemptState::Cancelled),
            state => Ok(state),
        }
    }

    fn closes(&self) -> bool {
        false
    }

    async fn refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        self.send_refund(payment, attempt, refund).await
    }

    async fn refunds(
        &self,
        attempt: &GatewayAttempt,
        known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        let Some(transaction) = &attempt.transaction else { return Ok(Vec::new()) };
        let mut refunds = Vec::new();
        for refund in known {
            refunds.push(self.known_refund(transaction, refund).await?);
        }
        Ok(refunds)
    }

    async fn notice(
        &self,
        _headers: &HeaderMap,
        body: &[u8],
        _now: Timestamp,
    ) -> Result<Option<Notice<'_>>, NoticeError> {
        let [hash, store_id, password] = ["hash", "store_id", "store_password"].map(|key| self.settings.text(key));
        let tran_id = Hash::named(hash).tran_id(body, store_id, password).map_err(NoticeError::Unsigned)?;
        Ok(Some(Notice { subject: NoticeSubject::Attempt(PaymentOf::Reference(tran_id)), claimed: None }))
    }
}
