//! The fields of a form or a query.

use std::{collections::BTreeMap, ops::Deref};

/// The fields of a form. Fields of a list, such as `expand[]`, get the names `expand[0]`, `expand[1]`. If another name
/// is repeated, the last value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form(BTreeMap<String, String>);

impl Deref for Form {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(String, String)> for Form {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(fields: I) -> Self {
        let mut form = BTreeMap::new();
        for (name, value) in fields {
            let name = match name.strip_suffix("[]") {
                Some(list) => {
                    let mut numbered = (0_usize..).map(|number| format!("{list}[{number}]"));
                    numbered.find(|name| !form.contains_key(name)).unwrap_or_default()
                }
                None => name,
            };
            form.insert(name, value);
        }
        Self(form)
    }
}

impl<const N: usize> From<[(String, String); N]> for Form {
    fn from(fields: [(String, String); N]) -> Self {
        fields.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_list_are_numbered_and_of_other_fields_the_last_one_counts() {
        let query = "expand[]=a&limit=1&expand[]=b&limit=2";
        let form: Form = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fields: Vec<_> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(fields, ["expand[0]=a", "expand[1]=b", "limit=2"]);
    }
}
