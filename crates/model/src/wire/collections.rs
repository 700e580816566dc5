//! Optional values, lists and maps.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use steersman_base::meta::Owners;
use steersman_base::{Istr, OwnerRef, Quantity, StringMap, Time};

use super::{
    Adapt, Fault, Few, Json, Message, Parts, Slice, Value, Wire, at_index, decode_json, in_field, without_place,
};
use crate::memo::{Masked, Memo};

/// Values by name, sorted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ByName<T>(Box<[(Istr, T)]>);

/// Amounts by name: `requests`, `limits`, `allocatable` and their like.
pub type Quantities = ByName<Quantity>;

/// Times by name.
pub type Times = ByName<Option<Time>>;

/// Quantities are mostly of these: CPU, memory, and what else there is.
const FIRST_CAPACITY: usize = 4;
/// Most objects have no more labels than this.
const FEW_PAIRS: usize = 8;

// === impl Option ===

impl<T: Wire> Wire for Option<T> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = Option<T::Building<'a>>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read_json(deserializer).map(Some)
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        T::take(building.get_or_insert_default(), value)
    }
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault> {
        building.map_or(Ok(None), T::finish_some)
    }
}

impl<T, W: Adapt<T>> Adapt<Option<T>> for Option<W> {
    fn adapt(self) -> Option<T> {
        self.map(W::adapt)
    }
}

// === impl Box ===

impl<T: Wire> Wire for Box<T> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = T::Building<'a>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read_json(deserializer).map(Self::new)
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        T::take(building, value)
    }
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault> {
        T::finish(building).map(Self::new)
    }
    fn finish_some(building: Self::Building<'_>) -> Result<Option<Self>, Fault> {
        Ok(T::finish_some(building)?.map(Self::new))
    }
}

// === impl lists ===

impl<T: Wire> Wire for Vec<T> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_list(deserializer, Self::push)
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.push(T::from_protobuf(value)?);
        Ok(())
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

impl<T: Wire> Wire for Box<[T]> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = Vec<T>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::read_json(deserializer).map(Vec::into_boxed_slice)
    }
    fn take<'a>(building: &mut Vec<T>, value: Value<'_, 'a>) -> Result<(), Fault> {
        Vec::take(building, value)
    }
    fn finish(building: Vec<T>) -> Result<Self, Fault> {
        Ok(building.into_boxed_slice())
    }
}

impl<T, W: Adapt<T>> Adapt<Box<[T]>> for Vec<W> {
    fn adapt(self) -> Box<[T]> {
        self.into_iter().map(W::adapt).collect()
    }
}

/// An element of which something, or nothing, is kept.
pub trait Pick: Wire {
    /// The kept part.
    type Kept;
    /// Returns the kept part of this value.
    fn pick(self) -> Option<Self::Kept>;
}

/// Reads a list and keeps of its elements what is [picked](Pick).
#[derive(Clone, Debug)]
pub struct Picked<W: Pick>(pub Vec<W::Kept>);

impl<W: Pick> Default for Picked<W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<W: Pick> Wire for Picked<W> {
    const PROTOBUF: bool = W::PROTOBUF;
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_list(deserializer, |Self(kept), element: W| kept.extend(element.pick()))
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.0.extend(W::from_protobuf(value)?.pick());
        Ok(())
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

impl<W: Pick> Adapt<Vec<W::Kept>> for Picked<W> {
    fn adapt(self) -> Vec<W::Kept> {
        self.0
    }
}

impl<W: Pick> Adapt<Box<[W::Kept]>> for Picked<W> {
    fn adapt(self) -> Box<[W::Kept]> {
        self.0.into()
    }
}

/// Reads a JSON list into a collection.
pub(crate) fn read_list<'de, D, L, T>(deserializer: D, push: impl Fn(&mut L, T)) -> Result<L, D::Error>
where
    D: Deserializer<'de>,
    L: Default,
    T: Wire,
{
    struct List<L, T, F>(F, PhantomData<(L, T)>);
    impl<'de, L: Default, T: Wire, F: Fn(&mut L, T)> de::Visitor<'de> for List<L, T, F> {
        type Value = L;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<L, A::Error> {
            let mut list = L::default();
            let mut count = 0;
            while let Some(Json(element)) = seq.next_element().map_err(|problem| at_index(count, &problem))? {
                (self.0)(&mut list, element);
                count += 1;
            }
            Ok(list)
        }
    }
    deserializer.deserialize_seq(List(push, PhantomData))
}

/// Siblings have the same owners, so what was made of the bytes is remembered.
static OWNERS: LazyLock<Memo<Owners>> = LazyLock::new(Memo::new);

impl Wire for Owners {
    type Building<'a> = Parts<'a>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get().as_bytes();
        let owners = OWNERS.remember(text, text.len(), &Masked::default(), |text| decode_json(text).map(Self::new));
        owners.map_err(|problem| without_place(&problem))
    }
    fn take<'a>(building: &mut Parts<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.push(value.slice()?);
        Ok(())
    }
    fn finish(building: Parts<'_>) -> Result<Self, Fault> {
        let read = |owner: &Slice<'_>| OwnerRef::merge(&Parts::from(*owner));
        match building.as_slice() {
            [] => Ok(Self::default()),
            // The bytes of an owner are not mistaken for a JSON list of them, which begins with a bracket.
            [owner] => {
                let bytes = owner.bytes();
                OWNERS.remember(bytes, bytes.len(), &Masked::default(), |_| Ok(Self::new(vec![read(owner)?])))
            }
            owners => Ok(Self::new(owners.iter().map(read).collect::<Result<_, _>>()?)),
        }
    }
}

// === impl maps ===

/// Reads the pairs of a JSON object.
struct Pairs<V>(PhantomData<V>);

impl<'de, V: Wire> de::Visitor<'de> for Pairs<V> {
    type Value = Vec<(Istr, V)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::with_capacity(FIRST_CAPACITY);
        while let Some(key) = map.next_key::<Istr>()? {
            let Json(value) = map.next_value().map_err(|problem| in_field(&key, &problem))?;
            pairs.push((key, value));
        }
        Ok(pairs)
    }
}

/// Reads one entry of a map: protobuf sends each as a message of key and value.
fn take_pair<V: Wire>(pairs: &mut Vec<(Istr, V)>, entry: Value<'_, '_>) -> Result<(), Fault> {
    let mut key = Istr::default();
    let mut value = V::Building::default();
    let mut reader = entry.slice()?.reader();
    while let Some((number, part)) = reader.field()? {
        match number {
            1 => Istr::take(&mut key, part)?,
            2 => V::take(&mut value, part)?,
            _ => part.skip()?,
        }
    }
    if pairs.is_empty() {
        pairs.reserve(FIRST_CAPACITY);
    }
    pairs.push((key, V::finish(value)?));
    Ok(())
}

impl Wire for StringMap {
    type Building<'a> = Few<(Cow<'a, str>, Cow<'a, str>), FEW_PAIRS>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> de::Visitor<'de> for Texts {
            type Value = StringMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringMap, A::Error> {
                let mut pairs = Few::<_, FEW_PAIRS>::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let value = map.next_value::<Option<Text<'de>>>();
                    let value = value.map_err(|problem| in_field(key.as_ref(), &problem))?.unwrap_or_default();
                    pairs.push((key, value));
                }
                Ok(StringMap::from_texts(pairs.as_mut_slice()))
            }
        }
        deserializer.deserialize_map(Texts)
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        let mut pair = (Cow::Borrowed(""), Cow::Borrowed(""));
        let mut reader = value.slice()?.reader();
        while let Some((number, part)) = reader.field()? {
            match number {
                1 => pair.0 = part.text()?,
                2 => pair.1 = part.text()?,
                _ => part.skip()?,
            }
        }
        building.push(pair);
        Ok(())
    }
    fn finish(mut building: Self::Building<'_>) -> Result<Self, Fault> {
        Ok(Self::from_texts(building.as_mut_slice()))
    }
}

/// A JSON text that is borrowed from the body, if it has no escapes.
#[derive(Default)]
struct Text<'a>(Cow<'a, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> de::Visitor<'de> for Borrowing {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

/// For a macro that needs an `as` in any case.
impl Adapt<StringMap> for StringMap {
    fn adapt(self) -> StringMap {
        self
    }
}

impl<T: Wire> Wire for ByName<T> {
    const PROTOBUF: bool = T::PROTOBUF;
    type Building<'a> = Vec<(Istr, T)>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData)).map(Self::new)
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        take_pair(building, value)
    }
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault> {
        Ok(Self::new(building))
    }
}

// === impl ByName ===

impl<T> ByName<T> {
    /// Returns the values with these names. If a name occurs twice, the last one counts.
    #[must_use]
    pub fn new(mut pairs: Vec<(Istr, T)>) -> Self {
        if !pairs.is_sorted_by(|(left, _), (right, _)| left < right) {
            pairs.reverse();
            pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
            pairs.dedup_by(|(earlier, _), (last, _)| earlier == last);
        }
        Self(pairs.into())
    }

    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        let at = self.0.binary_search_by(|(held, _)| held.as_str().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Istr, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for ByName<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
