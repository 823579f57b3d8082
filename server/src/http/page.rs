//! `/checkout/{id}`: the checkout page, in English or Bangla. It works without JavaScript.
//!
//! Submitting a form redirects to the page itself, which then redirects to the gateway or the shop with a `refresh`. A
//! direct redirect would fail, because browsers apply `form-action` to the redirects of a form too.
//!
//! Only live sessions redirect automatically, because only a merchant's key can create them. Anyone can create a test
//! session, so its page shows the target host and waits for a click.

mod document;
mod fields;
mod format;
mod words;

use askama::Template;
use payments_core::{
    CheckoutSession, ErrorCode, Invalid, MobileNumber, Pay, PaymentMethod, RawStatus, Simulate, SimulateOutcome,
};
use warp::{http::StatusCode, reply::Response};

use self::{
    document::{document, notice},
    fields::{Field, Typed, asked},
    format::{host_of, known_phone},
};
pub(super) use self::{
    document::{error_page, no_such_path},
    format::{digits, minute, moment, money, signed, zone},
};
use super::{
    assets,
    language::{Language, Text},
    reply::{ApiError, Outcome, see_other},
    request::Request,
    theme,
};
use crate::{
    gateway::{self, CustomerField},
    service::{CheckoutView, Receipt, Service, ServiceError},
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
    is_chosen: bool,
}

/// What the page shows in addition to the session's state.
#[derive(Default)]
struct Shown {
    status: StatusCode,
    error: Option<Text>,
    /// What the gateway's code means.
    why: Option<Text>,
    typed: Typed,
}

impl<'p> Page<'p> {
    fn of(request: &'p Request) -> Self {
        let (language, is_chosen) = request.language();
        Self { service: request.service(), id: request.id(), language, is_chosen }
    }

    /// Shows errors as a page, and stores a chosen language in a cookie.
    fn finish(&self, outcome: Outcome) -> Response {
        let mut response = outcome.unwrap_or_else(|error| notice(self.language, error));
        if self.is_chosen {
            self.language.remember("/checkout", &mut response);
        }
        response
    }

    fn here(&self) -> String {
        format!("/checkout/{}?lang={}", self.id, self.language.code())
    }

    async fn show(&self, shown: Shown) -> Outcome {
        let checkout = self.service.checkout_view(self.id).await?;
        let session = &checkout.session;
        let view = match session.status {
            RawStatus::Paid => View::Paid { tells_shop: self.service.tells_shop(&session.id).await? },
            RawStatus::Failed => View::Unpaid(words::FAILED),
            RawStatus::Cancelled => View::Unpaid(words::CANCELLED),
            RawStatus::Refunded => View::Refunded,
            RawStatus::Processing => View::Processing,
            RawStatus::Pending if !session.is_simulated && !session.is_expired => {
                let (error, why) = match shown.error {
                    None => (Some(words::TRY_AGAIN), checkout.why),
                    error => (error, shown.why),
                };
                return self.render(&checkout, View::Choice, Shown { error, why, ..shown });
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
                let given = |it: CustomerField| field(it.name()).filter(|text| !text.trim().is_empty());
                let phone = given(CustomerField::Phone).map(|text| text.parse::<MobileNumber>()).transpose();
                let pay = Pay {
                    payment_method: field("paymentMethod").map(|word| PaymentMethod::from(&*word)),
                    phone_number: phone.as_ref().ok().and_then(Option::as_ref).map(|it| it.as_str().to_owned()),
                    redirect_url: None,
                    customer_name: given(CustomerField::Name),
                    customer_email: given(CustomerField::Email),
                };
                let outcome = match phone {
                    Ok(_) => self.service.pay(self.id, &pay).await.map(|_| ()),
                    Err(_) => {
                        Err(Invalid::field(CustomerField::Phone.name(), ErrorCode::PhoneNumberInvalid, "").into())
                    }
                };
                match outcome {
                    Err(ServiceError::Invalid(invalid)) => {
                        let typed = typed(field("paymentMethod"), given, &invalid);
                        return self.show(Shown { status: StatusCode::BAD_REQUEST, typed, ..Shown::default() }).await;
                    }
                    outcome => outcome,
                }
            }
            _ => return self.show(Shown::default()).await,
        };
        let why = match &outcome {
            Err(ServiceError::Rejected(it)) => gateway::meaning(it.gateway, &it.code),
            _ => None,
        };
        let (status, error) = match outcome {
            Ok(()) => return Ok(see_other(&format!("{}&go", self.here()))),
            // After a second click, a reload or a click in another tab, show the current state.
            Err(ServiceError::Payment(_)) => (StatusCode::OK, None),
            Err(ServiceError::Rejected(_) | ServiceError::NoGateway(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Some(words::REFUSED))
            }
            Err(ServiceError::Gateway(_)) => (StatusCode::SERVICE_UNAVAILABLE, Some(words::NO_ANSWER)),
            Err(error) => return Err(error.into()),
        };
        self.show(Shown { status, error, why, typed: Typed::default() }).await
    }

    async fn simulate(&self, outcome: SimulateOutcome) -> Result<(), ServiceError> {
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

    fn render(&self, checkout: &CheckoutView, view: View<'_>, shown: Shown) -> Outcome {
        let CheckoutView { session, brand, return_url, receipt, .. } = checkout;
        let is_finished = matches!(view, View::Paid { .. } | View::Unpaid(_) | View::Refunded);
        let status = shown.status;
        let known = |field: CustomerField| match field {
            CustomerField::Name => session.customer_name.clone(),
            CustomerField::Email => session.customer_email.clone(),
            CustomerField::Phone => Some(known_phone(session)),
        };
        let known = |field| known(field).filter(|text| !text.trim().is_empty());
        let page = CheckoutPage {
            checkout,
            session,
            amount: money(session.amount, session.currency, self.language),
            theme: brand.colour.map(theme::address),
            fields: asked(&checkout.ways, known, &shown.typed),
            receipt: receipt.as_ref().filter(|_| is_finished),
            view,
            shown,
            next_host: if session.is_simulated && is_finished { host_of(return_url) } else { None },
            here: self.here(),
            language: self.language,
        };
        let html = page.render().map_err(ApiError::internal)?;
        Ok(document(status, self.language, html, brand.logo_url.as_ref()))
    }
}

/// What the customer typed, and the first field that is wrong.
fn typed(way: Option<String>, given: impl Fn(CustomerField) -> Option<String>, invalid: &Invalid) -> Typed {
    let fields = CustomerField::ALL;
    let faults = invalid.fields();
    let fault = fields.into_iter().find_map(|field| {
        let fault = faults.iter().find(|fault| fault.field == field.name())?;
        Some((field, if fault.code == ErrorCode::PhoneNumberInvalid { words::WRONG_PHONE } else { words::NEEDED }))
    });
    Typed { way, values: fields.into_iter().filter_map(|it| Some((it, given(it)?))).collect(), fault }
}

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'s> {
    checkout: &'s CheckoutView,
    session: &'s CheckoutSession,
    amount: String,
    theme: Option<String>,
    receipt: Option<&'s Receipt>,
    view: View<'s>,
    shown: Shown,
    fields: Vec<Field>,
    /// The shop's host, if the page shows it.
    next_host: Option<String>,
    here: String,
    language: Language,
}

impl CheckoutPage<'_> {
    /// Whether a way to pay is chosen: as the customer did before, or else the first.
    fn is_chosen(&self, way: &str, is_first: bool) -> bool {
        self.shown.typed.way.as_ref().map_or(is_first, |chosen| chosen == way)
    }
}

enum View<'v> {
    /// A test session waits for one of the simulator's buttons.
    Simulator,
    /// A live session waits for the customer to choose how to pay.
    Choice,
    Redirect {
        target: &'v str,
        to_shop: bool,
    },
    /// The server is querying the gateway.
    Processing,
    Paid {
        /// Whether the shop has an endpoint that gets the event.
        tells_shop: bool,
    },
    /// Failed, cancelled or expired.
    Unpaid(Text),
    Refunded,
}

impl View<'_> {
    fn is_to_pay(&self) -> bool {
        matches!(self, Self::Simulator | Self::Choice)
    }
}
