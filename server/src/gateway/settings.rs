//! The gateways' settings: from the environment or a file, never from the command line, because other users can read it.

use std::collections::BTreeMap;

use payments_core::Currency;
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::{Declaration, registry};
use crate::domain::GatewayName;

/// A setting of a gateway. The environment variable of `secret_key` in `[cards]` is `PAYMENTS_CARDS_SECRET_KEY`.
pub struct Setting {
    pub key: &'static str,
    pub kind: SettingKind,
}

#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// The base URL of its API: by default the live one, which may depend on the settings before it.
    Url { live: fn(&Settings) -> &'static str },
    /// A part of its credentials. A gateway is configured if it has all of them.
    Credential,
    /// One of these words: by default the first.
    Word(&'static [&'static str]),
    /// By default empty.
    Optional,
}

/// The settings of a configured gateway.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<&'static str, SecretString>);

impl Settings {
    /// The value of a setting. All declared ones have one.
    pub fn secret(&self, key: &str) -> SecretString {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// The value of a setting as a text, which no log and no error may show if it is a credential.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |value| value.expose_secret())
    }

    /// Whether a credential begins with one of these.
    pub fn begins(&self, key: &str, prefixes: &[&str]) -> bool {
        prefixes.iter().any(|prefix| self.text(key).starts_with(prefix))
    }
}

/// The settings of each configured gateway, in the order of the registry.
#[derive(Debug, Default)]
pub struct Credentials(Vec<(&'static Declaration, Settings)>);

/// A gateway's setting cannot be used. The error never quotes it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {what}")]
pub struct CredentialError {
    /// The setting, by the name of its environment variable.
    pub variable: String,
    /// What is wrong, and what to do. Continues a sentence that begins with the variable's name.
    pub what: String,
}

/// A gateway refuses one of its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingError {
    pub key: &'static str,
    pub what: &'static str,
}

const NOT_WRITABLE: &str = "must be visible ASCII characters without spaces";
const NOT_A_BASE_URL: &str = "must be an absolute https URL without a query or a password; http is allowed only for this \
    machine's own addresses";

/// The environment variable of a gateway's setting.
pub fn variable(section: &str, key: &str) -> String {
    format!("PAYMENTS_{section}_{key}").to_ascii_uppercase()
}

impl Credentials {
    /// Each configured gateway, with its settings.
    pub fn configured(&self) -> impl Iterator<Item = (&'static Declaration, &Settings)> {
        self.0.iter().map(|(declared, settings)| (*declared, settings))
    }

    /// The settings of a gateway; `None` if it is not configured.
    pub(super) fn settings_of(&self, name: GatewayName) -> Option<&Settings> {
        self.configured().find(|(declared, _)| declared.name == name).map(|(_, settings)| settings)
    }

    /// Each configured gateway: its currencies, and whether it moves real money.
    pub fn modes(&self) -> Vec<String> {
        let mode = |(declared, settings): (&Declaration, &Settings)| {
            let currencies = declared.currencies();
            let currencies: Vec<_> = currencies.iter().map(Currency::code).collect();
            format!("{} for {}: {}", declared.title, currencies.join(" and "), declared.mode_of(settings))
        };
        self.configured().map(mode).collect()
    }

    /// Checks the settings. `find` returns each value by the name of its environment variable.
    pub fn read(find: impl Fn(&str) -> Option<SecretString>) -> Result<Self, CredentialError> {
        let read = |declared| Ok(settings_of(declared, &find)?.map(|settings| (declared, settings)));
        let settings = registry().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Self(settings.into_iter().flatten().collect()))
    }
}

/// The settings of a gateway; `None` if it is not configured.
fn settings_of(
    declared: &Declaration,
    find: &impl Fn(&str) -> Option<SecretString>,
) -> Result<Option<Settings>, CredentialError> {
    let wrong =
        |key: &str, what: &str| CredentialError { variable: variable(declared.name.as_str(), key), what: what.into() };
    let (mut settings, mut missing) = (Settings::default(), None);
    let mut has_credentials = false;
    for Setting { key, kind } in declared.settings {
        let given = find(&variable(declared.name.as_str(), key));
        if given.as_ref().is_some_and(|value| !is_writable(value.expose_secret())) {
            return Err(wrong(key, NOT_WRITABLE));
        }
        let value = match (kind, given) {
            (SettingKind::Url { live }, None) => live(&settings).into(),
            (SettingKind::Url { .. }, Some(url)) => {
                base_url(url.expose_secret()).ok_or_else(|| wrong(key, NOT_A_BASE_URL))?.into()
            }
            (SettingKind::Word(words), None) => words.first().copied().unwrap_or_default().into(),
            (SettingKind::Word(words), Some(word)) => match words.contains(&word.expose_secret()) {
                true => word,
                false => return Err(wrong(key, &format!("must be one of {}", words.join(", ")))),
            },
            (SettingKind::Optional, given) => given.unwrap_or_default(),
            (SettingKind::Credential, Some(value)) => {
                has_credentials = true;
                value
            }
            (SettingKind::Credential, None) => {
                missing = missing.or(Some(*key));
                continue;
            }
        };
        settings.0.insert(key, value);
    }
    match missing {
        _ if !has_credentials => return Ok(None),
        Some(key) => {
            let what = format!("is not set, but other credentials of [{}] are; {}", declared.name, declared.setup);
            return Err(wrong(key, &what));
        }
        None => {}
    }
    (declared.check)(&settings).map_err(|SettingError { key, what }| wrong(key, what))?;
    Ok(Some(settings))
}

/// Whether a value can be sent in a request header.
fn is_writable(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Checks a base URL. Secrets are sent there, so it must be https or this machine. Calls append their paths to it.
fn base_url(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match (url.scheme(), is_local) {
        ("https", _) | ("http", true) => Some(text.trim_end_matches('/').to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
