//! What is read from the settings, and what is refused.

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
    let names = registry().flat_map(|it| it.settings.iter().map(|setting| variable(it.name.as_str(), setting.key)));
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
    assert!(none.configured().next().is_none());
    let stripe = [("PAYMENTS_STRIPE_SECRET_KEY", "sk_live_x"), ("PAYMENTS_STRIPE_WEBHOOK_SECRET", "whsec_x")];
    let both = read(&[BKASH.as_slice(), &stripe].concat()).unwrap();
    let urls: Vec<_> = both.configured().map(|(_, settings)| settings.text("base_url")).collect();
    assert_eq!(urls, ["https://tokenized.pay.bka.sh/v1.2.0-beta", "https://api.stripe.com"]);
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
fn the_base_url_of_bkash_follows_its_version_and_may_not_contradict_it() {
    let given = |more: &[(&str, &str)]| read(&[BKASH.as_slice(), more].concat());
    let v2 = given(&[("PAYMENTS_BKASH_VERSION", "v2")]).unwrap();
    let (_, settings) = v2.configured().next().unwrap();
    assert_eq!((settings.text("base_url"), settings.text("refunds")), ("https://tokenized.pay.bka.sh/v2", "by_hand"));
    assert_eq!(v2.modes(), ["bKash for BDT: live"]);
    for (version, url, fits) in [
        ("v2", "https://a.example/v2", true),
        ("v2", "https://a.example/v1.2.0-beta/", false),
        ("v1.2.0-beta", "https://a.example/v2", false),
        ("v1.2.0-beta", "https://a.example", true),
        ("v3", "https://a.example/v3", false),
    ] {
        let read = given(&[("PAYMENTS_BKASH_VERSION", version), ("PAYMENTS_BKASH_BASE_URL", url)]);
        assert_eq!(read.is_ok(), fits, "{version} {url}");
    }
    assert!(given(&[("PAYMENTS_BKASH_REFUNDS", "true")]).is_err());
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
