//! Deciding anew when somebody else was faster.

use super::Refused;

/// How often a use case decides anew. Each time somebody else's change of the same payment was made, so more tries than
/// this mean that the payment is changed without pause.
const TRIES: usize = 32;

/// Runs a use case that reads a payment, decides and commits, until its commit meets the payment as it was read.
///
/// # Errors
/// [`Refused::Moved`] if somebody else was faster every time.
pub(super) async fn retry_on_conflict<T, F>(decide: impl Fn() -> F) -> Result<T, Refused>
where
    F: Future<Output = Result<T, Refused>>,
{
    for _ in 1..TRIES {
        match decide().await {
            Err(Refused::Moved) => tokio::task::yield_now().await,
            outcome => return outcome,
        }
    }
    decide().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_use_case_decides_anew_after_a_conflict_and_gives_up_after_a_number_of_them() {
        let tries = Cell::new(0);
        let conflicts = |count: usize| {
            let tries = &tries;
            move || async move {
                tries.set(tries.get() + 1);
                if tries.get() <= count { Err(Refused::Moved) } else { Ok(tries.get()) }
            }
        };
        assert_eq!(retry_on_conflict(conflicts(3)).await.unwrap(), 4);
        tries.set(0);
        assert!(matches!(retry_on_conflict(conflicts(usize::MAX)).await, Err(Refused::Moved)));
        assert_eq!(tries.get(), TRIES);
    }
}
