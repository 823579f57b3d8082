//! Notices by SNS: which signatures and which addresses count.

use gateway_fakes::bkash::NOTICE_CERTIFICATE;
use serde_json::json;
use url::Url;

use super::super::notice::{Sns, is_amazons, key_in};

/// Signed with the certificate's key by OpenSSL.
const SIGNED: [(&str, &str); 2] = [
    (
        "1",
        "CvcXXR9/nW7pORpo5XKAfolbrlgmZnOqiNBV/k9teOPKXR0NKN9qYiVxjcu7BaqQNfdLo0RzZ2BUIL7aEQHPuxGavN9qft20h0xo\
        E0wkqnM2sCCvwqDyEjYRihSbMAkY9OgWvLCd8igU/gu6H3RapOa1Cu8YrvsgtUF0HD9E3YF2YTG1YRepwRdBdQCZFHqpxu0oSwph\
        W3p5ZF6IAQpXAhOZD0HRRTP8DD7qFnaHz+7KkYQplkhNUEKk2gmJiB1h339RFAa13Y8OiO8Eq7BukBYKr4R2rbAktmlXOfiYZt5b\
        ouBXaMSKnXeWfRNOeQnfPPq20qcgJJLkQBBU7lTDJw==",
    ),
    (
        "2",
        "XnqGscPBQ/020DznzNMfiSE/NzNGa/uSkNfxdHhlncpyd30dmwlQP0G2aLsEo1/M2ClPyn30KOZfZ4xIT87XxKCgez3gGpCAoA/l\
        zDxb22uXd9L+ccr0uJha+l7OHCTNcclel2hiTjWbPkE88IlR5yyB6og0JjIvsh5zo1yXDecw0pMzzfG/pzqomKkKpYQ1IpBokSP/\
        qEmeFdJDJQw7VcD1Z0lEMYdPi+gG6/586z6/1mcekDipZ5MKAK10fJicCTiAoCOpz9NVYBV5AIgZc6nsbJEUGlKlxVpkGytuVyy3\
        gq+LutqLe9wav8fUdHNe0NsRX1aXJrWD4CvKoNK3XA==",
    ),
];

fn sns(version: &str, signature: &str, changed: &[(&str, &str)]) -> Sns {
    let mut body = json!({"Type": "Notification", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": "arn:aws:sns:ap-southeast-1:000000000000:fake-bkash", "Timestamp": "2026-03-01T06:00:00.000Z",
        "Message": r#"{"trxID":"BFD90JRLST","merchantInvoiceNumber":"none"}"#, "SignatureVersion": version,
        "Signature": signature, "SigningCertURL": "https://sns.ap-southeast-1.amazonaws.com/x.pem"});
    for (field, value) in changed {
        body[*field] = (*value).into();
    }
    serde_json::from_value(body).unwrap()
}

#[test]
fn a_signature_of_either_version_fits_its_message_and_no_other() {
    let key = key_in(NOTICE_CERTIFICATE.as_bytes()).unwrap();
    for (version, signature) in SIGNED {
        assert!(sns(version, signature, &[]).is_signed_by(&key), "version {version}");
        // A notice's signature is not of these.
        assert!(sns(version, signature, &[("Token", "t"), ("SubscribeURL", "u")]).is_signed_by(&key));
        for changed in [
            ("Message", "{}"),
            ("MessageId", "1"),
            ("Subject", "paid"),
            ("Timestamp", "2026-03-02T06:00:00.000Z"),
            ("TopicArn", "arn:aws:sns:ap-southeast-1:000000000001:fake-bkash"),
            ("Type", "SubscriptionConfirmation"),
            ("Signature", ""),
            ("Signature", "AAAA"),
            ("SignatureVersion", "3"),
        ] {
            assert!(!sns(version, signature, &[changed]).is_signed_by(&key), "version {version}: {changed:?}");
        }
        let other = if version == "1" { "2" } else { "1" };
        assert!(!sns(other, signature, &[]).is_signed_by(&key));
    }
    assert!(key_in(b"-----BEGIN CERTIFICATE-----").is_none() && key_in(b"").is_none());
}

#[test]
fn only_addresses_of_sns_are_amazons() {
    let is = |text: &str| is_amazons(&Url::parse(text).unwrap());
    for own in ["https://sns.ap-southeast-1.amazonaws.com/a.pem", "https://sns.cn-north-1.amazonaws.com.cn/a.pem"] {
        assert!(is(own), "{own}");
    }
    for other in [
        "http://sns.ap-southeast-1.amazonaws.com/a.pem",
        "https://sns.ap-southeast-1.amazonaws.com:8443/a.pem",
        "https://a@sns.ap-southeast-1.amazonaws.com/a.pem",
        "https://sns.amazonaws.com.evil.example/a.pem",
        "https://sns.evil.example/sns.ap-southeast-1.amazonaws.com/a.pem",
        "https://bucket.sns.ap-southeast-1.amazonaws.com/a.pem",
        "https://sns..amazonaws.com/a.pem",
        "https://s3.amazonaws.com/a.pem",
    ] {
        assert!(!is(other), "{other}");
    }
}
