//! The body of an error response.

use serde::{Deserialize, Serialize};

/// The body of an error response (API specification, "Errors").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The HTTP status.
    #[serde(rename = "statusCode")]
    pub status_code: u16,
    /// What went wrong: a list with one sentence per invalid field for a validation error, else one sentence.
    pub message: Message,
    /// The reason phrase of the status, such as `Bad Request`.
    pub error: String,
}

/// One sentence, or one per invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// One sentence.
    One(String),
    /// One sentence per invalid field.
    Many(Vec<String>),
}

impl Message {
    /// The sentences.
    #[must_use]
    pub fn sentences(&self) -> &[String] {
        match self {
            Self::One(sentence) => std::slice::from_ref(sentence),
            Self::Many(sentences) => sentences,
        }
    }
}
