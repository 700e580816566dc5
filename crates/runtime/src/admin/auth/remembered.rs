//! A cache of answers that expire after some seconds.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Answers by question, each until it expires; the oldest are evicted when there are too many.
pub(super) struct Remembered<K, V> {
    max: usize,
    answers: Mutex<Answers<K, V>>,
}

struct Answers<K, V> {
    by_question: BTreeMap<K, (Instant, V)>,
    /// The questions in the order they came; a repeated question is here twice, and the older entry is void.
    order: VecDeque<(Instant, K)>,
}

// === impl Remembered ===

impl<K: Ord + Clone, V: Clone> Remembered<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, answers: Mutex::new(Answers { by_question: BTreeMap::new(), order: VecDeque::new() }) }
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, question: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let answers = self.answers.lock();
        let (until, answer) = answers.by_question.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    pub(super) fn put(&self, question: K, answer: V, ttl: Duration) {
        let mut answers = self.answers.lock();
        let Answers { by_question, order } = &mut *answers;
        let now = Instant::now();
        let until = now + ttl;
        by_question.insert(question.clone(), (until, answer));
        order.push_back((until, question));
        while let Some((until, oldest)) = order.front() {
            let known = by_question.get(oldest).map(|(until, _)| *until);
            let void = known != Some(*until);
            if !void && *until > now && order.len() <= self.max {
                break;
            }
            if !void {
                by_question.remove(oldest);
            }
            order.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.answers.lock().by_question.len()
    }
}
