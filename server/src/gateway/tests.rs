//! The registry, and that nothing outside a gateway's folder knows its name.

use std::{fs, path::Path};

use super::*;
use crate::gateway::settings::{Setting, SettingKind, Settings};

#[test]
fn each_gateway_declares_names_that_no_other_has() {
    let mut names = vec![SANDBOX.as_str()];
    for declared in registry() {
        let name = declared.name.as_str();
        names.push(name);
        names.extend(declared.ways.iter().map(|way| way.name).filter(|way| *way != name));
        let kinds = declared.settings.iter().map(|setting| setting.kind);
        assert_eq!(kinds.filter(|kind| matches!(kind, SettingKind::Url { .. })).count(), 1, "{}", declared.name);
        assert!(!declared.ways.is_empty() && declared.ways.iter().all(|way| !way.limits.is_empty()));
        assert!(!declared.returns.attempt.is_empty() && !declared.setup.is_empty());
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// The lines of a file that are not its tests.
fn program_of(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

fn search(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            search(&path, found);
        }
        if !name.ends_with(".rs") || name == "tests.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in program_of(&text).lines().enumerate() {
            let line = line.to_lowercase();
            if registry().any(|it| line.contains(it.name.as_str()) || line.contains(&it.title.to_lowercase())) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
}

#[test]
fn the_service_the_routes_the_commands_and_the_store_name_no_gateway() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in ["src/service", "src/http", "src/delivery", "src/commands", "store/src"] {
        search(&root.join(directory), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_document_names_each_way_to_pay() {
    let document: serde_json::Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let mut words: Vec<_> = PaymentMethod::KNOWN.iter().map(|method| method.as_str()).collect();
    // No address ends in `.invalid`: nobody can pay there, so the document need not name its ways.
    let is_real = |setting: &Setting| !matches!(setting.kind, SettingKind::Url { live } if live(&Settings::default()).ends_with(".invalid"));
    let real = registry().filter(|gateway| gateway.settings.iter().all(is_real));
    words.extend(real.flat_map(|gateway| gateway.ways.iter().map(|way| way.name)));
    let ways = &document["components"]["schemas"]["CreatePayment"]["properties"]["ways"]["items"]["enum"];
    assert_eq!(*ways, serde_json::json!(words));
    let pay = &document["components"]["schemas"]["Pay"]["properties"]["paymentMethod"]["enum"];
    assert_eq!(pay.as_array().unwrap()[..words.len()], *ways.as_array().unwrap());
}

#[test]
fn a_customer_chooses_by_the_name_of_a_way_or_by_its_kind() {
    let offers = |ways: &'static [Way]| ways.iter().map(|way| Offer { gateway: &Sandbox, way }).collect::<Vec<_>>();
    static WAYS: [Way; 3] =
        [way("plastic", PaymentMethod::Card), way("wallet", PaymentMethod::Mfs), way("purse", PaymentMethod::Mfs)];
    static CARDS: [Way; 1] = [way("plastic", PaymentMethod::Card)];
    let choice = |ways: &'static [Way], word: Option<&str>| {
        let word = word.map(PaymentMethod::from);
        chosen(&offers(ways), word.as_ref()).map(|offer| offer.way.name)
    };
    for (word, name) in [
        (None, Some("wallet")),
        (Some("mfs"), Some("wallet")),
        (Some("purse"), Some("purse")),
        (Some("card"), Some("plastic")),
        (Some("plastic"), Some("plastic")),
        (Some("test"), None),
        (Some("cash"), None),
    ] {
        assert_eq!(choice(&WAYS, word), name, "{word:?}");
    }
    assert_eq!((choice(&CARDS, None), choice(&CARDS, Some("mfs"))), (Some("plastic"), Some("plastic")));
    assert_eq!((choice(&CARDS, Some("wallet")), choice(&[], None)), (None, None));
}

const fn way(name: &'static str, method: PaymentMethod) -> Way {
    Way { name, method, title: ["", ""], hint: ["", ""], limits: &[], asks: &[] }
}

#[test]
fn each_code_of_a_gateway_has_one_meaning_in_both_languages_and_its_statement_has_its_name() {
    for declared in registry() {
        let codes: Vec<_> = declared.errors.iter().flat_map(|it| it.codes).collect();
        assert_eq!(declaration::each_once(&codes).len(), codes.len(), "{}", declared.name);
        for code in codes {
            let [english, bangla] = declared.meaning(code).unwrap();
            assert!(english.is_ascii() && english.ends_with('.'), "{english}");
            assert!(
                bangla.contains(|char| ('\u{980}'..='\u{9ff}').contains(&char)) && bangla.ends_with('।'),
                "{bangla}"
            );
        }
        assert!(!declared.errors.is_empty() && declared.meaning("a code of next year").is_none());
        assert!(declared.statement.is_none_or(|columns| columns.name == declared.name.as_str()));
        let [least, most] = declared.session_seconds;
        assert!(least <= most && most > 0);
    }
}
