//! Errors of the operating system that name the file.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The system's error about a file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// Makes the error of a call name the file. Its kind stays the same.
pub(crate) fn named<T>(path: &Path, outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|source| io::Error::new(source.kind(), FileError { path: path.to_owned(), source }))
}

/// The system's number of an error, such as `EMFILE`, even if the error names a file. `None` if the error is not the
/// system's.
#[must_use]
pub fn system_error(error: &io::Error) -> Option<i32> {
    let named = error.get_ref().and_then(|inner| inner.downcast_ref::<FileError>());
    named.map_or(error, |named| &named.source).raw_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_file_and_keeps_its_kind_and_number() {
        let path = Path::new("/data/journal.json");
        let error = named::<()>(path, Err(io::Error::from_raw_os_error(13))).unwrap_err();
        assert_eq!(error.to_string(), "/data/journal.json: Permission denied (os error 13)");
        assert_eq!((error.kind(), system_error(&error)), (io::ErrorKind::PermissionDenied, Some(13)));
        assert_eq!(system_error(&io::Error::from_raw_os_error(24)), Some(24));
        assert_eq!(system_error(&io::Error::other("a panic")), None);
    }
}
