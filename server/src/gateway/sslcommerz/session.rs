//! The form that begins a session, and its reply.

use serde_json::Value;

use super::{
    SslCommerz,
    row::{cut, text},
};
use crate::gateway::{
    answer::Rejection,
    contract::{AttemptRequest, BeginOutcome},
    decimal::with_two_decimals,
    error::GatewayError,
};

/// For an address, which payments do not have.
const NOT_GIVEN: &str = "Not given";

impl SslCommerz {
    /// The form, without the credentials.
    pub(super) fn form(&self, request: &AttemptRequest<'_>) -> Result<Vec<(&'static str, String)>, Rejection> {
        let payment = request.payment;
        let lacks = |field, what: &str| self.client.rejection(field, format!("it needs the customer's {what}"));
        let name = request.customer.name.as_deref().map(one_line).filter(|name| !name.is_empty());
        let email = request.customer.email.as_deref().ok_or_else(|| lacks("cus_email", "e-mail address"))?;
        // A shorter one would be somebody else's.
        if email.chars().count() > 50 {
            return Err(lacks("cus_email", "e-mail address in at most 50 characters"));
        }
        let description = payment.description.as_deref().map(one_line).filter(|text| !text.is_empty());
        let product = description.unwrap_or_else(|| one_line(request.merchant_name));
        let product = if product.is_empty() { "Payment".to_owned() } else { product };
        let back = request.return_url;
        // Notices go to the gateway's other route.
        let notices = back.rsplit_once("/return/").map(|(gateway, _)| format!("{gateway}/webhook"));
        Ok(vec![
            ("total_amount", with_two_decimals(payment.amount)),
            ("currency", payment.currency.code().to_owned()),
            ("tran_id", request.invoice.to_owned()),
            ("success_url", back.to_owned()),
            ("fail_url", back.to_owned()),
            ("cancel_url", back.to_owned()),
            ("ipn_url", notices.unwrap_or_default()),
            ("cus_name", cut(&name.ok_or_else(|| lacks("cus_name", "name"))?, 50)),
            ("cus_email", email.to_owned()),
            ("cus_phone", request.customer.phone.clone().ok_or_else(|| lacks("cus_phone", "mobile number"))?),
            ("cus_add1", NOT_GIVEN.to_owned()),
            ("cus_city", NOT_GIVEN.to_owned()),
            ("cus_postcode", NOT_GIVEN.to_owned()),
            ("cus_country", "Bangladesh".to_owned()),
            ("shipping_method", "NO".to_owned()),
            ("num_of_item", "1".to_owned()),
            ("product_name", cut(&product, 255)),
            ("product_category", "general".to_owned()),
            ("product_profile", "general".to_owned()),
            ("emi_option", "0".to_owned()),
            // The panel shows it to a person.
            ("value_a", payment.id.to_string()),
        ])
    }

    pub(super) fn begun(&self, reply: &Value) -> Result<BeginOutcome, GatewayError> {
        let (external_id, customer_url) = (text(reply, "sessionkey"), text(reply, "GatewayPageURL"));
        match &*text(reply, "status") {
            "SUCCESS" if !external_id.is_empty() && !customer_url.is_empty() => {
                Ok(BeginOutcome::SendTo { external_id, customer_url })
            }
            "FAILED" => {
                Ok(BeginOutcome::Rejected(self.client.rejection("FAILED", one_line(&text(reply, "failedreason")))))
            }
            _ => Err(self.client.unanswered("the new session has no sessionkey or no GatewayPageURL")),
        }
    }
}

/// A text in one line, without spaces at its ends.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use payments_core::{Customer, Payment};

    use super::*;
    use crate::{
        domain::new_session,
        gateway::{
            call::Network,
            sslcommerz::{DECLARED, GatewayClient, Settings},
        },
    };

    #[test]
    fn texts_are_cut_between_characters_and_a_missing_or_long_address_is_refused() {
        let http = reqwest::Client::new();
        let calls = crate::metrics::Metrics::new().gateways;
        let client =
            GatewayClient::by(&DECLARED, http.clone(), Box::new(Network(http)), std::sync::Arc::default(), calls);
        let gateway = SslCommerz { client, settings: Settings::default() };
        let mut payment = new_session().payment;
        payment.description = Some(format!("  Two\ncups {}", "চা".repeat(300)));
        let customer = Customer {
            name: Some("রহিম ".repeat(30)),
            email: Some("karim@example.com".into()),
            phone: Some("01712345678".into()),
            ..Customer::default()
        };
        let request = AttemptRequest {
            payment: &payment,
            invoice: "T1",
            merchant_name: "Rahim & Sons",
            return_url: "https://pay.example/return/x/gateways/sslcommerz/return/pay_1",
            customer: &customer,
            expires_at: payment.created_at,
        };
        let form = gateway.form(&request).unwrap();
        let field = |name: &str| &*form.iter().find(|(it, _)| *it == name).unwrap().1;
        assert!(field("product_name").starts_with("Two cups চা") && field("product_name").chars().count() == 255);
        assert_eq!(field("cus_name").chars().count(), 50);
        assert_eq!(field("ipn_url"), "https://pay.example/return/x/gateways/sslcommerz/webhook");
        assert!(form.iter().all(|(name, _)| !name.starts_with("store_")));

        let long = format!("{}@example.com", "a".repeat(39));
        let with = |change: &dyn Fn(&mut Customer)| {
            let mut changed = customer.clone();
            change(&mut changed);
            changed
        };
        for (customer, lacks) in [
            (with(&|it| it.name = Some("  ".into())), "name"),
            (with(&|it| it.name = None), "name"),
            (with(&|it| it.email = None), "e-mail address"),
            (with(&|it| it.email = Some(long.clone())), "e-mail address in at most 50 characters"),
            (with(&|it| it.phone = None), "mobile number"),
        ] {
            let refused = gateway.form(&AttemptRequest { customer: &customer, ..request }).unwrap_err();
            assert_eq!(refused.message, format!("it needs the customer's {lacks}"));
        }
        let nameless = Payment { description: Some(" \n".into()), ..payment.clone() };
        let form = gateway.form(&AttemptRequest { payment: &nameless, ..request }).unwrap();
        assert!(form.contains(&("product_name", "Rahim & Sons".to_owned())));
    }
}
