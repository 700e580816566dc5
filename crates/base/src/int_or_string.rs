//! Fields that hold a number or a percentage.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Istr;

/// A number, or a text: a percentage of something, or the name of a port.
///
/// ```
/// use steersman_base::IntOrString;
/// use steersman_base::int_or_string::Rounding;
///
/// let max_surge = IntOrString::from("25%");
/// assert_eq!(max_surge.scaled(10, Rounding::Up), Ok(3));
/// assert_eq!(max_surge.scaled(10, Rounding::Down), Ok(2));
/// assert_eq!(IntOrString::from(4).scaled(10, Rounding::Up), Ok(4));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text.
    String(Istr),
}

/// The direction in which a fractional result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next larger number, as for `maxSurge`.
    Up,
    /// To the next smaller number, as for `maxUnavailable`.
    Down,
}

/// Why a text is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// Text without `%`, even if it is a number: `"5"` is neither five nor five percent.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage: {0:?}")]
    NotAPercentage(Istr),
    /// No whole number before the `%`.
    #[error("invalid value for IntOrString: invalid value {0:?}: not a whole number before '%'")]
    NotANumber(Istr),
}

// === impl IntOrString ===

impl IntOrString {
    /// A number if the text is one that fits, else the text: how flags and default values are read.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::from(text), Self::Int)
    }

    /// The number, or the share of `total` that the percentage stands for.
    ///
    /// Follows `intstr.GetScaledValueFromIntOrPercent` of Kubernetes 1.37. A share beyond `i32` is cut to it.
    ///
    /// # Errors
    /// If the text is not a percentage.
    pub fn scaled(&self, total: i32, rounding: Rounding) -> Result<i32, ScaleError> {
        let text = match self {
            Self::Int(number) => return Ok(*number),
            Self::String(text) => text,
        };
        let digits = text.strip_suffix('%').ok_or_else(|| ScaleError::NotAPercentage(text.clone()))?;
        let percent: i64 = digits.parse().map_err(|_| ScaleError::NotANumber(text.clone()))?;
        let hundredfold = i128::from(percent) * i128::from(total);
        let share = match rounding {
            Rounding::Down => hundredfold.div_euclid(100),
            Rounding::Up => -(-hundredfold).div_euclid(100),
        };
        Ok(share.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
    }

    /// The number, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i32> {
        match self {
            Self::Int(number) => Some(*number),
            Self::String(_) => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Int(_) => None,
            Self::String(text) => Some(text),
        }
    }
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(Istr::interned(text))
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => fmt::Display::fmt(number, f),
            Self::String(text) => fmt::Display::fmt(text, f),
        }
    }
}

impl fmt::Debug for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => fmt::Debug::fmt(number, f),
            Self::String(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl de::Visitor<'_> for Either {
            type Value = IntOrString;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit number or a string")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
                let fitting =
                    i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
                Ok(IntOrString::Int(fitting))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
                let fitting =
                    i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
                Ok(IntOrString::Int(fitting))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::from(text))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_as_asked() {
        let check = |value: IntOrString, total: i32, up: i32, down: i32| {
            assert_eq!(value.scaled(total, Rounding::Up), Ok(up), "{value} of {total}, up");
            assert_eq!(value.scaled(total, Rounding::Down), Ok(down), "{value} of {total}, down");
        };
        check(123.into(), 0, 123, 123);
        check((-1).into(), 10, -1, -1);
        check("90%".into(), 100, 90, 90);
        check("90%".into(), 95, 86, 85);
        check("25%".into(), 3, 1, 0);
        check("0%".into(), 7, 0, 0);
        check("150%".into(), 3, 5, 4);
        check("-50%".into(), 3, -1, -2);
        check("+50%".into(), 3, 2, 1);
        check("9223372036854775807%".into(), i32::MAX, i32::MAX, i32::MAX);
    }

    #[test]
    fn what_is_no_percentage_is_named_in_the_error() {
        for text in ["5", "%", "x%", "30%0", "40%%", "40#", "a", "", "1.5%", " 5%", "9223372036854775808%"] {
            let error = IntOrString::from(text).scaled(10, Rounding::Up).unwrap_err().to_string();
            assert!(error.starts_with("invalid value for IntOrString: invalid "), "{error}");
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn json_keeps_numbers_and_strings_apart() {
        for (json, want) in
            [("5", IntOrString::Int(5)), ("-5", (-5).into()), (r#""5""#, "5".into()), (r#""25%""#, "25%".into())]
        {
            let value: IntOrString = serde_json::from_str(json).unwrap();
            assert_eq!(value, want);
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
        for json in ["2147483648", "-2147483649", "1.5", "true", "[]", "18446744073709551615"] {
            assert!(serde_json::from_str::<IntOrString>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_text_that_is_a_number_that_fits_is_parsed_as_one() {
        let check = |text: &str, want: IntOrString| assert_eq!(IntOrString::parse(text), want, "{text}");
        check("2147483647", i32::MAX.into());
        check("-2147483648", i32::MIN.into());
        check("2147483648", "2147483648".into());
        check("http", "http".into());
        check("10%", "10%".into());
    }
}
