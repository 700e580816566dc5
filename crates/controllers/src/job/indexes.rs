//! Pure: sets of completion indexes, as intervals.
//!
//! A Job of a hundred thousand completions that finish more or less in order is a handful of intervals; no operation
//! costs more than the number of intervals, and of indexes that are added or asked for.

use std::fmt;

/// A set of indexes: intervals in order, none of which overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Interval>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    first: i32,
    last: i32,
}

// === impl Indexes ===

impl Indexes {
    /// Reads a text such as `1,3-5`. Indexes from `completions` on are left out, and so is what cannot be read.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let interval = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: i32 = first.parse().ok()?;
            let last: i32 = last.parse().ok()?;
            let last = last.min(completions.saturating_sub(1));
            (0 <= first && first <= last).then_some(Interval { first, last })
        };
        Self::joined(text.split(',').filter_map(interval).collect())
    }

    /// Whether the index is in the set.
    pub(super) fn contains(&self, index: i32) -> bool {
        let at = self.0.partition_point(|interval| interval.last < index);
        self.0.get(at).is_some_and(|interval| interval.first <= index)
    }

    /// Returns the number of indexes.
    pub(super) fn len(&self) -> i32 {
        self.0.iter().map(|interval| interval.len()).sum()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the indexes that are in one of the two sets.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::joined(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Returns the number of indexes that are in both sets.
    pub(super) fn overlap(&self, other: &Self) -> i32 {
        let mut count = 0;
        let mut left = self.0.iter().peekable();
        let mut right = other.0.iter().peekable();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            count += (one.last.min(two.last) - one.first.max(two.first) + 1).max(0);
            // The one that ends first overlaps nothing else.
            if one.last <= two.last {
                left.next();
            } else {
                right.next();
            }
        }
        count
    }

    /// Returns the first indexes below `end` that are not in the set, `count` at most.
    pub(super) fn first_absent(&self, count: usize, end: i32) -> Vec<i32> {
        let gap_ends =
            self.0.iter().map(|interval| (interval.first, interval.last.saturating_add(1))).chain([(end, end)]);
        let mut from = 0;
        let mut absent = Vec::new();
        for (gap_end, next) in gap_ends {
            let gap = from..gap_end.min(end);
            absent.extend(gap.take(count - absent.len()));
            if absent.len() == count {
                break;
            }
            from = next;
        }
        absent
    }

    /// Joins intervals of any order.
    fn joined(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable();
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match joined.last_mut() {
                Some(before) if interval.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(interval.last);
                }
                _ => joined.push(interval),
            }
        }
        joined.shrink_to_fit();
        Self(joined)
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Self {
        Self::joined(indexes.into_iter().map(|index| Interval { first: index, last: index }).collect())
    }
}

/// The form of `status.completedIndexes`: two neighbours are listed, more of them are a range.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for interval in &self.0 {
            write!(f, "{comma}{}", interval.first)?;
            match interval.len() {
                1 => {}
                2 => write!(f, ",{}", interval.last)?,
                _ => write!(f, "-{}", interval.last)?,
            }
            comma = ",";
        }
        Ok(())
    }
}

// === impl Interval ===

impl Interval {
    fn len(self) -> i32 {
        self.last - self.first + 1
    }
}
