//! The signature of a notice.

use std::collections::BTreeMap;

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::Form;

/// A notice with these fields and their signature: `verify_key`, `verify_sign` and `verify_sign_sha2`.
#[must_use]
pub fn signed(fields: Form, store_password: &str) -> Form {
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    let signature = [
        ("verify_key", names.join(",")),
        ("verify_sign", hash::<Md5>(&fields, store_password)),
        ("verify_sign_sha2", hash::<Sha256>(&fields, store_password)),
    ];
    let signature = signature.map(|(name, value)| (name.to_owned(), value));
    fields.iter().map(|(name, value)| (name.clone(), value.clone())).chain(signature).collect()
}

fn hash<D: Digest>(fields: &BTreeMap<String, String>, store_password: &str) -> String {
    let mut fields = fields.clone();
    fields.insert("store_passwd".into(), hex::<D>(store_password));
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    hex::<D>(&pairs.join("&"))
}

fn hex<D: Digest>(text: &str) -> String {
    D::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_public_notice() {
        let fields = [
            ("amount", "10.00"),
            ("bank_tran_id", "200105225825DBgSoRGLvczhFjj"),
            ("base_fair", "0.00"),
            ("card_brand", "VISA"),
            ("card_issuer", "TRUST BANK, LTD."),
            ("card_issuer_country", "Bangladesh"),
            ("card_issuer_country_code", "BD"),
            ("card_no", "418117XXXXXX6675"),
            ("card_type", "VISA-Dutch Bangla"),
            ("currency", "BDT"),
            ("currency_amount", "10.00"),
            ("currency_rate", "1.0000"),
            ("currency_type", "BDT"),
            ("risk_level", "0"),
            ("risk_title", "Safe"),
            ("status", "VALID"),
            ("store_amount", "9.75"),
            ("store_id", "test_testemi"),
            ("tran_date", "2020-01-05 22:58:21"),
            ("tran_id", "5E121A0D01F92"),
            ("val_id", "200105225826116qFnATY9sHIwo"),
            ("value_a", ""),
            ("value_b", ""),
            ("value_c", ""),
            ("value_d", ""),
        ];
        let password = "test_testemi@ssl";
        assert_eq!(hex::<Md5>(password), "1b41a39d56805bad5982ddff7a9841b1");
        assert_eq!(hex::<Sha256>(password), "cd31b1c3dd6145382edcab82f03ae808188b1d69a2f80d63a0e7edc140197f5c");
        let form: Form = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let notice = signed(form, password);
        assert_eq!(notice["verify_sign"], "d42fab70ae0bcbda5280e7baffef60b0");
        let sha2 = "02c0417ff467c109006382d56eedccecd68382e47245266e7b47abbb3d43976e";
        assert_eq!(notice["verify_sign_sha2"], sha2);
        assert_eq!(notice["verify_key"].split(',').count(), fields.len());
    }
}
