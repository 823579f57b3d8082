//! The public notice, and forgeries of it.

use proptest::prelude::*;

use super::*;

const PASSWORD: &str = "test_testemi@ssl";

/// The public notice of SSLCommerz's own library.
fn public() -> Vec<(String, String)> {
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
    let key = fields.map(|(name, _)| name).join(",");
    let signature = [
        ("verify_key", &*key),
        ("verify_sign", "d42fab70ae0bcbda5280e7baffef60b0"),
        ("verify_sign_sha2", "02c0417ff467c109006382d56eedccecd68382e47245266e7b47abbb3d43976e"),
    ];
    fields.into_iter().chain(signature).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn check(hash: Hash, fields: &[(String, String)]) -> Result<String, &'static str> {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    hash.tran_id(body.as_bytes(), "test_testemi", PASSWORD)
}

/// A notice that signs the named fields of these, with the right password.
fn signed(fields: &[(&str, &str)], names: &str) -> Vec<(String, String)> {
    let mut text: Vec<_> = fields.iter().filter(|(name, _)| names.split(',').any(|it| it == *name)).collect();
    let password = Hash::Sha256.of(PASSWORD);
    let own = ("store_passwd", &*password);
    text.push(&own);
    text.sort();
    let text: Vec<_> = text.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let hash = Hash::Sha256.of(&text.join("&"));
    let all = fields.iter().copied().chain([("verify_key", names), ("verify_sign_sha2", &*hash)]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

const FIELDS: [(&str, &str); 9] = [
    ("amount", "10.00"),
    ("bank_tran_id", "B1"),
    ("currency", "BDT"),
    ("currency_amount", "10.00"),
    ("currency_type", "BDT"),
    ("status", "VALID"),
    ("store_id", "test_testemi"),
    ("tran_id", "T1"),
    ("val_id", "V1"),
];

#[test]
fn the_public_notice_fits_by_both_hashes() {
    for hash in [Hash::named("sha256"), Hash::named("md5")] {
        assert_eq!(check(hash, &public()), Ok("5E121A0D01F92".to_owned()), "{hash:?}");
        for (at, (name, _)) in public().iter().enumerate() {
            let mut changed = public();
            changed[at].1.push('x');
            let other = if hash == Hash::Md5 { "verify_sign_sha2" } else { "verify_sign" };
            assert_eq!(check(hash, &changed).is_ok(), name == other, "{hash:?} {name}");
        }
    }
    let mut without = public();
    without.retain(|(name, _)| name != "verify_sign_sha2");
    assert_eq!(check(Hash::Sha256, &without), Err("the hash does not fit"), "MD5 does not do instead");
}

#[test]
fn a_notice_signs_what_it_is_read_for_and_names_nothing_twice() {
    let names = FIELDS.map(|(name, _)| name).join(",");
    assert_eq!(check(Hash::Sha256, &signed(&FIELDS, &names)), Ok("T1".to_owned()));
    // A required field that is not signed.
    for name in FIELDS.map(|(name, _)| name) {
        let fewer: Vec<_> = names.split(',').filter(|it| *it != name).collect();
        let refused = check(Hash::Sha256, &signed(&FIELDS, &fewer.join(",")));
        assert_eq!(refused, Err("the notice does not sign all that it must"), "{name}");
    }
    for (more, why) in [
        ("verify_key", "verify_key has a name that cannot be signed"),
        ("verify_sign", "verify_key has a name that cannot be signed"),
        ("verify_sign_sha2", "verify_key has a name that cannot be signed"),
        ("store_passwd", "verify_key has a name that cannot be signed"),
        ("", "verify_key has a name that cannot be signed"),
        ("tran id", "verify_key has a name that cannot be signed"),
        ("a=b&c", "verify_key has a name that cannot be signed"),
        ("tran_id", "verify_key names a field twice"),
        ("card_no", "verify_key names a field that the notice lacks"),
    ] {
        let mut fields = FIELDS.to_vec();
        fields.push(("store_passwd", "x"));
        assert_eq!(check(Hash::Sha256, &signed(&fields, &format!("{names},{more}"))), Err(why), "{more}");
    }
    let mut twice = signed(&FIELDS, &names);
    twice.push(("tran_id".to_owned(), "T2".to_owned()));
    assert_eq!(check(Hash::Sha256, &twice), Err("a field occurs twice"));
    assert_eq!(check(Hash::Sha256, &[]), Err("the notice has no verify_key"));
    let other = FIELDS.map(|(name, value)| (name, if name == "store_id" { "other" } else { value }));
    assert_eq!(check(Hash::Sha256, &signed(&other, &names)), Err("the notice is for another store"));
}

#[test]
fn a_failed_notice_may_lack_the_ids_of_money() {
    let fields = FIELDS.map(|(name, value)| (name, if name == "status" { "FAILED" } else { value }));
    let names = "amount,currency,currency_amount,currency_type,status,store_id,tran_id";
    assert_eq!(check(Hash::Sha256, &signed(&fields, names)), Ok("T1".to_owned()));
}

proptest! {
    #[test]
    fn any_body_is_refused_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Hash::Sha256.tran_id(&body, "test_testemi", PASSWORD).is_err());
    }
}
