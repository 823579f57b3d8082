//! Pages of lists.

use serde_json::{Value, json};

use super::{
    kind::Kind,
    refusal::{no_such, refused},
};
use crate::{Answer, Form};

/// The parameters of every list.
pub(super) const PARAMETERS: [&str; 7] =
    ["limit", "starting_after", "ending_before", "created[gte]", "created[gt]", "created[lte]", "created[lt]"];

/// A page of the objects that fit the query's filters. `objects` are sorted, newest first.
pub(super) fn page(kind: Kind, mut objects: Vec<Value>, query: &Form) -> Result<Value, Answer> {
    let limit = match integer(query, "limit")?.unwrap_or(10) {
        0 => return Err(invalid_integer("limit", "This value must be greater than or equal to 1.")),
        limit if limit > 100 => {
            return Err(invalid_integer("limit", "This value must be less than or equal to 100."));
        }
        limit => usize::try_from(limit).unwrap_or(100),
    };
    for (name, is_of) in [
        ("created[gte]", u64::ge as fn(&u64, &u64) -> bool),
        ("created[gt]", u64::gt),
        ("created[lte]", u64::le),
        ("created[lt]", u64::lt),
    ] {
        if let Some(time) = integer(query, name)? {
            objects.retain(|object| object["created"].as_u64().is_some_and(|created| is_of(&created, &time)));
        }
    }
    for name in kind.filters().unwrap_or_default() {
        if let Some(wanted) = query.get(*name) {
            objects.retain(|object| object[name].as_str() == Some(wanted));
        }
    }
    let place_of = |id: &String| {
        let place = objects.iter().position(|object| object["id"].as_str() == Some(id));
        place.ok_or_else(|| no_such(kind.name(), id))
    };
    let (page, has_more) = match (query.get("starting_after"), query.get("ending_before")) {
        (Some(_), Some(_)) => {
            let message = "You may only specify one of these parameters: starting_after, ending_before.";
            return Err(refused(None, message, Some("ending_before")));
        }
        (None, Some(before)) => {
            let end = place_of(before)?;
            let start = end.saturating_sub(limit);
            (&objects[start..end], start > 0)
        }
        (after, None) => {
            let start = after.map_or(Ok(0), |after| place_of(after).map(|place| place + 1))?;
            let end = objects.len().min(start + limit);
            (&objects[start..end], end < objects.len())
        }
    };
    Ok(json!({"object": "list", "url": format!("/v1/{}", kind.path()), "has_more": has_more, "data": page}))
}

fn integer(query: &Form, name: &'static str) -> Result<Option<u64>, Answer> {
    let read = |text: &String| text.parse().map_err(|_| invalid_integer(name, &format!("Invalid integer: {text}")));
    query.get(name).map(read).transpose()
}

fn invalid_integer(name: &str, message: &str) -> Answer {
    refused(Some("parameter_invalid_integer"), message, Some(name))
}
