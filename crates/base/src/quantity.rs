//! Amounts of a resource: `500m`, `1.5Gi`, `2e3`.
//!
//! A quantity is a whole number of billionths, so sums, differences and comparisons are exact; there is no floating
//! point anywhere. It remembers in which [`Format`] it was written and prints in the canonical form of it: no
//! fraction, the largest suffix that loses nothing.
//!
//! 1. Printing and parsing again gives an equal quantity. Equality and order are by value: `1Ki` equals `1024`.
//! 2. What is finer than a billionth is rounded away from zero: who asks for something gets something.
//! 3. A binary quantity below 1024, beyond 2⁶³ − 1 or with a fraction prints as a decimal one, because its binary form
//!    would mislead or be read as something else.
//! 4. A sum or difference has the format of its left side; of its right side if the left one is zero.
//! 5. Quantities are bounded by ±10²⁹, and parsed binary ones by ±(2⁶³ − 1), as upstream; beyond that they stay there.
//!    Conversions to `i64` are cut to its range.
//!
//! Follows `apimachinery/pkg/api/resource` of Kubernetes 1.37, with these differences: upstream has no bound on decimal
//! quantities, but prints those of a thousand `E` and more without their suffix; it prints some texts as they were
//! read (`1.500`, `+1`), we always print the canonical form; it reads texts without any digit (`Ki`, `-`) as zero, we
//! refuse them.

mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

pub use parse::ParseQuantityError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An exact amount, and how to print it.
///
/// ```
/// use steersman_base::Quantity;
///
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.to_string(), "1536Mi");
/// assert_eq!(memory.value(), 1_610_612_736);
///
/// let cpu: Quantity = "0.1".parse()?;
/// assert_eq!((cpu + "250m".parse()?).to_string(), "350m");
/// assert_eq!(cpu.milli_value(), 100);
/// # Ok::<(), steersman_base::quantity::ParseQuantityError>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Quantity {
    // Billionths as a 128-bit number in two halves, which keeps the alignment, and so the size, at that of an `i64`.
    high: i64,
    low: u64,
    format: Format,
}

/// In which of its three forms a quantity is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Suffixes of a thousand: `12M`.
    #[default]
    DecimalSi,
    /// Suffixes of 1024: `12Mi`.
    BinarySi,
    /// Powers of ten: `12e6`.
    DecimalExponent,
}

/// A power of ten that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Scale {
    Nano = -9,
    Micro = -6,
    Milli = -3,
    One = 0,
    Kilo = 3,
    Mega = 6,
    Giga = 9,
    Tera = 12,
    Peta = 15,
    Exa = 18,
}

/// Billionths in one.
const NANOS: i128 = 1_000_000_000;
/// The bound on every quantity, in billionths: the largest power of ten that an `i128` holds. It is ten thousand
/// million times the largest suffix, and it prints as a round number, so that a cut value shows.
const NANOS_MAX: i128 = 10_i128.pow(38);
/// Below this, binary quantities print as decimal ones.
const BINARY_NANOS_MIN: i128 = 1024 * NANOS;
/// Parsed binary quantities end here, as upstream's do.
const BINARY_NANOS_MAX: i128 = i64::MAX as i128 * NANOS;
/// Suffixes of powers of 1000, from billionths on.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Suffixes of powers of 1024.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// === impl Quantity ===

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { high: 0, low: 0, format: Format::DecimalSi };

    /// This many.
    #[must_use]
    pub fn new(value: i64, format: Format) -> Self {
        Self::from_scaled(value, Scale::One, format)
    }

    /// This many thousandths.
    #[must_use]
    pub fn from_milli(value: i64, format: Format) -> Self {
        Self::from_scaled(value, Scale::Milli, format)
    }

    /// This many times a power of ten.
    #[must_use]
    pub fn from_scaled(value: i64, scale: Scale, format: Format) -> Self {
        // 2⁶³ · 10²⁷ is below 2¹⁵³, above the range: saturate.
        Self::from_nanos(i128::from(value).saturating_mul(scale.nanos()), format)
    }

    fn from_nanos(nanos: i128, format: Format) -> Self {
        let nanos = nanos.clamp(-NANOS_MAX, NANOS_MAX);
        Self { high: (nanos >> 64) as i64, low: nanos as u64, format }
    }

    fn nanos(self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }

    /// In which form it prints.
    #[must_use]
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same amount, printed in this form.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Whether it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// Whether it is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.high < 0
    }

    /// The amount, rounded away from zero to a whole number.
    #[must_use]
    pub fn value(self) -> i64 {
        self.scaled_value(Scale::One)
    }

    /// The amount in thousandths, rounded away from zero to a whole number.
    #[must_use]
    pub fn milli_value(self) -> i64 {
        self.scaled_value(Scale::Milli)
    }

    /// The amount in units of a power of ten, rounded away from zero to a whole number and cut to the range of `i64`.
    #[must_use]
    pub fn scaled_value(self, scale: Scale) -> i64 {
        let units = divide_away_from_zero(self.nanos(), scale.nanos());
        units.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The amount rounded away from zero to a multiple of a power of ten.
    #[must_use]
    pub fn rounded_up(self, scale: Scale) -> Self {
        let units = divide_away_from_zero(self.nanos(), scale.nanos());
        Self::from_nanos(units.saturating_mul(scale.nanos()), self.format)
    }

    /// The amount as a whole number, if it is one that fits.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        let nanos = self.nanos();
        (nanos % NANOS == 0).then(|| i64::try_from(nanos / NANOS).ok()).flatten()
    }

    /// The amount, nearly: for ratios and graphs, never for decisions.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.nanos() as f64 / NANOS as f64
    }

    /// The left side's format, or the right side's if the left one is zero.
    fn joint_format(self, right: Self) -> Format {
        if self.is_zero() { right.format } else { self.format }
    }
}

fn divide_away_from_zero(dividend: i128, divisor: i128) -> i128 {
    dividend / divisor + if dividend % divisor == 0 { 0 } else { dividend.signum() }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos() == other.nanos()
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos().hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos().cmp(&other.nanos())
    }
}

impl Add for Quantity {
    type Output = Self;
    fn add(self, right: Self) -> Self {
        Self::from_nanos(self.nanos().saturating_add(right.nanos()), self.joint_format(right))
    }
}

impl Sub for Quantity {
    type Output = Self;
    fn sub(self, right: Self) -> Self {
        Self::from_nanos(self.nanos().saturating_sub(right.nanos()), self.joint_format(right))
    }
}

impl Mul<i64> for Quantity {
    type Output = Self;
    fn mul(self, times: i64) -> Self {
        Self::from_nanos(self.nanos().saturating_mul(times.into()), self.format)
    }
}

impl Neg for Quantity {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from_nanos(-self.nanos(), self.format)
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, right: Self) {
        *self = *self + right;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, right: Self) {
        *self = *self - right;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos();
        if nanos == 0 {
            return f.write_str("0");
        }
        match self.format {
            Format::BinarySi if (BINARY_NANOS_MIN..=BINARY_NANOS_MAX).contains(&nanos.abs()) && nanos % NANOS == 0 => {
                let (number, steps) = factor(nanos / NANOS, 1024, BINARY_SUFFIXES.len() - 1);
                write!(f, "{number}{}", BINARY_SUFFIXES[steps])
            }
            Format::DecimalSi | Format::BinarySi => {
                let (number, steps) = factor(nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
                write!(f, "{number}{}", DECIMAL_SUFFIXES[steps])
            }
            Format::DecimalExponent => match factor(nanos, 1000, usize::MAX) {
                (number, 3) => write!(f, "{number}"),
                (number, steps) => write!(f, "{number}e{}", steps as i64 * 3 - 9),
            },
        }
    }
}

/// Returns how often `number` can be divided by `base`, at most `steps_max` times, and what is left then.
fn factor(mut number: i128, base: i128, steps_max: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < steps_max && number % base == 0 {
        number /= base;
        steps += 1;
    }
    (number, steps)
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a string, or a number as people write it in YAML; `null` is zero.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;
        impl de::Visitor<'_> for Amount {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.trim().parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::new(number, Format::DecimalSi))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity::from_nanos(i128::from(number) * NANOS, Format::DecimalSi))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                // The shortest text that means this number is the one that was read, but for its exponent.
                self.visit_str(&number.to_string())
            }
            fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }
        }
        deserializer.deserialize_any(Amount)
    }
}

// === impl Scale ===

impl Scale {
    /// Returns the number of billionths in one unit of this scale.
    const fn nanos(self) -> i128 {
        10_i128.pow((self as i32 - Self::Nano as i32) as u32)
    }
}
