//! API calls before they are sent.

use reqwest::Method;
use serde::Serialize;

use crate::{IdempotencyKey, Result, error::Kind, retry::Safety};

/// An API call and whether it is safe to retry.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path below `/api/v1`, with `{}` for the id.
    pub(crate) template: &'static str,
    pub(crate) id: Option<Box<str>>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) is_keyed: bool,
    pub(crate) safety: Safety,
}

impl Call {
    /// Creates a call. The id replaces the `{}` of the template.
    pub(crate) fn new(method: Method, template: &'static str, id: Option<&str>) -> Self {
        let safety = if method == Method::POST { Safety::Once } else { Safety::Repeatable };
        Self {
            method,
            template,
            id: id.map(Into::into),
            query: Vec::new(),
            body: None,
            key: None,
            is_keyed: true,
            safety,
        }
    }

    /// The segments of the path below `/api/v1`, not encoded.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        let id = self.id.as_deref().unwrap_or_default();
        self.template.split('/').skip(1).map(move |segment| if segment == "{}" { id } else { segment })
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self> {
        self.body = Some(serde_json::to_vec(body).map_err(|error| Kind::Request(error.to_string()))?);
        Ok(self)
    }

    pub(crate) fn keyless(mut self) -> Self {
        self.is_keyed = false;
        self
    }

    pub(crate) fn repeatable(mut self) -> Self {
        self.safety = Safety::Repeatable;
        self
    }
}

/// A call, or why it is invalid.
pub(crate) struct CallResult(pub(crate) Result<Box<Call>>);

impl From<Call> for CallResult {
    fn from(call: Call) -> Self {
        Self(Ok(Box::new(call)))
    }
}

impl From<Result<Call>> for CallResult {
    fn from(call: Result<Call>) -> Self {
        Self(call.map(Box::new))
    }
}
