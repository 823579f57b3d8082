//! Bounded retries after a conflict.

use super::{Result, ServiceError};

/// Maximum tries of a use case. Each conflict means that a concurrent change was committed.
const MAX_TRIES: usize = 32;

/// Runs a use case that reads, decides and commits, and runs it again after a conflict, up to [`MAX_TRIES`] times.
pub(super) async fn retry_on_conflict<T, F>(decide: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    for _ in 1..MAX_TRIES {
        match decide().await {
            Err(ServiceError::Conflict) => tokio::task::yield_now().await,
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
    async fn a_use_case_is_retried_after_conflicts_up_to_a_limit() {
        let tries = Cell::new(0);
        let conflicts = |count: usize| {
            let tries = &tries;
            move || async move {
                tries.set(tries.get() + 1);
                if tries.get() <= count { Err(ServiceError::Conflict) } else { Ok(tries.get()) }
            }
        };
        assert_eq!(retry_on_conflict(conflicts(3)).await.unwrap(), 4);
        tries.set(0);
        assert!(matches!(retry_on_conflict(conflicts(usize::MAX)).await, Err(ServiceError::Conflict)));
        assert_eq!(tries.get(), MAX_TRIES);
    }
}
