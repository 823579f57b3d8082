//! The message about a place without a store.

use std::{
    fs, io,
    path::{Path, absolute},
};

/// Says what is in a directory without a store. `flag` names another directory.
pub fn no_store_in(directory: &Path, flag: &str) -> String {
    let directory = absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let found = match fs::read_dir(&directory).map(|mut entries| entries.next()) {
        Ok(None) => "it is empty".to_owned(),
        Ok(Some(_)) => "it has other files".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "it does not exist".to_owned(),
        Err(error) => format!("it cannot be read: {error}"),
    };
    let name = directory.display();
    format!("there is no store in {name}: {found}, and no server serves from it; name the right directory with {flag}")
}
