//! Notices of payments (IPN), signed as AWS SNS signs them in its version 2: RSA with SHA-256.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};

use super::{Bkash, State, clock};
use crate::{lock, token};

/// The topic of the notices.
pub const NOTICE_TOPIC: &str = "arn:aws:sns:ap-southeast-1:000000000000:fake-bkash";
/// The certificate of the notices' key, in PEM. The fake also serves it at [`CERTIFICATE_PATH`].
pub const NOTICE_CERTIFICATE: &str = include_str!("notice/certificate.pem");
/// The path of the certificate.
pub const CERTIFICATE_PATH: &str = "/SimpleNotificationService-fake.pem";

/// The private key of the certificate, in PKCS#8. It protects nothing.
const KEY: &[u8] = include_bytes!("notice/key.der");
const HOST: &str = "https://sns.ap-southeast-1.amazonaws.com";

/// Where notices go.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// The address, and how many times each notice is sent there.
    target: Option<(String, u32)>,
    certificate_url: Option<String>,
}

impl Bkash {
    /// Sends a notice of each payment to this address from now on, this many times. A repeated notice keeps its `MessageId`.
    pub fn send_notices_to(&self, address: &str, times: u32) {
        lock(&self.state).notices.target = Some((address.to_owned(), times));
    }

    /// Writes this address of the certificate into notices. At the start it is one at AWS, which nobody can fetch.
    pub fn set_certificate_url(&self, url: &str) {
        lock(&self.state).notices.certificate_url = Some(url.to_owned());
    }

    /// The body of a paid payment's notice, signed.
    pub fn notice(&self, payment: &str) -> Option<String> {
        lock(&self.state).notice(payment).map(|notice| notice.to_string())
    }
}

impl State {
    /// Sends the notice of a payment that was just paid.
    pub(super) fn notify(&self, payment: &str) {
        let Some((address, times)) = self.notices.target.clone() else { return };
        let Some(notice) = self.notice(payment) else { return };
        let id = notice.get("MessageId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let body = notice.to_string();
        tokio::spawn(async move {
            let http = reqwest::Client::new();
            for _ in 0..times {
                let request = http.post(&address).header("content-type", "text/plain; charset=UTF-8");
                let request = request.header("x-amz-sns-message-type", "Notification");
                let request = request.header("x-amz-sns-message-id", &id).header("x-amz-sns-topic-arn", NOTICE_TOPIC);
                // SNS retries a failed delivery; the fake does not.
                let _ = request.body(body.clone()).send().await;
            }
        });
    }

    fn notice(&self, payment: &str) -> Option<Value> {
        let payment = self.payments.get(payment)?;
        let message = payment.notice_json()?.to_string();
        let id = message_id(payment.transaction.as_deref()?);
        let timestamp = clock::in_notice(payment.taken_at);
        let signed = [
            ("Message", message.as_str()),
            ("MessageId", &id),
            ("Timestamp", &timestamp),
            ("TopicArn", NOTICE_TOPIC),
            ("Type", "Notification"),
        ];
        let text: String = signed.iter().map(|(name, value)| format!("{name}\n{value}\n")).collect();
        let fallback = || format!("{HOST}{CERTIFICATE_PATH}");
        Some(json!({"Type": "Notification", "MessageId": id, "TopicArn": NOTICE_TOPIC, "Message": message,
            "Timestamp": timestamp, "SignatureVersion": "2", "Signature": signature(text.as_bytes())?,
            "SigningCertURL": self.notices.certificate_url.clone().unwrap_or_else(fallback),
            "UnsubscribeURL": format!("{HOST}/?Action=Unsubscribe")}))
    }
}

/// The id of a transaction's notice, in the form of a UUID.
fn message_id(transaction: &str) -> String {
    let hex = token(&token("", 1, transaction), 2, transaction);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex.get(part).unwrap_or_default());
    parts.join("-")
}

fn signature(text: &[u8]) -> Option<String> {
    let key = RsaKeyPair::from_pkcs8(KEY).ok()?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).ok()?;
    Some(base64(&signature))
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |chunk: &[u8]| {
        let number = (0..3).fold(0_usize, |number, at| number << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        [18, 12, 6, 0].map(|shift| DIGITS.get(number >> shift & 63).map_or('=', |digit| char::from(*digit)))
    };
    let text: String = bytes.chunks(3).flat_map(|chunk| digits(chunk).into_iter().take(chunk.len() + 1)).collect();
    format!("{text}{}", "=".repeat((3 - bytes.len() % 3) % 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_its_padding() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob?>", "Zm9vYj8+")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
