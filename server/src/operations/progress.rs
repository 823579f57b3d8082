//! A progress bar for long work on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Shows a bar on the standard error stream if that is a terminal. Calls `total` only then.
pub(super) fn bar(what: &'static str, total: impl FnOnce() -> u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total()).with_message(what);
    match ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
