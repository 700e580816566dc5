//! `view!`: one declaration, two decoders.

/// Declares what is kept of a message, and how it is read, once for JSON and protobuf.
///
/// Each field is `name: Type = number`. The JSON name is the field's name in camelCase, or the literal behind it; the
/// number is the one of Kubernetes' protobuf definition. Fields that are not declared are skipped.
///
/// ```
/// use steersman_base::{Istr, Meta, Resource};
/// use steersman_model::{Encoded, Kind, View, view};
///
/// view! {
///     /// What we read of a Lamp.
///     pub struct LampView for namespaced("example.dev", "v1", "lamps", "Lamp") {
///         /// Its metadata.
///         metadata: Meta = 1,
///         /// What it should do.
///         spec: LampSpec = 2,
///     }
/// }
/// view! {
///     /// What a Lamp should do.
///     pub struct LampSpec: Serialize {
///         /// Whether it is on; unset is neither.
///         is_on: Option<bool> = 1,
///         /// Its address. Camel case would be `hostIp`.
///         host_ip "hostIP": Istr = 2,
///         /// The colours it can show.
///         colors: Box<[Istr]> = 3,
///     }
/// }
///
/// let body = br#"{"metadata":{"name":"desk"},"spec":{"hostIP":"10.0.0.7","colors":["red"],"watts":5,"isOn":null}}"#;
/// let lamp = LampView::decode(Encoded::Json(body))?;
/// assert_eq!(lamp.metadata.name, "desk");
/// assert_eq!((lamp.spec.host_ip.as_str(), lamp.spec.is_on), ("10.0.0.7", None));
/// assert_eq!(LampView::RESOURCE.to_string(), "lamps.example.dev");
/// assert_eq!(serde_json::to_string(&lamp.spec)?, r#"{"hostIP":"10.0.0.7","colors":["red"]}"#);
///
/// let body = b"\x0a\x06\x0a\x04desk\x12\x0f\x12\x0810.0.0.7\x1a\x03red";
/// assert_eq!(LampView::decode(Encoded::Protobuf(body))?, lamp);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * `for namespaced(group, version, plural, kind)` (or `cluster(…)`) makes it a [`View`](crate::View) and a
///   [`Kind`](crate::Kind); its metadata is the field `metadata`. It can be read from protobuf if all its fields can.
/// * `: Serialize` writes it as a PUT takes it: in the order declared, what is default left out, a kind with its
///   `apiVersion` and `kind`. For views that hold *all* of a message; others would lose what they do not hold.
/// * `name: Type as Read = number` reads a `Read` and keeps what it [adapts](crate::wire::Adapt) to.
/// * `..name: Type = number`, as the last field: in JSON its fields stand among those of this struct, in protobuf it is a
///   message of its own. Go calls this an inlined struct.
/// * Every struct gets `Clone`, `Debug`, `Default` and `PartialEq`; further attributes are passed on.
#[macro_export]
macro_rules! view {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident $(: $serialize:ident)? $(for $scope:ident ($($id:literal),+ $(,)?))? {
            $(
                $(#[$field_attribute:meta])*
                $field:ident $($json:literal)? : $type:ty $(as $read:ty)? = $number:literal
            ),* $(,)?
            $(.. $inline:ident : $inline_type:ty = $inline_number:literal $(,)?)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[$field_attribute])* $vis $field: $type, )*
            $(
                #[doc = "What it is made of. In JSON these fields stand among the ones above."]
                $vis $inline: $inline_type,
            )?
        }
        $crate::message! {
            $name {
                $( $field $($json)? : $type $(as $read)? = $number, )*
                $( .. $inline : $inline_type = $inline_number, )?
            }
        }
        $(
            impl $crate::View for $name {
                const PROTOBUF: bool = <Self as $crate::wire::Wire>::PROTOBUF;
                fn meta(&self) -> &$crate::__private::Meta {
                    &self.metadata
                }
                fn decode(body: $crate::Encoded<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                    $crate::wire::decode(body, stringify!($name))
                }
            }
            impl $crate::Kind for $name {
                const RESOURCE: $crate::__private::Resource = $crate::__private::Resource::$scope($($id),+);
            }
        )?
        $crate::__serialize! {
            $($serialize)? $name $(for $scope ($($id),+))? { $( $field $($json)? ),* }
        }
    };
}

/// Gives a struct that is declared elsewhere its two decoders; the fields are as in [`view!`](crate::view).
#[macro_export]
macro_rules! message {
    (
        $name:ident {
            $( $field:ident $($json:literal)? : $type:ty $(as $read:ty)? = $number:literal ),* $(,)?
            $(.. $inline:ident : $inline_type:ty = $inline_number:literal $(,)?)?
        }
    ) => {
        // A struct may have no field at all.
        #[allow(unused_imports, unused_variables, unreachable_code)]
        const _: () = {
            #[doc(hidden)]
            #[allow(non_camel_case_types, missing_docs, unreachable_pub, private_interfaces, clippy::enum_variant_names)]
            #[derive(Clone, Copy)]
            pub enum Key {
                $( $field, )*
                $( $inline(<$inline_type as $crate::wire::Message>::Key), )?
            }

            impl $crate::wire::Message for $name {
                type Key = Key;
                const FIELDS: &'static [(&'static str, u32)] =
                    &[$( ($crate::__json_name!($field $($json)?), $number), )*];

                fn key(name: &str) -> ::core::option::Option<Key> {
                    $(
                        if name == $crate::__json_name!($field $($json)?) {
                            return ::core::option::Option::Some(Key::$field);
                        }
                    )*
                    $(
                        if let ::core::option::Option::Some(__key) =
                            <$inline_type as $crate::wire::Message>::key(name)
                        {
                            return ::core::option::Option::Some(Key::$inline(__key));
                        }
                    )?
                    ::core::option::Option::None
                }

                fn read<'de, A: $crate::__private::serde::de::MapAccess<'de>>(
                    &mut self,
                    __key: Key,
                    map: &mut A,
                ) -> ::core::result::Result<(), A::Error> {
                    match __key {
                        $(
                            Key::$field => match map.next_value::<$crate::wire::Json<$crate::__read!($type $(as $read)?)>>() {
                                ::core::result::Result::Ok(value) => {
                                    self.$field = $crate::__adapt!(value.0, $type $(as $read)?);
                                }
                                ::core::result::Result::Err(problem) => {
                                    let name = $crate::__json_name!($field $($json)?);
                                    return ::core::result::Result::Err($crate::wire::in_field(name, &problem));
                                }
                            },
                        )*
                        $(
                            Key::$inline(__key) => $crate::wire::Message::read(&mut self.$inline, __key, map)?,
                        )?
                    }
                    ::core::result::Result::Ok(())
                }

                fn merge(
                    parts: &$crate::wire::Parts<'_>,
                ) -> ::core::result::Result<Self, $crate::wire::Fault> {
                    use $crate::wire::Wire as __Wire;
                    $( let mut $field = <$crate::__read!($type $(as $read)?) as __Wire>::Building::default(); )*
                    $( let mut $inline = <$inline_type as __Wire>::Building::default(); )?
                    for part in parts.as_slice() {
                        let mut reader = part.reader();
                        while let ::core::option::Option::Some((number, value)) = reader.field()? {
                            match number {
                                $( $number => <$crate::__read!($type $(as $read)?) as __Wire>::take(&mut $field, value)?, )*
                                $( $inline_number => <$inline_type as __Wire>::take(&mut $inline, value)?, )?
                                _ => value.skip()?,
                            }
                        }
                    }
                    ::core::result::Result::Ok(Self {
                        $(
                            $field: $crate::__adapt!(
                                <$crate::__read!($type $(as $read)?) as __Wire>::finish($field)?,
                                $type $(as $read)?
                            ),
                        )*
                        $( $inline: <$inline_type as __Wire>::finish($inline)?, )?
                    })
                }
            }

            impl $crate::wire::Wire for $name {
                const PROTOBUF: bool = true
                    $( && <$crate::__read!($type $(as $read)?) as $crate::wire::Wire>::PROTOBUF )*
                    $( && <$inline_type as $crate::wire::Wire>::PROTOBUF )?;
                type Building<'a> = $crate::wire::Parts<'a>;
                fn read_json<'de, D: $crate::__private::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    $crate::wire::read_message(deserializer)
                }
                fn take<'a>(
                    building: &mut $crate::wire::Parts<'a>,
                    value: $crate::wire::Value<'_, 'a>,
                ) -> ::core::result::Result<(), $crate::wire::Fault> {
                    building.push(value.slice()?);
                    ::core::result::Result::Ok(())
                }
                fn finish(building: $crate::wire::Parts<'_>) -> ::core::result::Result<Self, $crate::wire::Fault> {
                    match building {
                        $crate::wire::Parts::None => ::core::result::Result::Ok(Self::default()),
                        parts => <Self as $crate::wire::Message>::merge(&parts),
                    }
                }
            }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __read {
    ($type:ty) => {
        $type
    };
    ($type:ty as $read:ty) => {
        $read
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __adapt {
    ($value:expr, $type:ty) => {
        $value
    };
    ($value:expr, $type:ty as $read:ty) => {
        $crate::wire::Adapt::<$type>::adapt($value)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __json_name {
    ($field:ident $json:literal) => {
        $json
    };
    ($field:ident) => {{
        const LENGTH: usize = $crate::__private::camel_case_length(stringify!($field));
        const BYTES: [u8; LENGTH] = $crate::__private::camel_case(stringify!($field));
        const NAME: &str = match ::core::str::from_utf8(&BYTES) {
            ::core::result::Result::Ok(name) => name,
            ::core::result::Result::Err(_) => panic!("a field name is ASCII"),
        };
        NAME
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __serialize {
    ($name:ident $(for $scope:ident ($($id:literal),+))? { $($fields:tt)* }) => {};
    (Serialize $name:ident $(for $scope:ident ($($id:literal),+))? { $( $field:ident $($json:literal)? ),* }) => {
        impl $crate::__private::serde::Serialize for $name {
            fn serialize<S: $crate::__private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(::core::option::Option::None)?;
                $( $crate::__private::write_type(&mut map, &$crate::__private::Resource::$scope($($id),+))?; )?
                $( $crate::__private::write_field(&mut map, $crate::__json_name!($field $($json)?), &self.$field)?; )*
                $crate::__private::serde::ser::SerializeMap::end(map)
            }
        }
    };
}

/// Names that the macros need at the place where they are used.
pub mod private {
    pub use serde;
    use serde::ser::{Serialize, SerializeMap};
    pub use steersman_base::{Meta, Resource};

    /// Returns the length of a `snake_case` name in `camelCase`.
    #[must_use]
    pub const fn camel_case_length(name: &str) -> usize {
        let name = name.as_bytes();
        let mut at = 0;
        let mut length = 0;
        while at < name.len() {
            if name[at] != b'_' {
                length += 1;
            }
            at += 1;
        }
        length
    }

    /// A `snake_case` name in `camelCase`.
    #[must_use]
    pub const fn camel_case<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
        let name = name.as_bytes();
        let mut camel = [0; LENGTH];
        let mut at = 0;
        let mut to = 0;
        while at < name.len() {
            if name[at] != b'_' {
                let starts_word = at > 0 && name[at - 1] == b'_';
                camel[to] = if starts_word { name[at].to_ascii_uppercase() } else { name[at] };
                to += 1;
            }
            at += 1;
        }
        camel
    }

    /// Writes a field, unless it is as if absent.
    pub fn write_field<M: SerializeMap, T: Serialize + Default + PartialEq>(
        map: &mut M,
        name: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        if *value == T::default() { Ok(()) } else { map.serialize_entry(name, value) }
    }

    /// Writes which type an object is of.
    pub fn write_type<M: SerializeMap>(map: &mut M, resource: &Resource) -> Result<(), M::Error> {
        map.serialize_entry("apiVersion", &resource.api_version())?;
        map.serialize_entry("kind", &resource.kind)
    }
}
