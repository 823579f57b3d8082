//! Notices of payments (IPN), which bKash sends by Amazon SNS to an address that it registers by hand.
//!
//! Anybody with an AWS account can have SNS sign a message. So a notice counts only if it is of the configured topic, its
//! certificate is Amazon's, and its signature fits (AWS, "Verifying the signatures of Amazon SNS messages").

use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use payments_core::{PaymentId, Timestamp};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;
use x509_cert::{
    Certificate,
    der::{DecodePem, Encode},
};

use super::Bkash;
use crate::gateway::notice::{Notice, NoticeError, NoticeSubject, PaymentOf};

/// A notice is smaller: SNS sends at most 256 KiB, and bKash's message has a dozen fields.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// The least time between two certificates that are asked for.
const PAUSE_MILLIS: i64 = 10_000;

/// A message of SNS.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Sns {
    #[serde(rename = "Type")]
    kind: String,
    message: String,
    message_id: String,
    timestamp: String,
    topic_arn: String,
    subject: Option<String>,
    token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    subscribe_url: Option<String>,
    signature_version: String,
    signature: String,
    #[serde(rename = "SigningCertURL")]
    certificate_url: String,
}

/// What bKash says of a payment, as far as it matters: how it is named.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    merchant_invoice_number: Option<String>,
    #[serde(rename = "trxID")]
    transaction: Option<String>,
}

impl Sns {
    /// The text that its signature is of.
    fn signed(&self) -> String {
        let (subject, token, url) = (self.subject.as_deref(), self.token.as_deref(), self.subscribe_url.as_deref());
        let is_notice = self.kind == "Notification";
        let parts = [
            ("Message", Some(&*self.message)),
            ("MessageId", Some(&*self.message_id)),
            ("Subject", subject.filter(|_| is_notice)),
            ("SubscribeURL", url.filter(|_| !is_notice)),
            ("Timestamp", Some(&*self.timestamp)),
            ("Token", token.filter(|_| !is_notice)),
            ("TopicArn", Some(&*self.topic_arn)),
            ("Type", Some(&*self.kind)),
        ];
        parts.iter().filter_map(|(name, value)| Some(format!("{name}\n{}\n", (*value)?))).collect()
    }

    /// Whether the signature fits the public key, in DER.
    pub(super) fn is_signed_by(&self, key: &[u8]) -> bool {
        let algorithm = match self.signature_version.as_str() {
            "1" => &RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            "2" => &RSA_PKCS1_2048_8192_SHA256,
            _ => return false,
        };
        let signature = BASE64_STANDARD.decode(&self.signature).unwrap_or_default();
        UnparsedPublicKey::new(algorithm, key).verify(self.signed().as_bytes(), &signature).is_ok()
    }
}

/// Whether an address is one of SNS, in any region.
pub(super) fn is_amazons(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"));
    let region = host.and_then(|host| host.strip_prefix("sns.")).unwrap_or_default();
    let is_region = !region.is_empty() && region.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    is_region
        && url.scheme() == "https"
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// The public key of a certificate in PEM.
pub(super) fn key_in(pem: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::from_pem(pem).ok()?;
    certificate.tbs_certificate.subject_public_key_info.to_der().ok()
}

/// The last certificate of a notice.
#[derive(Default)]
pub(super) struct Certificates(Mutex<LastCertificate>);

#[derive(Default)]
struct LastCertificate {
    url: String,
    /// Its public key.
    key: Vec<u8>,
    /// When one was asked for.
    asked_at: Option<Timestamp>,
}

impl Bkash {
    /// Reads a notice of the configured topic. `None` if no payment is to be asked about.
    pub(super) async fn told(&self, body: &[u8], now: Timestamp) -> Result<Option<Notice<'_>>, NoticeError> {
        let topic = self.settings.text("notice_topic");
        if topic.is_empty() {
            return Err(NoticeError::Unsigned(
                "PAYMENTS_BKASH_NOTICE_TOPIC is not set, so no notice is known to be bKash's",
            ));
        }
        let sns: Sns =
            serde_json::from_slice(body).map_err(|_| NoticeError::Unsigned("this is no message of Amazon SNS"))?;
        if sns.topic_arn != topic {
            return Err(NoticeError::Unsigned("the notice is of another topic"));
        }
        let key = self.key_at(&sns.certificate_url, now).await?;
        if !sns.is_signed_by(&key) {
            return Err(NoticeError::Unsigned("the signature does not fit the notice"));
        }
        match sns.kind.as_str() {
            "Notification" => {}
            "SubscriptionConfirmation" => {
                self.subscribe(sns.subscribe_url.as_deref().unwrap_or_default()).await?;
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let Ok(told) = serde_json::from_str::<Told>(&sns.message) else { return Ok(None) };
        let invoice = told.merchant_invoice_number.unwrap_or_default();
        let payment = invoice.split('-').next().and_then(|id| id.parse::<PaymentId>().ok());
        let of = payment.map(PaymentOf::Payment).or(told.transaction.map(PaymentOf::Reference));
        Ok(of.map(|of| Notice { subject: NoticeSubject::Attempt(of), claimed: None }))
    }

    /// The public key of the certificate at an address of Amazon, or of bKash's own API.
    async fn key_at(&self, address: &str, now: Timestamp) -> Result<Vec<u8>, NoticeError> {
        let url = self.trusted(address).filter(|url| url.path().ends_with(".pem"));
        let url = url.ok_or(NoticeError::Unsigned("the certificate is not at Amazon"))?;
        let mut last = self.certificates.0.lock().await;
        let is_recent = last.asked_at.is_some_and(|at| now.as_millis() - at.as_millis() < PAUSE_MILLIS);
        if last.url != address && !is_recent {
            last.asked_at = Some(now);
            let read = self.client.send(self.client.http.get(url)).await;
            let key = read.ok().and_then(|response| key_in(&response.body));
            tracing::info!(
                gateway = "bkash",
                what = "certificate",
                is_read = key.is_some(),
                "asked for a notice's certificate"
            );
            // One that cannot be read leaves the last good one.
            if let Some(key) = key {
                (last.url, last.key) = (address.to_owned(), key);
            }
        }
        let why = NoticeError::Unsigned("the certificate could not be read; send the notice again later");
        if last.url == address { Ok(last.key.clone()) } else { Err(why) }
    }

    /// Confirms the subscription to the topic.
    async fn subscribe(&self, address: &str) -> Result<(), NoticeError> {
        let url = self.trusted(address).ok_or(NoticeError::Unsigned("the confirmation is not at Amazon"))?;
        match self.client.send(self.client.http.get(url)).await {
            Ok(response) if response.status.is_success() => Ok(()),
            _ => Err(NoticeError::Unsigned("the subscription could not be confirmed; send it again later")),
        }
    }

    fn trusted(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        let own = Url::parse(self.settings.text("base_url")).ok()?;
        (is_amazons(&url) || url.origin() == own.origin()).then_some(url)
    }
}
