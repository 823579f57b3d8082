//! The shop's pages.

use askama::Template;
use payments_client::{Payment, Status};
use warp::http::{HeaderValue, Response, StatusCode, header};

use crate::catalogue::{PRODUCTS, Product};

/// The shelf with all products.
#[derive(Template)]
#[template(path = "shelf.html")]
struct Shelf {
    products: &'static [Product],
}

/// A page with one message.
#[derive(Template)]
#[template(path = "notice.html")]
struct Notice<'n> {
    title: &'n str,
    text: &'n str,
    payment: Option<&'n Payment>,
}

pub(crate) fn shelf() -> Response<String> {
    page(StatusCode::OK, &Shelf { products: &PRODUCTS })
}

/// What became of an order, by what the API says of its payment.
pub(crate) fn order(payment: &Payment) -> Response<String> {
    let (title, text) = match payment.status {
        Status::Completed => ("Thank you", "Your order is paid and on its way."),
        Status::Pending => {
            ("We wait for your payment", "You can still pay. Reload this page to see whether it has arrived.")
        }
        Status::Cancelled => ("You cancelled", "Nothing was charged."),
        Status::Refunded => ("Your money is on its way back", "We have refunded this order."),
        _ => ("It did not work", "Nothing was charged. You can try again."),
    };
    page(StatusCode::OK, &Notice { title, text, payment: Some(payment) })
}

pub(crate) fn not_found() -> Response<String> {
    let text = "We do not know this product or order.";
    page(StatusCode::NOT_FOUND, &Notice { title: "Not here", text, payment: None })
}

/// The payments API does not answer. Do not show its error to customers.
pub(crate) fn unavailable() -> Response<String> {
    let text = "We cannot reach the bank at the moment. Please try again in a minute.";
    page(StatusCode::BAD_GATEWAY, &Notice { title: "One moment", text, payment: None })
}

/// Sends the browser to the checkout.
pub(crate) fn redirect(target: &str) -> Response<String> {
    let Ok(target) = HeaderValue::from_str(target) else { return unavailable() };
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, target);
    response
}

fn page(status: StatusCode, template: &impl Template) -> Response<String> {
    let (status, html) = match template.render() {
        Ok(html) => (status, html),
        Err(error) => {
            eprintln!("cannot render a page: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, String::new())
        }
    };
    let mut response = Response::new(html);
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response
}
