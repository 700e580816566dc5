//! Values that many objects have in common, kept once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::Deserializer;
use steersman_base::istr::Pool;

use crate::wire::{Adapt, Fault, Value, Wire};

/// A value of which equal ones share one allocation.
pub struct Shared<T: Pooled>(Arc<T>);

/// A list of which equal ones share one allocation; an empty one has none.
pub struct SharedList<T>(Option<Arc<[T]>>);

/// A type that has a pool: `pooled!` gives it one.
pub trait Pooled: std::hash::Hash + Eq + Default + Send + Sync + 'static {
    /// The one pool of this type.
    fn pool() -> &'static Pool<Self>;
    /// The pooled default value.
    fn empty() -> &'static Arc<Self>;
}

/// A type whose lists have a pool: `pooled!` gives it one.
pub trait PooledInLists: std::hash::Hash + Eq + Send + Sync + Sized + 'static {
    /// The one pool of lists of this type.
    fn pool() -> &'static Pool<[Self]>;
}

/// Gives types, or lists of them, their pool.
macro_rules! pooled {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::shared::Pooled for $type {
            fn pool() -> &'static ::steersman_base::istr::Pool<Self> {
                static POOL: ::std::sync::LazyLock<::steersman_base::istr::Pool<$type>> =
                    ::std::sync::LazyLock::new(::steersman_base::istr::Pool::new);
                &POOL
            }
            fn empty() -> &'static ::std::sync::Arc<Self> {
                static EMPTY: ::std::sync::LazyLock<::std::sync::Arc<$type>> =
                    ::std::sync::LazyLock::new(|| <$type>::pool().share_value(<$type>::default()));
                &EMPTY
            }
        }
    )*};
    (lists of $($type:ty),* $(,)?) => {$(
        impl $crate::shared::PooledInLists for $type {
            fn pool() -> &'static ::steersman_base::istr::Pool<[Self]> {
                static POOL: ::std::sync::LazyLock<::steersman_base::istr::Pool<[$type]>> =
                    ::std::sync::LazyLock::new(::steersman_base::istr::Pool::new);
                &POOL
            }
        }
    )*};
}
pub(crate) use pooled;

// === impl Shared ===

impl<T: Pooled> Shared<T> {
    /// The shared value equal to this one.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(T::pool().share_value(value))
    }

    /// Whether both are one allocation.
    #[must_use]
    pub fn same_allocation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Pooled> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Pooled> Default for Shared<T> {
    fn default() -> Self {
        Self(Arc::clone(T::empty()))
    }
}

/// Values that are one allocation need no comparing.
impl<T: Pooled> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Pooled> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Pooled + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

// === impl SharedList ===

impl<T: PooledInLists> SharedList<T> {
    /// The shared list equal to this one.
    #[must_use]
    pub fn new(list: Vec<T>) -> Self {
        Self((!list.is_empty()).then(|| T::pool().share_list(list)))
    }
}

impl<T: PooledInLists + Clone> SharedList<T> {
    /// Returns the shared list equal to this one; this one is only borrowed if there is one.
    #[must_use]
    pub fn of(list: &[T]) -> Self {
        Self((!list.is_empty()).then(|| T::pool().share_ref(list, || Arc::from(list))))
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Lists that are one allocation need no comparing.
impl<T: PartialEq> PartialEq for SharedList<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left == right,
            (left, right) => left.is_none() && right.is_none(),
        }
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a, T> IntoIterator for &'a SharedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PooledInLists> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::new(values.into_iter().collect())
    }
}

impl<T: Wire + PooledInLists> Wire for SharedList<T> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = Vec<T>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::read_json(deserializer).map(Self::new)
    }
    fn take<'a>(building: &mut Vec<T>, value: Value<'_, 'a>) -> Result<(), Fault> {
        Vec::take(building, value)
    }
    fn finish(building: Vec<T>) -> Result<Self, Fault> {
        Ok(Self::new(building))
    }
}

impl<T: PooledInLists, W: Adapt<T>> Adapt<SharedList<T>> for Vec<W> {
    fn adapt(self) -> SharedList<T> {
        self.into_iter().map(W::adapt).collect()
    }
}
