//! `/checkout/{id}`: the page a customer sees. Rendered here, styled by one sheet, working without JavaScript.

use std::sync::Arc;

use askama::Template;
use payments_core::{Amount, CheckoutSession, Currency, RawStatus, Simulate, SimulateOutcome, redirect_target};
use url::Url;
use warp::{
    Filter,
    http::{HeaderValue, Method, StatusCode, header},
    reply::Response,
};

use super::{
    Routes, Server, first_of, gate,
    incoming::{Incoming, incoming},
    reply::Problem,
};
use crate::service::{Refused, Service};

const STYLE: &str = include_str!("../../templates/checkout.css");

pub(super) fn routes(server: &Server) -> Routes {
    let page = gate::keyless_with(server, warp::path!("checkout" / String), visit);
    let style = warp::path!("assets" / "checkout.css").and(incoming()).then(async |_: Incoming| {
        let mut response = Response::new(STYLE.into());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        response
    });
    first_of([page, style.boxed()])
}

async fn visit(service: Arc<Service>, id: String, mut incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::GET => show(&service, &id).await,
        Method::POST => {
            let form = incoming.read_body().await?;
            let choice = url::form_urlencoded::parse(&form).find(|(name, _)| name == "action").map(|(_, value)| value);
            let outcome = match choice.as_deref() {
                Some("success") => SimulateOutcome::Completed,
                Some("fail") => SimulateOutcome::Failed,
                Some("cancel") => SimulateOutcome::Cancelled,
                _ => return show(&service, &id).await,
            };
            match service.simulate(&id, Simulate { outcome }).await {
                Ok(simulation) => Ok(see_other(&simulation.redirect_url)),
                // A second click, a reload, another tab: the page tells how it ended.
                Err(Refused::Payment(_)) => show(&service, &id).await,
                Err(refused) => Err(refused.into()),
            }
        }
        _ => Err(Problem::MethodNotAllowed("GET, HEAD, POST")),
    }
}

async fn show(service: &Service, id: &str) -> Result<Response, Problem> {
    match service.checkout_session(id).await {
        Ok(session) => render(StatusCode::OK, &CheckoutPage::of(&session), &form_targets(&session)),
        Err(Refused::NotFound { .. }) => render(StatusCode::NOT_FOUND, &UnknownPage, ""),
        Err(refused) => Err(refused.into()),
    }
}

/// The page of a session.
#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'s> {
    session: &'s CheckoutSession,
    amount: String,
    view: View,
    next: String,
}

/// What the page has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// A test session waits for one of the simulator's buttons.
    Simulator,
    Paid,
    Failed,
    Cancelled,
    Expired,
    Refunded,
    /// The gateway is being asked.
    Processing,
}

impl<'s> CheckoutPage<'s> {
    fn of(session: &'s CheckoutSession) -> Self {
        let view = match session.status {
            RawStatus::Paid => View::Paid,
            RawStatus::Failed => View::Failed,
            RawStatus::Cancelled => View::Cancelled,
            RawStatus::Refunded => View::Refunded,
            _ if session.is_expired => View::Expired,
            RawStatus::Created | RawStatus::Pending if session.is_simulated => View::Simulator,
            _ => View::Processing,
        };
        Self {
            session,
            amount: money(session.amount, session.currency),
            view,
            next: redirect_target(
                if view == View::Paid { &session.success_url } else { &session.cancel_url },
                &session.id,
                &session.status.public(),
            ),
        }
    }
}

/// The page for an id that no session has.
#[derive(Template)]
#[template(path = "checkout_unknown.html")]
struct UnknownPage;

/// A sum in the currency's own form: ৳1,250.00 or $12.50.
fn money(amount: Amount, currency: Currency) -> String {
    let sign = match currency {
        Currency::Bdt => '৳',
        Currency::Usd => '$',
    };
    let digits = (amount.as_minor() / 100).to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{:02}", amount.as_minor() % 100)
}

fn render(status: StatusCode, page: &impl Template, form_targets: &str) -> Result<Response, Problem> {
    let html = page.render().map_err(|error| Problem::Internal(error.to_string()))?;
    let policy = format!(
        "default-src 'none'; style-src 'self'; form-action 'self'{form_targets}; frame-ancestors 'none'; base-uri 'none'"
    );
    let mut response = Response::new(html.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_str(&policy).map_err(|error| Problem::Internal(error.to_string()))?;
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Browsers hold a form's redirects to `form-action` too, so it names the shop's origins.
fn form_targets(session: &CheckoutSession) -> String {
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    let origins = [origin(&session.success_url), origin(&session.cancel_url)];
    origins.into_iter().flatten().map(|origin| format!(" {}", origin.ascii_serialization())).collect()
}

pub(super) fn see_other(target: &str) -> Response {
    let mut response = Response::new("".into());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(target) = HeaderValue::from_str(target) {
        response.headers_mut().insert(header::LOCATION, target);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_in_the_currencys_own_form() {
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
}
