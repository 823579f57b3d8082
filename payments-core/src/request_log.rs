//! The log of a developer's requests.

use crate::{ErrorCode, Timestamp, aliased::aliased_resource, query::Query, validation::Invalid};

aliased_resource! {
    /// A request that was made with one of the developer's keys in the key's environment. Bodies and queries are not logged.
    #[derive(Debug)]
    pub struct LoggedRequest {
        /// The request's id, which the response has as `X-Request-Id`.
        id: String = "id",
        /// The HTTP method.
        method: String = "method",
        /// The path, without the query.
        path: String = "path",
        /// The status of the response.
        status: u16 = "status",
        /// The error code of the response, if it is an error.
        error: Option<ErrorCode> = "error",
        /// The last four characters of the key.
        key_last4: String = "keyLast4",
        /// How many milliseconds the response took.
        duration_ms: u32 = "durationMs",
        /// When the request came.
        created_at: Timestamp = "createdAt",
        /// How many requests the line stands for, if more than one. For a key beyond its rate limit, the server logs all
        /// requests of a second in one line. The other fields are about the first of them.
        count: Option<u32> = "count" (omitted if None),
    }
}

aliased_resource! {
    /// A part of the log, newest first.
    #[derive(Debug, Default)]
    pub struct RequestPage {
        /// The requests.
        items: Vec<LoggedRequest> = "items",
        /// Whether the log has older ones.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `before`. `null` at the end.
        next: Option<String> = "next",
    }
}

/// The part of the log that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestQuery {
    /// Only requests before this position: the `next` of an earlier part.
    pub before: Option<u64>,
    /// Only requests that were refused or that failed.
    pub failed: bool,
    limit: Option<u8>,
}

impl RequestQuery {
    /// The default number of items.
    pub const DEFAULT_LIMIT: u8 = 20;
    /// The maximum number of items.
    pub const MAX_LIMIT: u8 = 100;

    /// Parses the query parameters `before`, `failed` (`true` or `false`) and `limit` (1 to 100, default 20). `parameter`
    /// returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let before = query.parsed("before", ErrorCode::FieldInvalid, "must be the next of a part of this log");
        let failed = match query.text("failed").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => query.invalid.add("failed", ErrorCode::FieldInvalid, "must be true or false", false),
        };
        let limit = query.limit(Self::MAX_LIMIT);
        query.invalid.or(Self { before, failed, limit })
    }

    /// The maximum number of items in the part.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).into()
    }

    /// Whether the filter includes a request.
    #[must_use]
    pub fn includes(&self, request: &LoggedRequest) -> bool {
        !self.failed || request.status >= 400
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reports_each_invalid_parameter() {
        let query = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            RequestQuery::from_query(|name| pairs.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone()))
        };
        let asked = query(&[("before", "71"), ("failed", "true"), ("limit", "5")]).unwrap();
        assert_eq!((asked.before, asked.failed, asked.limit()), (Some(71), true, 5));
        assert_eq!(query(&[]).unwrap().limit(), 20);
        let sentences = query(&[("before", "x"), ("failed", "yes"), ("limit", "101")]).unwrap_err().into_sentences();
        for (name, sentence) in ["before", "failed", "limit"].iter().zip(&sentences) {
            assert!(sentence.starts_with(name), "{sentences:?}");
        }
        assert_eq!(sentences.len(), 3);
    }
}
