//! Values of types that only functions look into: quantities, addresses, versions, URLs, formats.

pub(crate) mod ip;
pub(crate) mod named_format;
pub(crate) mod semver;
pub(crate) mod url;

use std::sync::Arc;

use steersman_base::Quantity;

use crate::types::Type;
use crate::value::Value;
use ip::{Cidr, Ip};
use named_format::NamedFormat;
use semver::Semver;
use url::Url;

/// A value that only functions look into.
#[derive(Clone, Debug)]
pub(crate) enum Opaque {
    /// A quantity that was read, and the integer that it is written as, if it is.
    Quantity {
        quantity: Quantity,
        integer: Option<i64>,
    },
    /// A quantity that was computed: upstream holds it by reference, and what was read does not equal it.
    ComputedQuantity(Quantity),
    Ip(Ip),
    Cidr(Cidr),
    Url(Url),
    Semver(Semver),
    Format(&'static NamedFormat),
}

// === impl Opaque ===

impl Opaque {
    pub(crate) fn runtime_type(&self) -> Type {
        match self {
            Self::Quantity { .. } | Self::ComputedQuantity(_) => Type::Struct("kubernetes.Quantity".into()),
            Self::Ip(_) => Type::Opaque("net.IP".into(), Arc::new([])),
            Self::Cidr(_) => Type::Opaque("net.CIDR".into(), Arc::new([])),
            Self::Url(_) => Type::Struct("kubernetes.URL".into()),
            Self::Semver(_) => Type::Struct("kubernetes.Semver".into()),
            Self::Format(_) => Type::Struct("kubernetes.NamedFormat".into()),
        }
    }

    pub(crate) fn quantity(&self) -> Option<Quantity> {
        match self {
            Self::Quantity { quantity, .. } | Self::ComputedQuantity(quantity) => Some(*quantity),
            _ => None,
        }
    }

    /// The integer that a quantity is.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Quantity { integer, .. } => *integer,
            Self::ComputedQuantity(quantity) => quantity.to_i64(),
            _ => None,
        }
    }

    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Ip(ip) => Some(if ip.is_v4() { 4 } else { 16 }),
            Self::Cidr(cidr) => Some(u64::from(cidr.bits).div_ceil(8)),
            _ => None,
        }
    }

    /// Compares with a value; another type is an error.
    pub(crate) fn equal<'a>(&self, other: &Value<'a>) -> Value<'a> {
        let Value::Opaque(right) = other else { return other.or_no_such_overload() };
        Value::Bool(match (self, &**right) {
            (
                Self::Quantity { quantity: left, .. } | Self::ComputedQuantity(left),
                Self::Quantity { quantity: right, .. },
            ) => left == right,
            (Self::Ip(left), Self::Ip(right)) => left == right,
            (Self::Cidr(left), Self::Cidr(right)) => left == right,
            (Self::Url(left), Self::Url(right)) => left.text == right.text,
            (Self::Semver(left), Self::Semver(right)) => left.compare(right) == 0,
            (Self::Format(left), Self::Format(right)) => left.name == right.name,
            _ => return Value::no_such_overload(),
        })
    }

    /// The string it converts to.
    pub(crate) fn as_string(&self) -> Option<String> {
        match self {
            Self::Ip(ip) => Some(ip.to_string()),
            Self::Cidr(cidr) => Some(cidr.to_string()),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Quantity { quantity, .. } | Self::ComputedQuantity(quantity) => quantity.to_string(),
            Self::Ip(ip) => ip.to_string(),
            Self::Cidr(cidr) => cidr.to_string(),
            Self::Url(url) => url.text.clone(),
            Self::Semver(version) => version.to_string(),
            Self::Format(format) => format.name.to_owned(),
        }
    }

    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Quantity { .. } => "cel.Quantity",
            Self::ComputedQuantity(_) => "*cel.Quantity",
            Self::Ip(_) => "cel.IP",
            Self::Cidr(_) => "cel.CIDR",
            Self::Url(_) => "cel.URL",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "cel.Format",
        }
    }
}
