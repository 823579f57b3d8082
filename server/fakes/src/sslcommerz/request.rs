//! The fields of a session request.

use super::{
    known::{LARGEST, SMALLEST, in_taka},
    money::minor,
};
use crate::{Call, Form};

/// The fields without which no session begins, and their largest lengths.
const ESSENTIAL: [(&str, usize); 9] = [
    ("total_amount", 13),
    ("currency", 3),
    ("tran_id", 30),
    ("success_url", 255),
    ("fail_url", 255),
    ("cancel_url", 255),
    ("cus_name", 50),
    ("cus_email", 50),
    ("cus_phone", 20),
];
/// The other mandatory fields. Official samples omit `cus_postcode`, so it is not here.
const MANDATORY: [(&str, usize); 8] = [
    ("product_category", 100),
    ("cus_add1", 50),
    ("cus_city", 50),
    ("cus_country", 50),
    ("shipping_method", 50),
    ("num_of_item", 10),
    ("product_name", 255),
    ("product_profile", 100),
];
const OPTIONAL: [(&str, usize); 11] = [
    ("ipn_url", 255),
    ("multi_card_name", 30),
    ("allowed_bin", 255),
    ("value_a", 255),
    ("value_b", 255),
    ("value_c", 255),
    ("value_d", 255),
    ("cus_add2", 50),
    ("cus_state", 50),
    ("cus_postcode", 30),
    ("cus_fax", 20),
];
const SHIPPING: [&str; 7] =
    ["ship_name", "ship_add1", "ship_area", "ship_city", "ship_sub_city", "ship_postcode", "ship_country"];
const LOGISTIC: [&str; 3] = ["weight_of_items", "logistic_pickup_id", "logistic_delivery_type"];

/// A mandatory field that is missing, or another reason to refuse a session.
pub(super) fn check(form: &Form, is_strict: bool) -> Result<(), String> {
    let text = |name: &str| form.get(name).map_or("", String::as_str);
    let missing = |name: &str| Err(format!("Invalid Information! '{name}' is missing or empty."));
    let invalid = |name: &str| Err(format!("Invalid Information! '{name}' is invalid."));
    let mandatory: Vec<(&str, usize)> = match is_strict {
        true => [&ESSENTIAL[..], &MANDATORY].concat(),
        false => ESSENTIAL.to_vec(),
    };
    if let Some((name, _)) = mandatory.iter().find(|(name, _)| text(name).is_empty()) {
        return missing(name);
    }
    for (name, most) in ESSENTIAL.into_iter().chain(MANDATORY).chain(OPTIONAL) {
        if text(name).chars().count() > most {
            return Err(format!("Invalid Information! '{name}' is longer than {most} characters."));
        }
    }
    let Some(amount) = minor(text("total_amount")) else { return invalid("total_amount") };
    let Some(taka) = in_taka(text("currency"), amount) else { return invalid("currency") };
    if !(SMALLEST..=LARGEST).contains(&taka) {
        return Err("Invalid Information! 'total_amount' must be from 10.00 to 500000.00 BDT.".into());
    }
    for name in ["success_url", "fail_url", "cancel_url", "ipn_url"] {
        let is_web = |url: url::Url| ["http", "https"].contains(&url.scheme());
        if !text(name).is_empty() && !url::Url::parse(text(name)).is_ok_and(is_web) {
            return invalid(name);
        }
    }
    match is_strict {
        true => check_details(&text).map_or(Ok(()), |name| match text(name) {
            "" => missing(name),
            _ => invalid(name),
        }),
        false => Ok(()),
    }
}

/// The first field that the shipping, the product or the instalments lack, or that has an unknown value.
fn check_details<'f>(text: &impl Fn(&str) -> &'f str) -> Option<&'static str> {
    let absent = |names: &[&'static str]| names.iter().copied().find(|name| text(name).is_empty());
    let shipping = match text("shipping_method") {
        "NO" => None,
        "YES" | "Courier" => absent(&SHIPPING),
        "SSLCOMMERZ_LOGISTIC" => absent(&SHIPPING).or_else(|| absent(&LOGISTIC)),
        _ => Some("shipping_method"),
    };
    let product = match text("product_profile") {
        "general" | "physical-goods" | "non-physical-goods" => None,
        "airline-tickets" => {
            absent(&["hours_till_departure", "flight_type", "pnr", "journey_from_to", "third_party_booking"])
        }
        "travel-vertical" => absent(&["hotel_name", "length_of_stay", "check_in_time", "hotel_city"]),
        "telecom-vertical" => absent(&["product_type", "topup_number", "country_topup"]),
        _ => Some("product_profile"),
    };
    let outside =
        |name: &'static str, known: &[&str]| (!text(name).is_empty() && !known.contains(&text(name))).then_some(name);
    let items = text("num_of_item").parse::<u32>().is_err().then_some("num_of_item");
    let amounts = ["product_amount", "vat", "discount_amount", "convenience_fee"];
    let amount = amounts.into_iter().find(|name| !text(name).is_empty() && minor(text(name)).is_none());
    shipping
        .or(product)
        .or(items)
        .or(amount)
        .or_else(|| outside("emi_option", &["0", "1"]))
        .or_else(|| outside("emi_allow_only", &["0", "1"]))
        .or_else(|| outside("emi_max_inst_option", &["3", "6", "9"]))
}

/// The fields of a form or, if the fake takes it, of a multipart body. `None` for another body.
pub(super) fn read(call: &Call, takes_multipart: bool) -> Option<Form> {
    let kind = call.header("content-type");
    if kind.starts_with("application/x-www-form-urlencoded") {
        return Some(call.form());
    }
    let boundary = kind.strip_prefix("multipart/form-data").filter(|_| takes_multipart)?.split("boundary=").nth(1)?;
    let body = String::from_utf8_lossy(&call.body);
    let part = |part: &str| {
        let (head, value) = part.split_once("\r\n\r\n")?;
        let name = head.split("name=\"").nth(1)?.split('"').next()?;
        Some((name.to_owned(), value.strip_suffix("\r\n").unwrap_or(value).to_owned()))
    };
    Some(body.split(&format!("--{}", boundary.trim_matches('"'))).filter_map(part).collect())
}
