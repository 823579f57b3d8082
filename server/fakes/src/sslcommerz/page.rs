//! The customer's pages.

use super::attempt::Attempt;
use crate::{Answer, Back, escaped};

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
    <title>SSLCommerz (fake)</title><h1>SSLCommerz (fake)</h1>";

/// The page on which the customer pays.
pub(super) fn open(attempt: &Attempt) -> Answer {
    Answer::html(format!(
        "{HEAD}<p>{}: {} {}</p><form method=post><label>Card <input name=card value=4111111111111111></label>\
         <label>OTP <input name=otp value=111111></label>\
         <button name=action value=confirm id=confirm>Pay</button>\
         <button name=action value=fail id=fail>Fail</button>\
         <button name=action value=cancel id=cancel>Cancel</button></form></html>",
        escaped(attempt.field("product_name")),
        escaped(attempt.field("total_amount")),
        escaped(attempt.field("currency"))
    ))
}

/// The page that sends the browser back by POST.
pub(super) fn returning(back: &Back) -> Answer {
    let field = |(name, value): (&String, &String)| {
        format!("<input type=hidden name=\"{}\" value=\"{}\">", escaped(name), escaped(value))
    };
    let fields: String = back.form.iter().map(field).collect();
    Answer::html(format!(
        "{HEAD}<form method=post action=\"{}\" id=back>{fields}<button id=continue>Back to the shop</button></form>\
         <script>document.getElementById('back').submit()</script></html>",
        escaped(&back.url)
    ))
}

pub(super) fn closed() -> Answer {
    Answer::html(format!("{HEAD}<p>This page is not open any more.</p></html>"))
}
