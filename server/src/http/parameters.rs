//! The names of the query parameters that each route knows: those in the OpenAPI document, which the reference also shows.
//!
//! A misspelt filter must not return everything. So a `GET` that needs a key refuses unknown and repeated parameters. All
//! other routes ignore them, because trackers add parameters to the addresses of pages.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use payments_core::{ErrorCode, Invalid, is_same_field};
use serde_json::Value;
use url::form_urlencoded;

use super::{
    head::beginning,
    reference::{DESCRIPTION, list, object, text},
};
use crate::nearest::nearest;

/// How many unknown parameters an error names at most.
const MAX_NAMED: usize = 10;
const MAX_NAME_CHARS: usize = 64;

/// The query parameters of `GET`, by path.
static KNOWN: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| known(DESCRIPTION));

fn known(description: &str) -> HashMap<String, Vec<String>> {
    let document: Value = serde_json::from_str(description).unwrap_or_default();
    let names = |operation: &Value| -> Vec<String> {
        let in_query = list(&operation["parameters"]).filter(|parameter| parameter["in"] == "query");
        in_query.map(|parameter| text(&parameter["name"]).to_owned()).collect()
    };
    object(&document["paths"]).map(|(path, methods)| (path.to_owned(), names(&methods["get"]))).collect()
}

/// Whether a handler may read a parameter. [`check`] refuses every other parameter of a path in the document.
pub(super) fn has(template: &str, name: &str) -> bool {
    KNOWN.get(template).is_none_or(|names| names.iter().any(|known| known == name))
}

/// Refuses unknown parameters, and parameters that are given twice, in camelCase or in snake_case.
pub(super) fn check(template: &str, query: Option<&str>) -> Result<(), Invalid> {
    let known = KNOWN.get(template).map(Vec::as_slice).unwrap_or_default();
    query.filter(|query| !query.is_empty()).map_or(Ok(()), |query| check_query(query, known))
}

fn check_query(query: &str, known: &[String]) -> Result<(), Invalid> {
    let given: Vec<Cow<'_, str>> = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name).collect();
    let mut invalid = Invalid::default();
    for name in known.iter().filter(|known| given.iter().filter(|given| is_same_field(given, known)).count() > 1) {
        invalid.add(name, ErrorCode::FieldRepeated, "must be given once", ());
    }
    let unknown = given.iter().filter(|given| !known.iter().any(|known| is_same_field(given, known)));
    for name in unknown.take(MAX_NAMED) {
        let instead = match nearest(name, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant}?"),
            None if known.is_empty() => "this route has none".to_owned(),
            None => format!("the parameters are {}", known.join(", ")),
        };
        invalid.add(
            beginning(name, MAX_NAME_CHARS),
            ErrorCode::FieldUnknown,
            format_args!("is not a parameter; {instead}"),
            (),
        );
    }
    invalid.or(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_known_parameters_passes_in_either_case_and_with_empty_parts() {
        let known = ["page", "customerEmail"].map(str::to_owned);
        for query in ["", "&", "page=1&&customerEmail=a", "customer_email=a", "p%61ge"] {
            assert_eq!(check_query(query, &known), Ok(()), "{query}");
        }
        let said = check_query("page=1&page=2&customer_email&customerEmail&CustomerEmail&x=1", &known).unwrap_err();
        assert_eq!(
            said.into_sentences(),
            [
                "page must be given once",
                "customerEmail must be given once",
                "CustomerEmail is not a parameter; did you mean customerEmail?",
                "x is not a parameter; the parameters are page, customerEmail",
            ]
        );
    }

    #[test]
    fn the_table_has_every_path_of_the_document() {
        let table = known(DESCRIPTION);
        assert!(table["/api/v1/payments"].iter().any(|name| name == "customerEmail"));
        assert_eq!((table["/api/v1/account"].len(), table["/api/v1/webhooks/deliveries"].len()), (0, 3));
    }
}
