//! Secrets.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use steersman_base::{Istr, Meta};

use crate::view;
use crate::wire::{Base64, ByName, Fault, Value, Wire};

view! {
    /// The part of a service account's token Secret that controllers read: for watches of those of this type. Of all
    /// others the metadata alone is of interest.
    ///
    /// It is read as JSON only, where values are Base64: the certificate is compared as such.
    pub struct TokenSecretView for namespaced("", "v1", "secrets", "Secret") {
        /// The metadata.
        metadata: Meta = 1,
        /// The data. The token itself is not kept.
        data: TokenData = 2,
        /// Its type, such as `kubernetes.io/service-account-token`.
        type_ "type": Istr = 3,
    }
}

view! {
    /// A bootstrap token, with its data: for watches of secrets of this type. It is read as JSON only.
    pub struct BootstrapTokenView for namespaced("", "v1", "secrets", "Secret") {
        /// The metadata.
        metadata: Meta = 1,
        /// The data.
        data: ByName<Base64> = 2,
        /// Its type, `bootstrap.kubernetes.io/token`.
        type_ "type": Istr = 3,
    }
}

/// The data of a token secret that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenData {
    /// `ca.crt`, in Base64; empty if there is none.
    pub ca_certificate: Istr,
    /// Whether there is a `namespace` that is not empty.
    pub has_namespace: bool,
    /// Whether there is a `token` that is not empty.
    pub has_token: bool,
}

// === impl TokenData ===

impl Wire for TokenData {
    const PROTOBUF: bool = false;
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Data;
        impl<'de> Visitor<'de> for Data {
            type Value = TokenData;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of Base64 texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TokenData, A::Error> {
                let mut data = TokenData::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    match &*name {
                        "ca.crt" => {
                            let text = map.next_value::<Option<Cow<'de, str>>>()?.unwrap_or_default();
                            // One certificate for all secrets of a cluster.
                            data.ca_certificate = Istr::interned(&text);
                        }
                        "namespace" => data.has_namespace = has_text(&mut map)?,
                        "token" => data.has_token = has_text(&mut map)?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(data)
            }
        }
        deserializer.deserialize_map(Data)
    }
    fn take<'a>(_: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        Err(value.slice()?.fault("a field that is read as JSON only"))
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

fn has_text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<bool, A::Error> {
    Ok(map.next_value::<Option<Cow<'de, str>>>()?.is_some_and(|text| !text.is_empty()))
}
