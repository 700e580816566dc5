//! Quantities, addresses, networks, versions, URLs and formats.

use std::sync::Arc;

use steersman_base::Quantity;
use steersman_base::quantity::{Format, ParseQuantityError};

use super::{Op, value_or};
use crate::opaque::Opaque;
use crate::opaque::ip::{Cidr, Ip};
use crate::opaque::named_format::{self, NamedFormat};
use crate::opaque::semver::Semver;
use crate::opaque::url::Url;
use crate::value::{Key, Map, Value};

pub(super) fn overload(id: &str) -> Option<Op> {
    quantities(id).or_else(|| networks(id)).or_else(|| versions(id)).or_else(|| urls(id)).or_else(|| formats(id))
}

fn str<'v>(args: &'v [Value<'_>], at: usize) -> &'v str {
    args.get(at).and_then(Value::as_str).unwrap_or_default()
}

fn opaque<'v>(args: &'v [Value<'_>], at: usize) -> Option<&'v Opaque> {
    match args.get(at) {
        Some(Value::Opaque(opaque)) => Some(opaque),
        _ => None,
    }
}

fn quantity(args: &[Value<'_>], at: usize) -> Quantity {
    opaque(args, at).and_then(Opaque::quantity).unwrap_or_default()
}

fn parse_quantity(text: &str) -> Result<Quantity, String> {
    let sign = text.len() - text.trim_start_matches(['+', '-']).len();
    // Upstream reads a suffix without digits as zero.
    let bare = !text.is_empty() && sign <= 1 && !text.contains(|char: char| char.is_ascii_digit() || char == '.');
    let zero = if bare { format!("{}0{}", &text[..sign], &text[sign..]).parse().ok() } else { None };
    zero.map_or_else(|| text.parse(), Ok).map_err(|error| match error {
        ParseQuantityError::Format(_) => {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
        }
        ParseQuantityError::Suffix(_) => "unable to parse quantity's suffix".to_owned(),
    })
}

/// A quantity that was read. Upstream calls it an integer only if it is written as one, in 18 digits at most.
fn read_quantity(text: &str) -> Result<Opaque, String> {
    let quantity = parse_quantity(text)?;
    let number = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let end = number.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(number.len());
    let digits = number[..end].bytes().filter(u8::is_ascii_digit).count();
    let fraction = number[..end].split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let decimals = match &number[end..] {
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        suffix => suffix[suffix.len().min(1)..].parse().unwrap_or(0),
    };
    let written = digits <= 18 && fraction <= decimals;
    Ok(Opaque::Quantity { quantity, integer: quantity.to_i64().filter(|_| written) })
}

fn computed<'a>(quantity: Quantity) -> Value<'a> {
    Value::opaque(Opaque::ComputedQuantity(quantity))
}

fn whole(args: &[Value<'_>], at: usize) -> Quantity {
    Quantity::new(args[at].as_int().unwrap_or_default(), Format::DecimalExponent)
}

fn quantities(id: &str) -> Option<Op> {
    Some(match id {
        "string_to_quantity" => |args| value_or(read_quantity(str(args, 0)), Value::opaque),
        "is_quantity_string" => |args| Value::Bool(parse_quantity(str(args, 0)).is_ok()),
        "quantity_sign" => |args| Value::Int(quantity(args, 0).cmp(&Quantity::ZERO) as i64),
        "quantity_is_greater_than" => |args| Value::Bool(quantity(args, 0) > quantity(args, 1)),
        "quantity_is_less_than" => |args| Value::Bool(quantity(args, 0) < quantity(args, 1)),
        "quantity_compare_to" => |args| Value::Int(quantity(args, 0).cmp(&quantity(args, 1)) as i64),
        "quantity_get_float" => |args| Value::Double(quantity(args, 0).to_f64()),
        "quantity_get_int" => |args| {
            opaque(args, 0)
                .and_then(Opaque::integer)
                .map_or_else(|| Value::error("cannot convert value to integer"), Value::Int)
        },
        "quantity_is_integer" => |args| Value::Bool(opaque(args, 0).and_then(Opaque::integer).is_some()),
        "quantity_add" => |args| computed(quantity(args, 0) + quantity(args, 1)),
        "quantity_add_int" => |args| computed(quantity(args, 0) + whole(args, 1)),
        "quantity_sub" => |args| computed(quantity(args, 0) - quantity(args, 1)),
        "quantity_sub_int" => |args| computed(quantity(args, 0) - whole(args, 1)),
        _ => return None,
    })
}

fn ip<'a>(args: &[Value<'a>], with: impl FnOnce(Ip) -> Value<'a>) -> Value<'a> {
    match opaque(args, 0) {
        Some(Opaque::Ip(ip)) => with(*ip),
        _ => args[0].or_no_such_overload(),
    }
}

fn cidr<'a>(args: &[Value<'a>], with: impl FnOnce(Cidr) -> Value<'a>) -> Value<'a> {
    match opaque(args, 0) {
        Some(Opaque::Cidr(cidr)) => with(*cidr),
        _ => args[0].or_no_such_overload(),
    }
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    Cidr::parse(text).map_err(|error| format!("network address parse error during conversion from string: {error}"))
}

fn networks(id: &str) -> Option<Op> {
    Some(match id {
        "string_to_ip" => |args| value_or(Ip::parse(str(args, 0)), |ip| Value::opaque(Opaque::Ip(ip))),
        "is_ip" => |args| Value::Bool(Ip::parse(str(args, 0)).is_ok()),
        "ip_is_canonical" => |args| value_or(Ip::parse(str(args, 0)), |ip| Value::Bool(ip.to_string() == str(args, 0))),
        "ip_family" => |args| ip(args, |ip| Value::Int(if ip.is_v4() { 4 } else { 6 })),
        "ip_is_unspecified" => |args| ip(args, |ip| Value::Bool(ip.0.is_unspecified())),
        "ip_is_loopback" => |args| ip(args, |ip| Value::Bool(ip.is_loopback())),
        "ip_is_link_local_multicast" => |args| ip(args, |ip| Value::Bool(ip.is_link_local_multicast())),
        "ip_is_link_local_unicast" => |args| ip(args, |ip| Value::Bool(ip.is_link_local_unicast())),
        "ip_is_global_unicast" => |args| ip(args, |ip| Value::Bool(ip.is_global_unicast())),
        "string_to_cidr" => |args| value_or(parse_cidr(str(args, 0)), |cidr| Value::opaque(Opaque::Cidr(cidr))),
        "is_cidr" => |args| Value::Bool(Cidr::parse(str(args, 0)).is_ok()),
        "cidr_contains_ip_string" => |args| {
            // Upstream reports the network, which is right, instead of the address.
            cidr(args, |cidr| {
                Ip::parse(str(args, 1)).map_or_else(|_| Value::no_such_overload(), |ip| Value::Bool(cidr.contains(ip)))
            })
        },
        "cidr_contains_ip_ip" => |args| {
            cidr(args, |cidr| match opaque(args, 1) {
                Some(Opaque::Ip(ip)) => Value::Bool(cidr.contains(*ip)),
                _ => args[0].or_no_such_overload(),
            })
        },
        "cidr_contains_cidr_string" => {
            |args| cidr(args, |cidr| value_or(parse_cidr(str(args, 1)), |other| Value::Bool(cidr.contains_cidr(other))))
        }
        "cidr_contains_cidr" => |args| {
            cidr(args, |cidr| match opaque(args, 1) {
                Some(Opaque::Cidr(other)) => Value::Bool(cidr.contains_cidr(*other)),
                _ => args[1].or_no_such_overload(),
            })
        },
        "cidr_ip" => |args| cidr(args, |cidr| Value::opaque(Opaque::Ip(Ip(cidr.ip)))),
        "cidr_prefix_length" => |args| cidr(args, |cidr| Value::Int(cidr.bits.into())),
        "cidr_masked" => |args| cidr(args, |cidr| Value::opaque(Opaque::Cidr(cidr.masked()))),
        _ => return None,
    })
}

fn parse_version(args: &[Value<'_>]) -> Result<Semver, String> {
    match args.get(1) {
        Some(Value::Bool(true)) => Semver::parse_normalized(str(args, 0)),
        _ => Semver::parse(str(args, 0)),
    }
}

fn version<'a>(args: &[Value<'a>], with: impl FnOnce(&Semver) -> Value<'a>) -> Value<'a> {
    match opaque(args, 0) {
        Some(Opaque::Semver(version)) => with(version),
        _ => args[0].or_no_such_overload(),
    }
}

fn order<'a>(args: &[Value<'a>], with: fn(i64) -> Value<'a>) -> Value<'a> {
    match (opaque(args, 0), opaque(args, 1)) {
        (Some(Opaque::Semver(left)), Some(Opaque::Semver(right))) => with(left.compare(right)),
        _ => args[0].or_no_such_overload(),
    }
}

fn versions(id: &str) -> Option<Op> {
    Some(match id {
        "string_to_semver" | "string_bool_to_semver" => {
            |args| value_or(parse_version(args), |version| Value::opaque(Opaque::Semver(version)))
        }
        "is_semver_string" | "is_semver_string_bool" => |args| Value::Bool(parse_version(args).is_ok()),
        "semver_is_greater_than" => |args| order(args, |order| Value::Bool(order > 0)),
        "semver_is_less_than" => |args| order(args, |order| Value::Bool(order < 0)),
        "semver_compare_to" => |args| order(args, Value::Int),
        "semver_major" => |args| version(args, |version| Value::Int(version.numbers[0] as i64)),
        "semver_minor" => |args| version(args, |version| Value::Int(version.numbers[1] as i64)),
        "semver_patch" => |args| version(args, |version| Value::Int(version.numbers[2] as i64)),
        _ => return None,
    })
}

fn url<'a>(args: &[Value<'a>], with: impl FnOnce(&Url) -> Value<'a>) -> Value<'a> {
    match opaque(args, 0) {
        Some(Opaque::Url(url)) => with(url),
        _ => args[0].or_no_such_overload(),
    }
}

fn urls(id: &str) -> Option<Op> {
    Some(match id {
        "string_to_url" => |args| {
            let parsed = Url::parse_request(str(args, 0))
                .and_then(|_| Url::parse_any(str(args, 0)))
                .map_err(|error| format!("URL parse error during conversion from string: {error}"));
            value_or(parsed, |url| Value::opaque(Opaque::Url(url)))
        },
        "is_url_string" => |args| Value::Bool(Url::parse_request(str(args, 0)).is_ok()),
        "url_get_scheme" => |args| url(args, |url| Value::string(url.scheme.as_str())),
        "url_get_host" => |args| url(args, |url| Value::string(url.host.as_str())),
        "url_get_hostname" => |args| url(args, |url| Value::string(url.hostname())),
        "url_get_port" => |args| url(args, |url| Value::string(url.port())),
        "url_get_escaped_path" => |args| url(args, |url| Value::string(url.escaped_path())),
        "url_get_query" => |args| {
            url(args, |url| {
                let entry = |(name, values): (String, Vec<String>)| (Key::String(name.into()), Value::strings(values));
                Value::Map(Map::Values(Arc::new(url.query().into_iter().map(entry).collect())))
            })
        },
        _ => return None,
    })
}

fn some_format<'a>(format: Option<&'static NamedFormat>) -> Option<Value<'a>> {
    format.map(|format| Value::opaque(Opaque::Format(format)))
}

fn formats(id: &str) -> Option<Op> {
    macro_rules! constant {
        ($($name:literal),*) => {
            match id {
                $(concat!("format.", $name) => Some(|_| {
                    some_format(named_format::named($name)).unwrap_or(Value::Null)
                }),)*
                _ => None,
            }
        };
    }
    Some(match id {
        "format-named" => {
            |args| some_format(named_format::named(str(args, 0))).map_or(Value::Optional(None), Value::some)
        }
        "format-validate" => |args| match opaque(args, 0) {
            Some(Opaque::Format(format)) => {
                let problems = (format.check)(str(args, 1));
                if problems.is_empty() { Value::Optional(None) } else { Value::some(Value::strings(problems)) }
            }
            _ => args[0].or_no_such_overload(),
        },
        _ => {
            return constant!(
                "dns1123Label",
                "dns1123Subdomain",
                "dns1035Label",
                "qualifiedName",
                "dns1123LabelPrefix",
                "dns1123SubdomainPrefix",
                "dns1035LabelPrefix",
                "labelValue",
                "uri",
                "uuid",
                "byte",
                "date",
                "datetime"
            );
        }
    })
}
