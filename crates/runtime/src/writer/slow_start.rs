//! Many equal writes, in growing batches.

use std::future::Future;

use futures::future::join_all;

/// Runs batches of 1, 2, 4, … at once; a batch with a failure is the last. An exhausted quota then costs one refused
/// request and not hundreds, and one event.
pub(super) async fn slow_start<F, T, E>(count: usize, mut write: impl FnMut(usize) -> F) -> (usize, Option<E>)
where
    F: Future<Output = Result<T, E>>,
{
    let mut next = 0;
    let mut made = 0;
    let mut batch = 1;
    while next < count {
        let end = count.min(next + batch);
        let outcomes = join_all((next..end).map(&mut write)).await;
        let mut failure = None;
        for outcome in outcomes {
            match outcome {
                Ok(_) => made += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if failure.is_some() {
            return (made, failure);
        }
        next = end;
        batch *= 2;
    }
    (made, None)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::writer::{WriteError, Written};

    #[tokio::test]
    async fn batches_double_until_the_first_failure() {
        for (count, fails_at, want_asked, want_made) in [
            (0, 99, 0, 0),
            (1, 99, 1, 1),
            (10, 99, 10, 10),
            (10, 0, 1, 0),
            (10, 1, 3, 2),
            (10, 4, 7, 6),
            (500, 3, 7, 6),
        ] {
            let asked = RefCell::new(0);
            let (made, failure) = slow_start(count, |at| {
                *asked.borrow_mut() += 1;
                async move { if at == fails_at { Err(WriteError::Conflict) } else { Ok(Written::default()) } }
            })
            .await;
            assert_eq!((*asked.borrow(), made), (want_asked, want_made), "{count} writes, number {fails_at} fails");
            assert_eq!(failure.is_some(), fails_at < count);
        }
    }
}
