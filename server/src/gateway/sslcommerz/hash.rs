//! The signature of a notice.
//!
//! `verify_key` names the signed fields, and is not signed itself. So a notice counts only if every field that the
//! server needs is signed. The signed text is ambiguous and a notice can be replayed, so it is never more than a reason
//! to ask.

use std::collections::BTreeMap;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::{Digest, Md5};
use sha2::Sha256;

/// What every notice must sign, and what a notice of a paid transaction must sign too.
const REQUIRED: [&str; 7] = ["tran_id", "status", "store_id", "amount", "currency", "currency_type", "currency_amount"];
const REQUIRED_IF_PAID: [&str; 2] = ["val_id", "bank_tran_id"];

/// The hash of a notice, as the merchant's settings name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Md5,
}

impl Hash {
    /// The word of the setting.
    pub(super) fn named(word: &str) -> Self {
        if word == "md5" { Self::Md5 } else { Self::Sha256 }
    }

    const fn field(self) -> &'static str {
        match self {
            Self::Sha256 => "verify_sign_sha2",
            Self::Md5 => "verify_sign",
        }
    }

    fn of(self, text: &str) -> String {
        match self {
            Self::Sha256 => hex::encode(Sha256::digest(text)),
            Self::Md5 => hex::encode(Md5::digest(text)),
        }
    }

    /// Checks a notice and returns its `tran_id`. The error says what is wrong.
    pub(super) fn tran_id(self, body: &[u8], store_id: &str, store_password: &str) -> Result<String, &'static str> {
        let mut form = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(body) {
            if form.insert(name, value).is_some() {
                return Err("a field occurs twice");
            }
        }
        let names = form.get("verify_key").ok_or("the notice has no verify_key")?;
        let mut signed = BTreeMap::new();
        for name in names.split(',') {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let is_own = ["store_passwd", "verify_key"].contains(&name) || name.starts_with("verify_sign");
            if name.is_empty() || !name.bytes().all(is_plain) || is_own {
                return Err("verify_key has a name that cannot be signed");
            }
            let value = form.get(name).ok_or("verify_key names a field that the notice lacks")?;
            if signed.insert(name, &**value).is_some() {
                return Err("verify_key names a field twice");
            }
        }
        let is_signed = |name: &&str| signed.get(name).is_some_and(|value| !value.is_empty());
        let is_paid = matches!(signed.get("status"), Some(&("VALID" | "VALIDATED")));
        if !REQUIRED.iter().all(is_signed) || is_paid && !REQUIRED_IF_PAID.iter().all(is_signed) {
            return Err("the notice does not sign all that it must");
        }
        if signed.get("store_id") != Some(&store_id) {
            return Err("the notice is for another store");
        }
        let tran_id = signed.get("tran_id").map(|id| (*id).to_owned()).unwrap_or_default();
        let password = self.of(store_password);
        signed.insert("store_passwd", &password);
        let pairs: Vec<String> = signed.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let given = form.get(self.field()).map(|given| given.as_bytes()).unwrap_or_default();
        match verify_slices_are_equal(self.of(&pairs.join("&")).as_bytes(), given) {
            Ok(()) => Ok(tran_id),
            Err(_) => Err("the hash does not fit"),
        }
    }
}

#[cfg(test)]
mod tests;
