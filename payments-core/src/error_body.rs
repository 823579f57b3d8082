//! The body of every refusal.

use serde::{Deserialize, Serialize};

/// What every answer other than a success carries (API specification, "Errors").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The HTTP status, once more.
    #[serde(rename = "statusCode")]
    pub status_code: u16,
    /// What is wrong: a list with a sentence for each field where a request did not validate, else one sentence.
    pub message: Message,
    /// The status's reason phrase, such as `Bad Request`.
    pub error: String,
}

/// One sentence, or one for each fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// What is wrong.
    One(String),
    /// What is wrong with each field.
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
