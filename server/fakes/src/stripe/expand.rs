//! `expand[]`: objects instead of their ids.

use serde_json::Value;

use super::{kind::Kind, refusal::refused};
use crate::{Answer, Form};

/// How deep a path may go.
const MOST_LEVELS: usize = 4;

/// Whether a parameter is one of `expand[]`.
pub(super) fn is_expand(name: &str) -> bool {
    name.strip_prefix("expand[").is_some_and(|rest| rest.ends_with(']'))
}

/// Expands the paths of a query in an object, or in each object of a list. `object` finds an object by its id.
pub(super) fn expand(
    value: &mut Value,
    kind: Kind,
    query: &Form,
    object: &dyn Fn(&str) -> Option<Value>,
) -> Result<(), Answer> {
    for (_, path) in query.iter().filter(|(name, _)| is_expand(name)) {
        let mut fields: Vec<&str> = path.split('.').collect();
        if fields.len() > MOST_LEVELS {
            let message = format!("You cannot expand more than {MOST_LEVELS} levels of a property: {path}");
            return Err(refused(None, &message, None));
        }
        let mut objects = vec![&mut *value];
        if objects[0]["object"] == "list" {
            if fields.remove(0) != "data" {
                let message = format!(
                    "This property cannot be expanded ({path}). You may want to try expanding 'data.{path}' instead."
                );
                return Err(refused(None, &message, None));
            }
            objects = value["data"].as_array_mut().map_or_else(Vec::new, |data| data.iter_mut().collect());
        }
        if !is_expandable(&[kind], &fields) {
            return Err(refused(None, &format!("This property cannot be expanded ({path})."), None));
        }
        for one in objects {
            expand_one(one, &fields, object);
        }
    }
    Ok(())
}

/// Whether one of these kinds has this path.
fn is_expandable(kinds: &[Kind], fields: &[&str]) -> bool {
    let Some((first, rest)) = fields.split_first() else { return false };
    kinds
        .iter()
        .flat_map(|kind| kind.expandable())
        .any(|(field, targets)| field == first && (rest.is_empty() || is_expandable(targets, rest)))
}

fn expand_one(value: &mut Value, fields: &[&str], object: &dyn Fn(&str) -> Option<Value>) {
    let Some((first, rest)) = fields.split_first() else { return };
    let Some(field) = value.get_mut(*first) else { return };
    if let Some(found) = field.as_str().and_then(object) {
        *field = found;
    }
    expand_one(field, rest, object);
}
