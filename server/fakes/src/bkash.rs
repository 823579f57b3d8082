//! Fake of bKash tokenized checkout, in its versions 1.2.0-beta (mode 0011) and 2, after its public documents and clients.
//!
//! Base addresses: `{url}/v1.2.0-beta` and `{url}/v2`. Both have the same payments and tokens. Credentials: [`APP_KEY`],
//! [`APP_SECRET`], [`USERNAME`], [`PASSWORD`]. Wallets: [`WALLET`] pays, [`POOR_WALLET`] has no money, [`BLOCKED_WALLET`] is
//! blocked. It accepts any OTP and PIN.

mod amount;
mod answers;
mod clock;
mod control;
mod customer;
mod dialect;
mod known;
mod notice;
mod payment;
mod refund;
mod tokens;

use std::{collections::BTreeMap, sync::Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};

pub(crate) use self::notice::base64;
use self::{
    answers::{Refusal, not_found, refusal, text, unauthorized, unknown_payment},
    control::Switches,
    dialect::{Dialect, Operation, route},
    notice::Notices,
    payment::Payment,
    tokens::Tokens,
};
pub use self::{
    known::{APP_KEY, APP_SECRET, BLOCKED_WALLET, PASSWORD, POOR_WALLET, USERNAME, WALLET},
    notice::{CERTIFICATE_PATH, NOTICE_CERTIFICATE, NOTICE_TOPIC},
};
use crate::{Answer, Call, Instead, Program, escaped, lock};

/// The fake.
#[derive(Debug, Default)]
pub struct Bkash {
    state: Mutex<State>,
    /// The version of its settings, and of its errors that a fault makes.
    dialect: Dialect,
}

#[derive(Debug, Default)]
struct State {
    payments: BTreeMap<String, Payment>,
    tokens: Tokens,
    switches: Switches,
    notices: Notices,
}

impl State {
    /// Refuses a call without a valid token and the app key.
    fn refuse(&self, call: &Call) -> Option<Answer> {
        self.tokens.refuse(call, self.switches.needs_bearer)
    }

    /// Takes a payment's money and sends its notice.
    fn take(&mut self, payment: &str) {
        self.payments.get_mut(payment).map(Payment::take);
        self.notify(payment);
    }
}

impl Bkash {
    /// Creates a fake without payments. Its settings are for v1.2.0-beta.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a fake without payments. Its settings are for v2, and so are the errors that a fault makes.
    #[must_use]
    pub fn v2() -> Self {
        Self { dialect: Dialect::V2, ..Self::default() }
    }

    fn create(&self, dialect: Dialect, body: &Value, base_url: &str) -> Result<Value, Refusal> {
        let State { payments, switches, .. } = &mut *lock(&self.state);
        if dialect == Dialect::V2 && switches.refuses_mode && body.get("mode").is_some() {
            return Err(refusal("2063", "Mode is not valid as per request data"));
        }
        let payment = Payment::new(body, payments.len() as u64, dialect)?;
        if payments.values().any(|known| known.invoice == payment.invoice) {
            return Err(refusal("2029", "Duplicate for all transactions"));
        }
        let json = payment.created_json(dialect, base_url);
        payments.insert(payment.id.clone(), payment);
        Ok(json)
    }

    fn execute(&self, dialect: Dialect, id: Option<&str>) -> Result<Value, Refusal> {
        let mut state = lock(&self.state);
        let State { payments, switches, .. } = &mut *state;
        let id = id.unwrap_or_default();
        let payment = payments.get(id).ok_or_else(unknown_payment)?;
        let is_refused = switches.refuses_equal_payments.unwrap_or(dialect == Dialect::V2);
        let is_equal = is_refused && payments.values().any(|known| known.equals(payment));
        let payment = payments.get_mut(id).ok_or_else(unknown_payment)?;
        payment.execute(dialect, is_equal)?;
        let json = payment.executed_json(dialect);
        state.notify(id);
        Ok(json)
    }

    /// Runs a call on the payment with this id.
    fn on_payment(
        &self,
        id: Option<&str>,
        call: impl FnOnce(&mut Payment, Switches) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let State { payments, switches, .. } = &mut *lock(&self.state);
        let payment = id.and_then(|id| payments.get_mut(id)).ok_or_else(unknown_payment)?;
        call(payment, *switches)
    }

    fn search(&self, dialect: Dialect, body: &Value) -> Result<Value, Refusal> {
        let id = dialect.text(body, "trxID");
        let state = lock(&self.state);
        let found = state.payments.values().find(|payment| id.is_some() && payment.transaction.as_deref() == id);
        found.map(Payment::transaction_json).ok_or_else(|| refusal("2033", "Transaction not found"))
    }

    fn customer(&self, call: &Call, id: &str) -> Answer {
        if call.method == Method::POST {
            let form = call.form();
            let field = |name| form.get(name).map_or("", String::as_str);
            let target = match field("action") {
                "cancel" => self.cancel(id),
                _ => self.approve(id, field("wallet")),
            };
            return target.map_or_else(|| closed(id), Answer::see_other);
        }
        match lock(&self.state).payments.get(id).filter(|payment| payment.is_open()) {
            None => closed(id),
            Some(payment) => payment.page(),
        }
    }

    /// Answers an API call.
    fn api(&self, call: &Call, base_url: &str) -> Answer {
        let Some((dialect, Some(operation))) = route(call) else {
            return not_found();
        };
        if !call.header("content-type").starts_with("application/json") {
            return Answer::json(StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!({"message": "Unsupported Media Type"}));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&call.body) else {
            return Answer::json(StatusCode::BAD_REQUEST, &json!({"message": "Bad Request"}));
        };
        if let Operation::Grant | Operation::Refresh = operation {
            return lock(&self.state).tokens.grant(call, &body, operation == Operation::Refresh, dialect);
        }
        if let Some(refusal) = lock(&self.state).refuse(call) {
            return refusal;
        }
        let mut id = dialect.text(&body, "paymentID");
        dialect.answer(match operation {
            Operation::Create => self.create(dialect, &body, base_url),
            Operation::Execute => self.execute(dialect, id),
            Operation::Query => {
                // Clients of v2 send either name.
                id = id.or(text(&body, "paymentID"));
                self.on_payment(id, |payment, _| Ok(payment.status_json(dialect)))
            }
            Operation::Refund => {
                self.on_payment(id, |payment, switches| payment.refund(dialect, &body, switches.balance_is_empty))
            }
            Operation::RefundStatus => self.on_payment(id, |payment, _| payment.refund_status(dialect, &body)),
            _ => self.search(dialect, &body),
        })
    }
}

impl Program for Bkash {
    fn answer(&self, call: &Call, base_url: &str) -> Answer {
        if let Some(id) = call.path.strip_prefix("/customer/") {
            return self.customer(call, id);
        }
        if call.path.starts_with("/_control/") {
            return self.control(call);
        }
        if call.path == CERTIFICATE_PATH {
            return Answer { headers: Vec::new(), ..Answer::html(NOTICE_CERTIFICATE.to_owned()) };
        }
        self.api(call, base_url)
    }

    fn instead(&self, instead: Instead) -> Answer {
        match instead {
            Instead::Unauthorized => unauthorized("Unauthorized"),
            Instead::Forbidden => Answer::json(StatusCode::FORBIDDEN, &json!({"message": "Forbidden"})),
            Instead::NotFound => not_found(),
            Instead::Page => Answer::proxy_page(),
            Instead::Code(code) => self.dialect.failure(&refusal(code, "The process failed")),
        }
    }

    fn settings(&self, base_url: &str) -> String {
        let (version, more) = match self.dialect {
            Dialect::V1 => ("v1.2.0-beta", ""),
            Dialect::V2 => ("v2", "version = \"v2\"\nrefunds = \"by_api\"\n"),
        };
        format!(
            "[bkash]\nbase_url = \"{base_url}/{version}\"\n{more}app_key = \"{APP_KEY}\"\napp_secret = \"{APP_SECRET}\"\n\
             username = \"{USERNAME}\"\npassword = \"{PASSWORD}\"\n"
        )
    }

    fn operation(&self, call: &Call) -> Option<&'static str> {
        let (_, operation) = route(call)?;
        Some(operation.map_or("other", Operation::name))
    }
}

fn closed(id: &str) -> Answer {
    Answer::html(format!("<!doctype html><title>bKash (fake)</title><p>Payment {} is not open.</p>", escaped(id)))
}
