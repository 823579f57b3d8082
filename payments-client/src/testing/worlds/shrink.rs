//! Finds a short history that still fails.

use std::{cell::Cell, panic, pin::pin, sync::Once, task::Poll};

use super::history::History;

/// Removes troubles and steps for as long as the shop still fails. Returns the history and its error.
pub(super) async fn shortest(
    mut history: History,
    mut error: String,
    fails: impl AsyncFn(&History) -> Option<String>,
) -> (History, String) {
    let mut at_once = history.steps.len();
    loop {
        let mut has_shrunk = false;
        let changes = (0..history.steps.len()).step_by(at_once.max(1)).map(|place| (place, at_once));
        // From the last one, so that the places of the others stay.
        for (place, at_once) in changes.rev() {
            for change in CHANGES {
                let mut other = history.clone();
                if change(&mut other, place, at_once)
                    && let Some(said) = fails(&other).await
                {
                    (history, error, has_shrunk) = (other, said, true);
                }
            }
        }
        match at_once {
            0..=1 if !has_shrunk => return (history, error),
            _ => at_once = (at_once / 2).max(1),
        }
    }
}

/// Each makes a history simpler at a place, or returns false.
const CHANGES: [fn(&mut History, usize, usize) -> bool; 4] = [
    |history, place, at_once| {
        history.steps.drain(place..(place + at_once).min(history.steps.len()));
        true
    },
    |history, place, _| history.steps.get_mut(place).is_some_and(|step| step.overlap.take().is_some()),
    |history, place, _| history.steps.get_mut(place).is_some_and(|step| step.cut.take().is_some()),
    |history, place, _| history.steps.get_mut(place).is_some_and(|step| step.faults.pop().is_some()),
];

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panics of a future from standard error: its many replays would fill the screen, and the failure has the last one.
pub(super) async fn quiet<T>(future: impl Future<Output = T>) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let prior = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                prior(panic);
            }
        }));
    });
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            IS_QUIET.set(false);
        }
    }
    let mut future = pin!(future);
    std::future::poll_fn(|context| -> Poll<T> {
        IS_QUIET.set(true);
        let _loud = Loud;
        future.as_mut().poll(context)
    })
    .await
}
