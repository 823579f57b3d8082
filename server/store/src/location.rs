//! Where a store is: a directory of this machine, or a PostgreSQL database.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};

use super::postgres::{Target, TargetError};

#[derive(Clone)]
pub enum Location {
    Directory(PathBuf),
    Database(Box<Target>),
}

impl Location {
    /// A database if `text` is its URL, else a directory.
    pub fn new(text: &SecretString, password_file: Option<&Path>) -> Result<Self, TargetError> {
        if let Some(directory) = Self::directory_in(text) {
            return Ok(Self::Directory(std::path::absolute(directory).unwrap_or(directory.to_owned())));
        }
        Ok(Self::Database(Box::new(Target::new(text, password_file)?)))
    }

    /// The directory that a text names, if it is not the URL of a database.
    pub fn directory_in(text: &SecretString) -> Option<&Path> {
        let text = text.expose_secret();
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        (!is_url).then(|| Path::new(text))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "{}", directory.display()),
            Self::Database(target) => write!(f, "{target}"),
        }
    }
}
