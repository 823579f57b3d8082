//! API calls before they are sent.

use reqwest::Method;
use serde::Serialize;

use crate::{IdempotencyKey, Result, error::Kind, retry::Safety};

/// An API call and whether it is safe to retry.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path below `/api/v1`.
    pub(crate) segments: Vec<Box<str>>,
    /// The path without ids, for logs.
    pub(crate) template: &'static str,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) is_keyed: bool,
    pub(crate) safety: Safety,
}

impl Call {
    /// Creates a call. The ids replace the `{}` of the template, in order.
    pub(crate) fn new(method: Method, template: &'static str, ids: &[&str]) -> Self {
        let mut ids = ids.iter();
        let segments = template.split('/').skip(1);
        let segments = segments.map(|part| if part == "{}" { ids.next().copied().unwrap_or("") } else { part }.into());
        let safety = if method == Method::POST { Safety::Once } else { Safety::Repeatable };
        Self {
            segments: segments.collect(),
            method,
            template,
            query: Vec::new(),
            body: None,
            key: None,
            is_keyed: true,
            safety,
        }
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
pub(crate) struct CallResult(pub(crate) Result<Call>);

impl From<Call> for CallResult {
    fn from(call: Call) -> Self {
        Self(Ok(call))
    }
}

impl From<Result<Call>> for CallResult {
    fn from(call: Result<Call>) -> Self {
        Self(call)
    }
}
