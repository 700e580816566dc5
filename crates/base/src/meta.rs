//! The metadata of Kubernetes objects.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::istr::{Entry, HASHER, Pool, Table};
use crate::{Istr, ObjectKey, ResourceVersion, Time, Uid};

/// The metadata of an object, without `managedFields`, which no controller reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Name, unique within namespace and resource.
    pub name: Istr,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: Istr,
    /// Identity over time: a name can be used again, a uid never.
    pub uid: Uid,
    /// Version of this state of the object.
    pub resource_version: ResourceVersion,
    /// Generation of the spec; incremented when the spec changes.
    pub generation: i64,
    /// The time at which the server accepted it.
    pub creation_timestamp: Option<Time>,
    /// Labels, by which selectors find it.
    pub labels: StringMap,
    /// Annotations.
    pub annotations: StringMap,
    /// Its owners. Siblings share one list.
    pub owner_references: Owners,
    /// Fields that few objects have.
    pub rare: Option<Box<RareMeta>>,
}

/// Metadata that most objects lack, stored out of line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RareMeta {
    /// Prefix from which the server generated the name.
    pub generate_name: Istr,
    /// The time at which it is to be deleted; if set, the object is terminating.
    pub deletion_timestamp: Option<Time>,
    /// The grace period.
    pub deletion_grace_period_seconds: Option<i64>,
    /// The finalizers.
    pub finalizers: Box<[Istr]>,
}

/// A reference from an object to one of its owners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerRef {
    /// API group and version of the owner.
    #[serde(default)]
    pub api_version: Istr,
    /// Kind of the owner.
    #[serde(default)]
    pub kind: Istr,
    /// Name of the owner.
    #[serde(default)]
    pub name: Istr,
    /// Uid of the owner: a reference with another uid does not refer to the object of the same name.
    #[serde(default)]
    pub uid: Uid,
    /// Whether this owner manages the object; at most one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// The owner references of an object; equal lists are one allocation.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Owners(Option<Arc<[OwnerRef]>>);

/// An immutable map of strings, sorted by key: labels and annotations.
///
/// Objects of one template have the same keys, so the keys are one shared list and only the values are the object's
/// own.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct StringMap {
    keys: Option<Arc<[Istr]>>,
    values: Box<[Istr]>,
}

static OWNER_LISTS: LazyLock<Pool<[OwnerRef]>> = LazyLock::new(Pool::new);
static KEY_LISTS: LazyLock<Table<KeyList>> = LazyLock::new(Table::default);

// === impl Meta ===

impl Meta {
    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Returns the owner that manages the object, if there is one.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether `owner` manages the object, by uid.
    #[must_use]
    pub fn is_controlled_by(&self, owner: &Meta) -> bool {
        self.controller().is_some_and(|controller| controller.uid == owner.uid)
    }

    /// Returns when the object is to be deleted; if set, it is terminating.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<Time> {
        self.rare.as_ref()?.deletion_timestamp
    }

    /// Whether the object is terminating.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp().is_some()
    }

    /// Returns the grace period.
    #[must_use]
    pub fn deletion_grace_period_seconds(&self) -> Option<i64> {
        self.rare.as_ref()?.deletion_grace_period_seconds
    }

    /// Returns the prefix from which the server generated the name; empty if there is none.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        self.rare.as_ref().map_or("", |rare| &rare.generate_name)
    }

    /// Returns the finalizers.
    #[must_use]
    pub fn finalizers(&self) -> &[Istr] {
        self.rare.as_ref().map_or(&[], |rare| &rare.finalizers)
    }

    /// Whether the object has this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().iter().any(|held| *held == finalizer)
    }
}

/// Writes the metadata as a PUT takes it: whole, but for `managedFields`, which the server then keeps.
impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        macro_rules! put {
            ($name:literal, $value:expr) => {
                if !$value.is_empty() {
                    map.serialize_entry($name, &$value)?;
                }
            };
        }
        put!("annotations", self.annotations);
        if let Some(time) = self.creation_timestamp {
            map.serialize_entry("creationTimestamp", &time)?;
        }
        if let Some(seconds) = self.deletion_grace_period_seconds() {
            map.serialize_entry("deletionGracePeriodSeconds", &seconds)?;
        }
        if let Some(time) = self.deletion_timestamp() {
            map.serialize_entry("deletionTimestamp", &time)?;
        }
        put!("finalizers", self.finalizers());
        put!("generateName", self.generate_name());
        if self.generation != 0 {
            map.serialize_entry("generation", &self.generation)?;
        }
        put!("labels", self.labels);
        put!("name", self.name);
        put!("namespace", self.namespace);
        put!("ownerReferences", self.owner_references);
        put!("resourceVersion", self.resource_version);
        put!("uid", self.uid);
        map.end()
    }
}

// === impl OwnerRef ===

impl OwnerRef {
    /// A reference that makes `owner` the controller of an object, as controllers set it.
    #[must_use]
    pub fn controller_of(api_version: &str, kind: &str, owner: &Meta) -> Self {
        Self {
            api_version: Istr::interned(api_version),
            kind: Istr::interned(kind),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// The API group of the owner; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

// === impl Owners ===

impl Owners {
    /// The shared list with these references.
    #[must_use]
    pub fn new(owners: Vec<OwnerRef>) -> Self {
        Self((!owners.is_empty()).then(|| OWNER_LISTS.share_list(owners)))
    }
}

impl std::ops::Deref for Owners {
    type Target = [OwnerRef];
    fn deref(&self) -> &[OwnerRef] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for Owners {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Owners {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::new)
    }
}

// === impl StringMap ===

impl StringMap {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Istr> {
        let at = self.keys().binary_search_by(|held| held.as_str().cmp(key)).ok()?;
        Some(&self.values[at])
    }

    /// Whether the key is there.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Keys and values, by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Istr, &Istr)> {
        self.keys().iter().zip(&*self.values)
    }

    fn keys(&self) -> &[Istr] {
        self.keys.as_deref().unwrap_or_default()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the map with these pairs. If a key occurs twice, the last one counts, as in JSON.
    #[must_use]
    pub fn new(mut pairs: Vec<(Istr, Istr)>) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        if !pairs.is_sorted_by(|(left, _), (right, _)| left < right) {
            pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
            pairs.reverse();
            pairs.dedup_by(|(later, _), (kept, _)| later == kept);
            pairs.reverse();
        }
        Self::of_sorted(&pairs, Istr::clone)
    }

    /// The map with these texts, as [`new`](Self::new) has it; they are left in any order. The keys are looked up all
    /// at once, and values that are seen for the first time stay out of the pool.
    #[must_use]
    pub fn from_texts<T: AsRef<str>>(pairs: &mut [(T, T)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let mut length = pairs.len();
        if !pairs.is_sorted_by(|(left, _), (right, _)| left.as_ref() < right.as_ref()) {
            pairs.reverse();
            pairs.sort_by(|(left, _), (right, _)| left.as_ref().cmp(right.as_ref()));
            // Of equal keys the last one is now the first one; it moves to the front, behind those that are kept.
            length = 1;
            for at in 1..pairs.len() {
                if pairs[at].0.as_ref() != pairs[length - 1].0.as_ref() {
                    pairs.swap(length, at);
                    length += 1;
                }
            }
        }
        Self::of_sorted(&pairs[..length], |value| Istr::interned_if_seen(value.as_ref()))
    }

    /// Makes values that are equal to `text` share its allocation, for a name that is also a label.
    pub fn reuse(&mut self, text: &Istr) {
        for value in &mut self.values {
            if value == text {
                *value = text.clone();
            }
        }
    }

    fn of_sorted<T: AsRef<str>>(pairs: &[(T, T)], value: impl Fn(&T) -> Istr) -> Self {
        let keys = || pairs.iter().map(|(key, _)| key.as_ref());
        let same = |KeyList(held): &KeyList| held.len() == pairs.len() && held.iter().map(Istr::as_str).eq(keys());
        let KeyList(keys) = KEY_LISTS.share(hash_keys(keys()), same, || KeyList(keys().map(Istr::interned).collect()));
        Self { keys: Some(keys), values: pairs.iter().map(|(_, text)| value(text)).collect() }
    }
}

/// A pooled list of keys; it can be found by texts that are not interned.
#[derive(Clone)]
struct KeyList(Arc<[Istr]>);

impl Entry for KeyList {
    fn hash(&self) -> u64 {
        hash_keys(self.0.iter().map(Istr::as_str))
    }

    fn is_used(&mut self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

fn hash_keys<'a>(keys: impl Iterator<Item = &'a str>) -> u64 {
    let mut hasher = HASHER.build_hasher();
    keys.for_each(|key| key.hash(&mut hasher));
    hasher.finish()
}

impl<K: Into<Istr>, V: Into<Istr>> FromIterator<(K, V)> for StringMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::new(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl<K: Into<Istr>, V: Into<Istr>, const N: usize> From<[(K, V); N]> for StringMap {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl fmt::Debug for StringMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for StringMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for StringMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> de::Visitor<'de> for Pairs {
            type Value = StringMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<StringMap, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(8).min(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(StringMap::new(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_the_owner_marked_as_such() {
        let owner = |uid: &str, controller| OwnerRef { uid: uid.into(), controller, ..OwnerRef::default() };
        let meta = |owners| Meta { owner_references: Owners::new(owners), ..Meta::default() };
        assert_eq!(meta(vec![owner("a", None), owner("b", Some(false))]).controller(), None);
        let controlled = meta(vec![owner("a", None), owner("b", Some(true)), owner("c", Some(true))]);
        assert_eq!(
            controlled.controller().unwrap().uid,
            Uid::new("b"),
            "the first counts, as in metav1.GetControllerOf"
        );
        assert!(controlled.is_controlled_by(&Meta { uid: "b".into(), ..Meta::default() }));
    }

    #[test]
    fn a_map_is_sorted_and_the_last_of_two_equal_keys_counts() {
        let map: StringMap = serde_json::from_str(r#"{"b":"1","a":"2","b":"3"}"#).unwrap();
        assert_eq!(map.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["a=2", "b=3"]);
        assert_eq!(map.get("b").unwrap(), "3");
        assert_eq!(map.get("c"), None);
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":"2","b":"3"}"#);
    }

    #[test]
    fn a_map_of_texts_is_the_same_map() {
        let check = |pairs: &[(&str, &str)]| {
            let want: StringMap = pairs.iter().copied().collect();
            assert_eq!(StringMap::from_texts(&mut pairs.to_vec()), want);
        };
        check(&[]);
        check(&[("a", "1")]);
        check(&[("a", "1"), ("b", "2")]);
        check(&[("b", "1"), ("a", "2"), ("b", "3")]);
        check(&[("c", "1"), ("a", "2"), ("c", "3"), ("b", "4"), ("a", "5"), ("c", "6"), ("d", "7")]);
    }

    #[test]
    fn maps_of_one_template_share_their_keys() {
        let map = |value: &str| StringMap::from([("app", "web"), ("unique", value)]);
        assert!(std::ptr::eq(map("1").keys(), map("2").keys()));
    }

    #[test]
    fn a_label_that_says_the_name_has_no_allocation_of_its_own() {
        let name = Istr::new("database-of-the-accounting-0");
        let mut labels = StringMap::from([("app", "database"), ("pod-name", "database-of-the-accounting-0")]);
        labels.reuse(&name);
        assert!(labels.get("pod-name").unwrap().same_allocation(&name));
        assert_eq!(labels.get("app").unwrap(), "database");
    }

    #[test]
    fn siblings_share_their_owner_references() {
        let owners = || Owners::new(vec![OwnerRef { uid: "a".into(), ..OwnerRef::default() }]);
        let one = owners();
        let other = owners();
        assert!(std::ptr::eq(&*one, &*other));
    }
}
