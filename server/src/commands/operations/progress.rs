//! A progress bar for long work on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::store::StoreError;

/// Shows a bar on the standard error stream if that is a terminal. Otherwise does not even count the records.
pub(super) fn bar(
    what: &'static str,
    records: impl FnOnce() -> Result<u64, StoreError>,
) -> Result<ProgressBar, StoreError> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let bar = ProgressBar::new(records()?).with_message(what);
    Ok(match ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    })
}
