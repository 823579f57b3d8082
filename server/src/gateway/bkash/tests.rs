//! What bKash's replies mean, and what the adapter sends.

mod calls;
mod notices;
mod refunds;
pub(super) mod world;

use payments_core::Amount;

use super::{
    dialect::{V1, V2},
    refund::is_about_the_refund,
    *,
};
use crate::domain::GatewayRefundState;

fn read_as(dialect: &Dialect, status: u16, json: &str) -> Result<Result<Reply, Rejection>, GatewayError> {
    let calls = crate::metrics::Metrics::new().gateways;
    let http = reqwest::Client::new();
    let transport = Box::new(crate::gateway::call::Network(http.clone()));
    let client = GatewayClient::by(&DECLARED, http, transport, std::sync::Arc::default(), calls);
    let status = StatusCode::from_u16(status).unwrap();
    read(&client, dialect, &Response { status, body: bytes::Bytes::copy_from_slice(json.as_bytes()) })
}

fn read_reply(json: &str) -> Result<Result<Reply, Rejection>, GatewayError> {
    read_as(&V1, 200, json)
}

#[test]
fn an_execute_ends_an_attempt_only_with_a_code_about_the_customer() {
    for code in ["2009", "2019", "2023", "2037", "2041", "2044", "2045", "2046", "2057", "2059", "2069"] {
        assert!(is_certain(code), "{code}");
    }
    for code in [
        "2001", "2002", "2003", "2006", "2008", "2020", "2024", "2029", "2031", "2033", "2048", "2050", "2056", "2060",
        "2061", "2062", "2065", "2067", "2068", "2117", "2119", "503", "9999", "7777", "x", "",
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
fn a_success_of_v2_has_no_code_and_is_told_by_its_status() {
    let created = r#"{"paymentId":"TR1","bkashURL":"https://b.example/1","transactionStatus":"Initiated"}"#;
    assert_eq!(read_as(&V2, 200, created).unwrap().unwrap().payment_id.as_deref(), Some("TR1"));
    assert!(read_as(&V1, 200, created).is_err(), "a success of v1 has a code");
    for (status, json) in [
        (400, created),
        (404, "{}"),
        (200, r#"{"message":"Unauthorized"}"#),
        (200, ""),
        (400, r#"{"statusCode":"0000","paymentId":"TR1"}"#),
        (200, r#"{"statusCode":"503"}"#),
    ] {
        assert!(matches!(read_as(&V2, status, json), Err(GatewayError::Unanswered { .. })), "{status} {json}");
    }
    let token = r#"{"statusCode":"0000","id_token":"t","expires_in":3600,"refresh_token":"r"}"#;
    assert!(read_as(&V2, 200, token).unwrap().unwrap().id_token.is_some());
    let failure =
        r#"{"internalCode":"insufficient_balance","externalCode":"2023","errorMessageEn":"no","errorMessageBn":"না"}"#;
    for (dialect, status) in [(&V2, 400), (&V2, 200), (&V1, 200)] {
        assert_eq!(read_as(dialect, status, failure).unwrap().unwrap_err().code, "2023", "{status}");
    }
    let word = read_as(&V2, 400, r#"{"internalCode":"invalid_payment_state"}"#).unwrap().unwrap_err();
    assert!(!is_certain(&word.code) && !is_about_the_refund(&word.code), "a word alone decides nothing");
}

#[test]
fn ids_and_addresses_are_read_in_both_cases() {
    for json in [
        r#"{"statusCode":"0000","paymentID":"TR1","bkashURL":"u","originalTrxID":"T","refundTrxID":"R"}"#,
        r#"{"statusCode":"0000","paymentId":"TR1","bKashURL":"u","originalTrxId":"T","refundTrxId":"R"}"#,
    ] {
        for dialect in [&V1, &V2] {
            let reply = read_as(dialect, 200, json).unwrap().unwrap();
            assert!(reply.names("TR1") && reply.names("T") && !reply.names("R"), "{json}");
            assert_eq!((reply.payment_id.as_deref(), reply.bkash_url.as_deref()), (Some("TR1"), Some("u")));
        }
    }
}

#[test]
fn only_codes_about_the_refund_refuse_it_for_good() {
    for code in ["2071", "2072", "2073", "2074", "2075", "2076", "2077", "2078", "2080", "2081", "2082"] {
        assert!(is_about_the_refund(code) && !is_certain(code), "{code}");
    }
    for code in
        ["2001", "2002", "2003", "2023", "2033", "2056", "2065", "2070", "2079", "2083", "2127", "2901", "x", ""]
    {
        assert!(!is_about_the_refund(code), "{code}");
    }
}

#[test]
fn a_refund_whose_word_is_unknown_is_pending() {
    let refund = |json: &str| read_as(&V2, 200, json).unwrap().unwrap().refunds();
    for (word, state) in [
        ("Completed", GatewayRefundState::Succeeded),
        ("Processing", GatewayRefundState::Pending),
        ("completed", GatewayRefundState::Pending),
        ("Failed", GatewayRefundState::Pending),
    ] {
        for (status, amount) in [("refundTransactionStatus", "refundAmount"), ("transactionStatus", "amount")] {
            let json = format!(r#"{{"refundTrxId":"R1","{status}":"{word}","{amount}":"5.50","currency":"BDT"}}"#);
            let expected = GatewayRefund {
                reference: "R1".into(),
                id: None,
                amount: Amount::from_minor(550),
                state: state.clone(),
            };
            assert_eq!(refund(&json).unwrap(), std::slice::from_ref(&expected), "{json}");
            assert_eq!(refund(&format!(r#"{{"refundTransactions":[{json}]}}"#)).unwrap(), [expected], "{json}");
        }
    }
    assert_eq!(refund(r#"{"refundTransactions":[]}"#), Some(Vec::new()));
    for json in [
        "{}",
        r#"{"refundTrxId":"R1","refundTransactionStatus":"Completed","refundAmount":"?"}"#,
        r#"{"refundTrxId":"R1","refundTransactionStatus":"Completed","refundAmount":"5","currency":"USD"}"#,
        r#"{"refundTransactions":[{"refundTrxId":"R1","refundAmount":"5.00"}]}"#,
    ] {
        assert_eq!(refund(json), None, "{json}");
    }
}
