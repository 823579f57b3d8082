//! Tests of reading the fields of a body.

use super::*;

#[test]
fn errors_name_every_invalid_field() {
    let mut fields = Fields::of_body(br#"{"a":1,"b":"long","c":{"d":[]}}"#).unwrap();
    fields.text("a", 10);
    fields.text("b", 3);
    fields.nested("c", |c| c.text("d", 10));
    fields.required_text("e", 10, |_| Ok(()));
    fields.required_text("b", 10, |_| Err((ErrorCode::UrlInvalid, "must be short")));
    let invalid = fields.finish(()).unwrap_err();
    let codes: Vec<_> = invalid.fields().into_iter().map(|field| format!("{} {}", field.field, field.code)).collect();
    assert_eq!(codes, ["a field_invalid", "b field_too_long", "c.d field_invalid", "e field_missing", "b url_invalid"]);
    assert_eq!(
        invalid.into_sentences(),
        [
            "a must be a string",
            "b must be at most 3 bytes long",
            "c.d must be a string",
            "e must be given",
            "b must be short"
        ]
    );
}

#[test]
fn an_unknown_name_fails_only_if_it_is_a_misspelling() {
    let body = br#"{"amout":1,"Customer":{},"other":2,"customer":{"emial":"a","free":1,"bag":{"amout":1}}}"#;
    let read = |mut fields: Fields<'_>| {
        fields.raw("amount");
        fields.nested("customer", |customer| (customer.raw("email"), customer.raw("bag")));
        fields.finish(())
    };
    assert_eq!(read(Fields::of_body(body).unwrap()), Ok(()));
    let sentences = read(Fields::of_body(body).unwrap().refusing_near_misses()).unwrap_err().into_sentences();
    assert_eq!(
        sentences,
        [
            "customer.emial is not a field; did you mean customer.email?",
            "amout is not a field; did you mean amount?",
            "Customer is not a field; did you mean customer?",
        ]
    );
}

#[test]
fn a_name_is_read_in_both_cases_and_the_codes_spelling_counts_unless_null() {
    for (body, read) in [
        (&br#"{"pay_by":1}"#[..], Some("1")),
        (br#"{"pay_by":1,"payBy":2}"#, Some("2")),
        (br#"{"payBy":null,"pay_by":1}"#, Some("1")),
        (br#"{"payBy":null}"#, None),
        (br#"{"PayBy":1}"#, None),
    ] {
        let mut fields = Fields::of_body(body).unwrap();
        assert_eq!(fields.raw("payBy"), read, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn errors_name_the_known_fields_and_at_most_ten_unknown_ones_shortened() {
    let long = "x".repeat(70);
    let many: String = (0..20).map(|nth| format!(r#","z{nth}":{nth}"#)).collect();
    let body = format!(r#"{{"amount":1,"reasn":2,"{long}":3{many}}}"#);
    let mut fields = Fields::of_body(body.as_bytes()).unwrap().refusing_unknown();
    assert!(fields.has("amount") && fields.raw("amount").is_some() && !fields.has("reason"));
    let sentences = fields.finish(()).unwrap_err().into_sentences();
    assert_eq!(sentences.len(), 10);
    assert_eq!(sentences[0], "reasn is not a field; did you mean reason?");
    let cut = &long[..64];
    assert_eq!(sentences[1], format!("{cut} is not a field; the fields are amount, reason"));
}

#[test]
fn a_body_that_is_not_an_object_fails() {
    for (body, sentence) in [
        (&b""[..], "body must be valid JSON; it is empty"),
        (b"{\"a\":1,}", "body must be valid JSON; trailing comma at line 1, column 8"),
        (b"[]", "body must be a JSON object"),
        (b"null", "body must be a JSON object"),
        (b"{\"a\":\"\xff\"}", "body must be UTF-8"),
        (br#"{"a":1,"\u0061":2}"#, "a must be given once"),
        (b"\x1f\x8b\x08", "body must be UTF-8; it is compressed by gzip, send it as it is"),
    ] {
        let invalid = Fields::of_body(body).err().unwrap();
        assert_eq!(invalid.into_sentences(), [sentence]);
    }
}

#[test]
fn errors_name_half_a_character_and_a_number_in_quotes() {
    let body = br#"{"a":"\ud83d","b":{"\ud83d":1},"c":"100","d":"true","e":"x","f":"NaN"}"#;
    let mut fields = Fields::of_body(body).unwrap();
    fields.text("a", 10);
    fields.nested("b", |_| ());
    for name in ["c", "d", "e", "f"] {
        fields.value_error(name, ErrorCode::FieldInvalid, "must be a number", ());
    }
    let sentences = fields.finish(()).unwrap_err().into_sentences();
    let half = r"half a character: an escape of \ud800 to \udfff without its other half";
    assert_eq!(
        sentences,
        [
            format!("a has {half}"),
            format!("b has a field whose name has {half}"),
            "c must be a number, without quotes".to_owned(),
            "d must be a number, without quotes".to_owned(),
            "e must be a number".to_owned(),
            "f must be a number".to_owned(),
        ]
    );
    let invalid = Fields::of_body(br#"{"\ud83d":1}"#).err().unwrap();
    assert_eq!(invalid.into_sentences(), [format!("body has a field whose name has {half}")]);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
    assert!(Fields::of_body(deep.as_bytes()).is_ok());
}
