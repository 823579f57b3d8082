//! The gateways' credentials: from the environment or a file, never from the command line, because other users can read it.

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

/// The credentials of each configured gateway.
#[derive(Debug, Default)]
pub struct Credentials {
    pub bkash: Option<BkashCredentials>,
    pub stripe: Option<StripeCredentials>,
}

/// A bKash merchant account for tokenized checkout.
#[derive(Debug, Clone)]
pub struct BkashCredentials {
    pub(super) base_url: String,
    pub(super) app_key: SecretString,
    pub(super) app_secret: SecretString,
    pub(super) username: SecretString,
    pub(super) password: SecretString,
}

#[derive(Debug, Clone)]
pub struct StripeCredentials {
    pub(super) base_url: String,
    pub(super) secret_key: SecretString,
    /// The secret of the endpoint at Stripe that sends events to this server.
    pub(super) webhook_secret: SecretString,
}

/// The sections of the configuration file that contain credentials, and their keys. The environment variable of `secret_key`
/// in `[stripe]` is `PAYMENTS_STRIPE_SECRET_KEY`.
pub const CREDENTIALS: [(&str, &[&str]); 2] = [
    ("bkash", &["base_url", "app_key", "app_secret", "username", "password"]),
    ("stripe", &["base_url", "secret_key", "webhook_secret"]),
];

const BKASH_LIVE: &str = "https://tokenized.pay.bka.sh/v1.2.0-beta";
const STRIPE_LIVE: &str = "https://api.stripe.com";

/// A gateway's credential cannot be used. The error never quotes it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {what}")]
pub struct CredentialError {
    /// The credential, by the name of its environment variable.
    pub variable: &'static str,
    /// What is wrong, and what to do. Continues a sentence that begins with the variable's name.
    pub what: &'static str,
}

const INCOMPLETE_BKASH: &str = "is not set, but other credentials of [bkash] are; set all of them, or none";
const INCOMPLETE_STRIPE: &str = "is not set, but other credentials of [stripe] are; set secret_key and webhook_secret. Stripe's \
    dashboard shows the latter, whsec_…, for an endpoint at the base URL and /gateways/stripe/webhook";
const NOT_WRITABLE: &str = "must be visible ASCII characters without spaces";
const NOT_A_BASE_URL: &str = "must be an absolute https URL without a query or a password; http is allowed only for this \
    machine's own addresses";
const PUBLISHABLE_KEY: &str =
    "is a publishable key, which is for browsers; use the secret key, which begins with sk_ or rk_";
const NOT_A_SECRET_KEY: &str = "must begin with sk_ or rk_, as the secret keys in Stripe's dashboard do";
const NOT_A_WEBHOOK_SECRET: &str =
    "must begin with whsec_, as the signing secret of an endpoint in Stripe's dashboard does";

impl Credentials {
    /// Each configured gateway: its currency, and whether it moves real money.
    pub fn modes(&self) -> Vec<String> {
        let bkash = self.bkash.as_ref().map(|BkashCredentials { base_url, .. }| match base_url.as_str() {
            BKASH_LIVE => "bKash for BDT: live".to_owned(),
            url if url.contains("sandbox") => format!("bKash for BDT: bKash's sandbox at {url}"),
            url => format!("bKash for BDT: at {url}"),
        });
        let stripe = self.stripe.as_ref().map(|StripeCredentials { base_url, secret_key, .. }| {
            let is_test = secret_key.expose_secret().contains("_test_");
            match (base_url.as_str(), is_test) {
                (STRIPE_LIVE, true) => "Stripe for USD: test mode".to_owned(),
                (STRIPE_LIVE, false) => "Stripe for USD: live".to_owned(),
                (url, _) => format!("Stripe for USD: at {url}"),
            }
        });
        bkash.into_iter().chain(stripe).collect()
    }

    /// Checks the credentials. `find` returns each value by the name of its environment variable.
    pub fn read(find: impl Fn(&str) -> Option<SecretString>) -> Result<Self, CredentialError> {
        let one = |variable: &'static str| match find(variable) {
            Some(value) if !is_writable(value.expose_secret()) => Err(CredentialError { variable, what: NOT_WRITABLE }),
            value => Ok(value),
        };
        let bkash_url = base_url("PAYMENTS_BKASH_BASE_URL", one("PAYMENTS_BKASH_BASE_URL")?, BKASH_LIVE)?;
        let bkash = [
            "PAYMENTS_BKASH_APP_KEY",
            "PAYMENTS_BKASH_APP_SECRET",
            "PAYMENTS_BKASH_USERNAME",
            "PAYMENTS_BKASH_PASSWORD",
        ];
        let bkash = all_or_none(INCOMPLETE_BKASH, bkash, one)?.map(|[app_key, app_secret, username, password]| {
            BkashCredentials { base_url: bkash_url, app_key, app_secret, username, password }
        });
        let stripe_url = base_url("PAYMENTS_STRIPE_BASE_URL", one("PAYMENTS_STRIPE_BASE_URL")?, STRIPE_LIVE)?;
        let stripe = ["PAYMENTS_STRIPE_SECRET_KEY", "PAYMENTS_STRIPE_WEBHOOK_SECRET"];
        let stripe = match all_or_none(INCOMPLETE_STRIPE, stripe, one)? {
            Some([secret_key, webhook_secret]) => Some(StripeCredentials::new(stripe_url, secret_key, webhook_secret)?),
            None => None,
        };
        Ok(Self { bkash, stripe })
    }
}

impl StripeCredentials {
    /// Checks that each secret is of its kind. Otherwise two swapped secrets would fail only at the first payment.
    fn new(base_url: String, secret_key: SecretString, webhook_secret: SecretString) -> Result<Self, CredentialError> {
        let begins = |secret: &SecretString, prefixes: &[&str]| {
            prefixes.iter().any(|prefix| secret.expose_secret().starts_with(prefix))
        };
        let wrong_key = match () {
            () if begins(&secret_key, &["sk_", "rk_"]) => None,
            () if begins(&secret_key, &["pk_"]) => Some(PUBLISHABLE_KEY),
            () => Some(NOT_A_SECRET_KEY),
        };
        if let Some(what) = wrong_key {
            return Err(CredentialError { variable: "PAYMENTS_STRIPE_SECRET_KEY", what });
        }
        if !begins(&webhook_secret, &["whsec_"]) {
            return Err(CredentialError { variable: "PAYMENTS_STRIPE_WEBHOOK_SECRET", what: NOT_A_WEBHOOK_SECRET });
        }
        Ok(Self { base_url, secret_key, webhook_secret })
    }
}

/// Whether a value can be sent in a request header.
fn is_writable(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn all_or_none<const N: usize>(
    what: &'static str,
    names: [&'static str; N],
    one: impl Fn(&'static str) -> Result<Option<SecretString>, CredentialError>,
) -> Result<Option<[SecretString; N]>, CredentialError> {
    let values = names.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    match names.iter().zip(&values).find(|(_, value)| value.is_none()) {
        Some((variable, _)) if values.iter().any(Option::is_some) => Err(CredentialError { variable, what }),
        _ => Ok(values.into_iter().collect::<Option<Vec<_>>>().and_then(|values| values.try_into().ok())),
    }
}

/// Checks the base URL. Secrets are sent there, so it must be https or this machine. Calls append their paths to it.
fn base_url(variable: &'static str, given: Option<SecretString>, live: &str) -> Result<String, CredentialError> {
    let text = given.map_or_else(|| live.to_owned(), |given| given.expose_secret().to_owned());
    let wrong = CredentialError { variable, what: NOT_A_BASE_URL };
    let Ok(url) = Url::parse(&text) else { return Err(wrong) };
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err(wrong);
    }
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match (url.scheme(), is_local) {
        ("https", _) | ("http", true) => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Credentials, CredentialError> {
        Credentials::read(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn each_key_of_the_configuration_file_is_read() {
        let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let none = Credentials::read(|name| {
            asked.borrow_mut().insert(name.to_owned());
            None
        });
        none.unwrap();
        let names =
            CREDENTIALS.iter().flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}_{key}")));
        let names = names.map(|name| format!("PAYMENTS_{}", name.to_ascii_uppercase()));
        assert_eq!(asked.into_inner(), names.collect());
    }

    const BKASH: [(&str, &str); 4] = [
        ("PAYMENTS_BKASH_APP_KEY", "key"),
        ("PAYMENTS_BKASH_APP_SECRET", "hush"),
        ("PAYMENTS_BKASH_USERNAME", "user"),
        ("PAYMENTS_BKASH_PASSWORD", "hush-too"),
    ];

    #[test]
    fn a_gateway_has_either_all_its_credentials_or_none() {
        let none = read(&[]).unwrap();
        assert!(none.bkash.is_none() && none.stripe.is_none());
        let stripe = [("PAYMENTS_STRIPE_SECRET_KEY", "sk_live_x"), ("PAYMENTS_STRIPE_WEBHOOK_SECRET", "whsec_x")];
        let both = read(&[BKASH.as_slice(), &stripe].concat()).unwrap();
        assert_eq!(both.bkash.unwrap().base_url, BKASH_LIVE);
        assert_eq!(both.stripe.unwrap().base_url, STRIPE_LIVE);
        for (given, variable) in [
            (&BKASH[..3], "PAYMENTS_BKASH_PASSWORD"),
            (&stripe[..1], "PAYMENTS_STRIPE_WEBHOOK_SECRET"),
            (&stripe[1..], "PAYMENTS_STRIPE_SECRET_KEY"),
        ] {
            let error = read(given).unwrap_err();
            assert!(error.variable == variable && error.what.starts_with("is not set"), "{error}");
        }
    }

    #[test]
    fn a_swapped_secret_is_refused_and_not_shown() {
        for (key, webhook, says) in [
            ("pk_live_hush", "whsec_hush", "PAYMENTS_STRIPE_SECRET_KEY is a publishable key"),
            ("whsec_hush", "sk_live_hush", "PAYMENTS_STRIPE_SECRET_KEY must begin with sk_ or rk_"),
            ("rk_live_hush", "we_hush", "PAYMENTS_STRIPE_WEBHOOK_SECRET must begin with whsec_"),
        ] {
            let pairs = [("PAYMENTS_STRIPE_SECRET_KEY", key), ("PAYMENTS_STRIPE_WEBHOOK_SECRET", webhook)];
            let shown = read(&pairs).unwrap_err().to_string();
            assert!(shown.starts_with(says) && !shown.contains("hush"), "{shown}");
        }
    }

    #[test]
    fn a_gateways_mode_says_whether_it_moves_real_money() {
        let modes = |more: &[(&str, &str)]| read(&[&BKASH, more].concat()).unwrap().modes();
        let stripe = |key| [("PAYMENTS_STRIPE_SECRET_KEY", key), ("PAYMENTS_STRIPE_WEBHOOK_SECRET", "whsec_x")];
        assert_eq!(read(&[]).unwrap().modes(), [""; 0]);
        assert_eq!(modes(&stripe("sk_live_x")), ["bKash for BDT: live", "Stripe for USD: live"]);
        assert_eq!(modes(&stripe("rk_test_x"))[1], "Stripe for USD: test mode");
        let fake = [("PAYMENTS_STRIPE_BASE_URL", "http://127.0.0.1:9/")];
        assert_eq!(modes(&[&stripe("sk_test_x")[..], &fake].concat())[1], "Stripe for USD: at http://127.0.0.1:9");
        let sandbox = "https://tokenized.sandbox.bka.sh/v1.2.0-beta";
        let expected = [format!("bKash for BDT: bKash's sandbox at {sandbox}")];
        assert_eq!(modes(&[("PAYMENTS_BKASH_BASE_URL", sandbox)]), expected);
    }

    #[test]
    fn secrets_are_sent_over_https_or_to_this_machine() {
        for (url, fits) in [
            ("https://gateway.example/v1/", true),
            ("http://127.0.0.1:8000", true),
            ("http://[::1]:8000", true),
            ("http://localhost:8000", true),
            ("http://gateway.example", false),
            ("ftp://127.0.0.1", false),
            ("gateway.example", false),
            ("https://gateway.example/v1?key=1", false),
            ("https://gateway.example/v1#here", false),
            ("https://user:hush@gateway.example", false),
        ] {
            let parts = [BKASH.as_slice(), &[("PAYMENTS_BKASH_BASE_URL", url)]].concat();
            assert_eq!(read(&parts).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let shown = format!("{:?}", read(&BKASH).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }
}
