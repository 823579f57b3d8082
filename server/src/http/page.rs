//! `/checkout/{id}`: the checkout page, in English or Bangla. It works without JavaScript.
//!
//! Submitting a form redirects to the page itself, which then redirects to the gateway or the shop with a `refresh`. A
//! direct redirect would fail, because browsers apply `form-action` to the redirects of a form too.
//!
//! Only live sessions redirect automatically, because only a merchant's key can create them. Anyone can create a test
//! session, so its page shows the target host and waits for a click.

mod words;

use askama::Template;
use payments_core::{
    Amount, CheckoutSession, Currency, MobileNumber, Pay, PaymentMethod, RawStatus, Simulate, SimulateOutcome,
    Timestamp,
};
use url::Url;
use warp::{
    http::{HeaderMap, StatusCode, header},
    reply::Response,
};

use super::{
    assets,
    language::{Language, Text},
    reply::{self, Problem, StaticHeader, see_other},
    request::Request,
    route::Outcome,
};
use crate::{
    gateway::GatewayError,
    service::{CheckoutView, Refused, Service},
};

/// `GET`: shows the page, or redirects.
pub(super) async fn visit(request: Request) -> Outcome {
    let page = Page::of(&request);
    let outcome = match request.query("go") {
        Some(_) => page.redirect().await,
        None => page.show(Shown::default()).await,
    };
    Ok(page.finish(outcome))
}

/// `POST`: the customer has pressed a button.
pub(super) async fn submit(mut request: Request) -> Outcome {
    let form = request.read_body().await?;
    let page = Page::of(&request);
    Ok(page.finish(page.submit(&form).await))
}

/// One visit to the page of a session.
struct Page<'p> {
    service: &'p Service,
    id: &'p str,
    language: Language,
    /// Whether this request chose the language.
    is_chosen: bool,
}

/// What the page shows beyond the session's state.
#[derive(Default)]
struct Shown<'s> {
    status: StatusCode,
    fault: Option<Text>,
    /// The typed phone number, if it is invalid.
    wrong_phone: Option<&'s str>,
}

impl<'p> Page<'p> {
    fn of(request: &'p Request) -> Self {
        let (language, is_chosen) = Language::of_request(request);
        Self { service: request.service(), id: request.id(), language, is_chosen }
    }

    /// Shows errors as a page, and stores a chosen language in a cookie.
    fn finish(&self, outcome: Outcome) -> Response {
        let mut response = outcome.unwrap_or_else(|problem| notice(self.language, problem));
        if self.is_chosen {
            response.headers_mut().extend(self.language.cookie("/checkout").map(|value| (header::SET_COOKIE, value)));
        }
        response
    }

    fn here(&self) -> String {
        format!("/checkout/{}?lang={}", self.id, self.language.code())
    }

    async fn show(&self, shown: Shown<'_>) -> Outcome {
        let checkout = self.service.checkout_view(self.id).await?;
        let session = &checkout.session;
        let view = match session.status {
            RawStatus::Paid => View::Paid,
            RawStatus::Failed => View::Unpaid(words::FAILED),
            RawStatus::Cancelled => View::Unpaid(words::CANCELLED),
            RawStatus::Refunded => View::Refunded,
            RawStatus::Processing => View::Processing,
            RawStatus::Pending if !session.is_simulated && !session.is_expired => {
                let fault = shown.fault.or(Some(words::TRY_AGAIN));
                return self.render(&checkout, View::Choice, Shown { fault, ..shown });
            }
            _ if session.is_expired => View::Unpaid(words::EXPIRED),
            _ if session.is_simulated => View::Simulator,
            _ => View::Choice,
        };
        self.render(&checkout, view, shown)
    }

    async fn submit(&self, form: &[u8]) -> Outcome {
        let field = |wanted: &str| {
            let mut pairs = url::form_urlencoded::parse(form);
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let outcome = match field("action").as_deref() {
            Some("success") => self.simulate(SimulateOutcome::Completed).await,
            Some("fail") => self.simulate(SimulateOutcome::Failed).await,
            Some("cancel") => self.simulate(SimulateOutcome::Cancelled).await,
            Some("leave") => self.service.leave(self.id).await,
            Some("pay") => {
                let typed = field("phoneNumber").filter(|text| !text.trim().is_empty());
                let number = typed.as_deref().map(str::parse::<MobileNumber>).transpose();
                let Ok(number) = number else {
                    let (status, wrong_phone) = (StatusCode::BAD_REQUEST, typed.as_deref());
                    return self.show(Shown { status, wrong_phone, fault: None }).await;
                };
                let pay = Pay {
                    payment_method: field("paymentMethod").and_then(|word| PaymentMethod::known(&word)),
                    phone_number: number.map(|number| number.as_str().to_owned()),
                    redirect_url: None,
                };
                self.service.pay(self.id, &pay).await.map(|_| ())
            }
            _ => return self.show(Shown::default()).await,
        };
        let (status, fault) = match outcome {
            Ok(()) => return Ok(see_other(&format!("{}&go", self.here()))),
            // A second click, a reload, another tab: show the current state.
            Err(Refused::Payment(_)) => (StatusCode::OK, None),
            Err(Refused::Gateway(GatewayError::Refused { .. }) | Refused::NoGateway(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Some(words::REFUSED))
            }
            Err(Refused::Gateway(_)) => (StatusCode::SERVICE_UNAVAILABLE, Some(words::NO_ANSWER)),
            Err(refused) => return Err(refused.into()),
        };
        self.show(Shown { status, fault, wrong_phone: None }).await
    }

    async fn simulate(&self, outcome: SimulateOutcome) -> Result<(), Refused> {
        self.service.simulate(self.id, Simulate { outcome }).await.map(|_| ())
    }

    /// Redirects to the gateway or the shop, if the state calls for it.
    async fn redirect(&self) -> Outcome {
        let checkout = self.service.checkout_view(self.id).await?;
        let session = &checkout.session;
        let view = match (&checkout.customer_url, &session.status) {
            (Some(target), _) => View::Redirect { target, to_shop: false },
            (None, RawStatus::Paid | RawStatus::Failed | RawStatus::Cancelled) if !session.is_simulated => {
                View::Redirect { target: &checkout.return_url, to_shop: true }
            }
            _ => return self.show(Shown::default()).await,
        };
        self.render(&checkout, view, Shown::default())
    }

    fn render(&self, checkout: &CheckoutView, view: View<'_>, shown: Shown<'_>) -> Outcome {
        let CheckoutView { session, return_url, .. } = checkout;
        let is_finished = matches!(view, View::Paid | View::Unpaid(_) | View::Refunded);
        let status = shown.status;
        let page = CheckoutPage {
            checkout,
            session,
            amount: money(session.amount, session.currency),
            view,
            shown,
            next_host: if session.is_simulated && is_finished { host_of(return_url) } else { None },
            here: self.here(),
            language: self.language,
        };
        Ok(document(status, self.language, page.render().map_err(Problem::internal)?, None))
    }
}

/// The page of a session.
#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'s> {
    checkout: &'s CheckoutView,
    session: &'s CheckoutSession,
    amount: String,
    view: View<'s>,
    shown: Shown<'s>,
    /// The shop's host, if the page shows it.
    next_host: Option<String>,
    here: String,
    language: Language,
}

/// The states of the page.
enum View<'v> {
    /// A test session waits for one of the simulator's buttons.
    Simulator,
    /// A live session waits for the customer to choose how to pay.
    Choice,
    /// A redirect to the gateway or the shop.
    Redirect {
        target: &'v str,
        to_shop: bool,
    },
    /// The server is querying the gateway.
    Processing,
    Paid,
    /// Failed, cancelled or expired.
    Unpaid(Text),
    Refunded,
}

impl View<'_> {
    fn is_to_pay(&self) -> bool {
        matches!(self, Self::Simulator | Self::Choice)
    }
}

/// An error page, such as for an unknown session.
#[derive(Template)]
#[template(path = "checkout_notice.html")]
struct NoticePage {
    title: Text,
    text: Text,
    language: Language,
}

/// Renders an error as a page, in the language that the headers prefer.
pub(super) fn refusal(headers: &HeaderMap, problem: Problem) -> Response {
    notice(Language::of(None, headers), problem)
}

/// Renders an error as a page. Status and headers are those of the API's error.
fn notice(language: Language, problem: Problem) -> Response {
    let (title, text) = match problem.status() {
        StatusCode::NOT_FOUND => (words::UNKNOWN, words::UNKNOWN_NOTE),
        StatusCode::TOO_MANY_REQUESTS => (words::TROUBLE, words::TOO_MANY),
        _ => (words::TROUBLE, words::TROUBLE_NOTE),
    };
    match (NoticePage { title, text, language }).render() {
        Ok(html) => document(problem.status(), language, html, problem.header),
        Err(error) => {
            tracing::error!(%error, "cannot render a page");
            problem.into_response()
        }
    }
}

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Builds a response with an HTML document and its security headers.
fn document(status: StatusCode, language: Language, html: String, extra: Option<StaticHeader>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_LANGUAGE, language.code()),
        (header::VARY, "Accept-Language, Cookie"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    reply::response(status, html, headers.into_iter().chain(extra))
}

/// Returns the host of a URL, with a port other than the scheme's default. The host is in ASCII, against homographs, and
/// without a user name.
fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The shop's phone number for the customer, if it is a valid mobile number.
fn known_phone(session: &CheckoutSession) -> String {
    let number = session.customer_phone.as_deref().and_then(|text| text.parse::<MobileNumber>().ok());
    number.map(|number| number.as_str().to_owned()).unwrap_or_default()
}

/// Formats a time in Dhaka's time zone, UTC+6 all year, to the minute.
fn in_dhaka(time: Timestamp) -> String {
    let text = time.plus_seconds(6 * 60 * 60).to_string().replace('T', " ");
    text.chars().take("2023-11-15 04:13".len()).collect()
}

/// Formats an amount: ৳1,250.00 or $12.50. Digits are Latin in both languages, as on the gateways' pages, so that
/// customers can compare.
fn money(amount: Amount, currency: Currency) -> String {
    let sign = match currency {
        Currency::Bdt => '৳',
        Currency::Usd => '$',
    };
    let mut digits = (amount.as_minor() / 100).to_string();
    for comma in (1..digits.len().saturating_sub(2)).rev().step_by(3) {
        digits.insert(comma, ',');
    }
    format!("{sign}{digits}.{:02}", amount.as_minor() % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_currencys_sign_and_grouped_digits() {
        for (text, currency, shown) in [
            ("1250", Currency::Bdt, "৳1,250.00"),
            ("12.5", Currency::Usd, "$12.50"),
            ("0.01", Currency::Usd, "$0.01"),
            ("999", Currency::Bdt, "৳999.00"),
            ("999999999999.99", Currency::Bdt, "৳999,999,999,999.99"),
        ] {
            assert_eq!(money(text.parse().unwrap(), currency), shown);
        }
    }

    #[test]
    fn the_receipt_shows_dhaka_time() {
        let time = Timestamp::from_millis(1_700_000_000_000).unwrap();
        assert_eq!(
            (time.to_string().as_str(), in_dhaka(time).as_str()),
            ("2023-11-14T22:13:20.000Z", "2023-11-15 04:13")
        );
    }
}
