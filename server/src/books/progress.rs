//! A progress bar for long work, where somebody watches.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// How many records lie between two looks at the bar.
const STEP: u64 = 1024;

/// A bar on the standard error stream, or nothing if that is no terminal. `total` is asked for only if it is one.
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

/// Moves the bar now and then.
pub(super) fn step(bar: &ProgressBar, done: u64) {
    if done.is_multiple_of(STEP) {
        bar.set_position(done);
    }
}
