//! Pages of a list.

use crate::{ErrorCode, aliased::aliased_resource, validation::Invalid};

aliased_resource! {
    /// One page of a list, newest first.
    #[derive(Debug)]
    pub struct Page<T> {
        /// The items of this page. Only the last page has fewer than `limit`.
        items: Vec<T> = "items",
        /// The number of items in the whole list.
        total: u64 = "total",
        /// The number of this page, from 1.
        page: u32 = "page",
        /// The maximum number of items per page.
        limit: u32 = "limit",
    }
}

/// The page of a list that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    page: u32,
    limit: u32,
}

impl PageRequest {
    /// The default number of items per page.
    pub const DEFAULT_LIMIT: u32 = 20;
    /// The maximum number of items per page.
    pub const MAX_LIMIT: u32 = 100;

    /// Parses the query parameters `page` (from 1, default 1) and `limit` (1 to 100, default 20).
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(page: Option<&str>, limit: Option<&str>) -> Result<Self, Invalid> {
        let mut invalid = Invalid::default();
        let mut number = |name, text: Option<&str>, default, max: u32| {
            let Some(text) = text else { return default };
            let plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let code = ErrorCode::FieldInvalid;
            match text.parse() {
                Ok(number) if plain && (1..=max).contains(&number) => number,
                _ if max == u32::MAX => invalid.add(name, code, "must be a whole number from 1", default),
                _ => invalid.add(name, code, format_args!("must be a whole number from 1 to {max}"), default),
            }
        };
        let page = number("page", page, 1, u32::MAX);
        let limit = number("limit", limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT);
        invalid.or(Self { page, limit })
    }

    /// The page number, from 1.
    #[must_use]
    pub const fn page(self) -> u32 {
        self.page
    }

    /// The maximum number of items per page.
    #[must_use]
    pub const fn limit(self) -> u32 {
        self.limit
    }

    /// The number of items before this page.
    #[must_use]
    pub const fn skipped(self) -> u64 {
        (self.page as u64 - 1) * self.limit as u64
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { page: 1, limit: Self::DEFAULT_LIMIT }
    }
}
