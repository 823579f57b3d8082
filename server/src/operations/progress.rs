//! A progress bar for long work on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// Records between two updates of the bar.
const STEP: u64 = 1024;

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

/// Updates the bar every [`STEP`] records.
pub(super) fn step(bar: &ProgressBar, done: u64) {
    if done.is_multiple_of(STEP) {
        bar.set_position(done);
    }
}
