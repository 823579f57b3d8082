//! The errors of an invalid request.

use std::fmt;

use crate::{ErrorCode, FieldError};

/// The errors of an invalid request, each with a code and a sentence. A field's sentence begins with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invalid {
    errors: Vec<RequestError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestError {
    /// `None` if the error is not about one field.
    field: Option<String>,
    code: ErrorCode,
    sentence: String,
}

impl Invalid {
    /// One error that is not about a field.
    #[must_use]
    pub fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { errors: vec![RequestError { field: None, code, sentence: sentence.into() }] }
    }

    /// One error of a field.
    #[must_use]
    pub fn field(field: impl fmt::Display, code: ErrorCode, error: impl fmt::Display) -> Self {
        let mut invalid = Self::default();
        invalid.add(field, code, error, ());
        invalid
    }

    /// Adds an error for a field, and returns `instead` so that reading can continue.
    pub fn add<T>(&mut self, field: impl fmt::Display, code: ErrorCode, error: impl fmt::Display, instead: T) -> T {
        let field = field.to_string();
        let sentence = format!("{field} {error}");
        self.errors.push(RequestError { field: Some(field), code, sentence });
        instead
    }

    /// Adds the errors of another part of the request.
    pub fn append(&mut self, mut other: Self) {
        self.errors.append(&mut other.errors);
    }

    /// Returns the value if there are no errors.
    ///
    /// # Errors
    /// The collected errors.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.errors.is_empty() { Ok(value) } else { Err(self) }
    }

    /// The code of all errors if they have the same code, else [`ErrorCode::ValidationFailed`].
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self.errors.split_first() {
            Some((first, rest)) if rest.iter().all(|error| error.code == first.code) => first.code.clone(),
            _ => ErrorCode::ValidationFailed,
        }
    }

    /// The errors of fields, in order.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldError> {
        let field = |RequestError { field, code, sentence }: &RequestError| {
            Some(FieldError { field: field.clone()?, code: code.clone(), message: sentence.clone() })
        };
        self.errors.iter().filter_map(field).collect()
    }

    /// The sentences.
    #[must_use]
    pub fn into_sentences(self) -> Vec<String> {
        self.errors.into_iter().map(|error| error.sentence).collect()
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "; " }, error.sentence)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_common_one_of_all_errors_or_validation_failed() {
        let mut invalid = Invalid::field("a", ErrorCode::FieldMissing, "must be given");
        assert_eq!((invalid.code(), invalid.fields().len()), (ErrorCode::FieldMissing, 1));
        invalid.add("b", ErrorCode::FieldMissing, "must be given", ());
        assert_eq!(invalid.code(), ErrorCode::FieldMissing);
        invalid.append(Invalid::new(ErrorCode::JsonInvalid, "body must be UTF-8"));
        assert_eq!((invalid.code(), invalid.fields().len()), (ErrorCode::ValidationFailed, 2));
        assert_eq!(invalid.to_string(), "a must be given; b must be given; body must be UTF-8");
    }
}
