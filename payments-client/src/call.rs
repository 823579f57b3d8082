//! API calls before they are sent.

use std::borrow::Cow;

use reqwest::Method;
use serde::Serialize;
use url::Url;

use crate::{IdempotencyKey, Result, error::Kind, retry::Safety};

/// An API call and whether it is safe to retry.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) route: Route,
    pub(crate) query: Vec<(Cow<'static, str>, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) is_keyed: bool,
    pub(crate) safety: Safety,
    /// Whether a 404 after a lost response means success: an earlier try has removed the resource.
    pub(crate) is_removal: bool,
}

/// The destination of a call.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// The path below `/api/v1`, with `{}` for the id.
    Known { template: &'static str, id: Option<Box<str>> },
    /// A path below the base URL, already checked.
    Any(Box<str>),
}

impl Route {
    /// The path for logs, without ids.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Self::Known { template, .. } => template,
            Self::Any(_) => "any",
        }
    }

    /// Adds the path to the base URL. Encodes each segment of a known route.
    pub(crate) fn extend(&self, base: &mut Url) {
        match self {
            Self::Known { template, id } => {
                let id = id.as_deref().unwrap_or_default();
                let segments = template.split('/').skip(1).map(|segment| if segment == "{}" { id } else { segment });
                if let Ok(mut path) = base.path_segments_mut() {
                    path.pop_if_empty().extend(["api", "v1"]).extend(segments);
                }
            }
            Self::Any(path) => {
                let path = format!("{}{path}", base.path().trim_end_matches('/'));
                base.set_path(&path);
            }
        }
    }
}

impl Call {
    /// Creates a call of a known route. The id replaces the `{}` of the template.
    pub(crate) fn new(method: Method, template: &'static str, id: Option<&str>) -> Self {
        Self::of(method, Route::Known { template, id: id.map(Into::into) })
    }

    pub(crate) fn of(method: Method, route: Route) -> Self {
        let safety = if method.is_idempotent() { Safety::Repeatable } else { Safety::Once };
        Self { method, route, query: Vec::new(), body: None, key: None, is_keyed: true, safety, is_removal: false }
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

    pub(crate) fn removal(mut self) -> Self {
        self.is_removal = true;
        self
    }
}

/// A call, or an error that says why it is invalid.
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
