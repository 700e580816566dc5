//! Numbers and strings as Go prints them.

pub(crate) use steersman_base::go::quote;

/// A number as `%g` and `%v` print it: shortest, with an exponent from a million on.
pub(crate) fn float_g(value: f64) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // With the shortest form, Go decides as if six digits had been asked for.
    if (-4..6).contains(&exponent) { float_f(value) } else { format!("{digits}{}", go_exponent(exponent)) }
}

/// A number without an exponent, shortest.
pub(crate) fn float_f(value: f64) -> String {
    not_finite(value).map_or_else(|| format!("{value}"), str::to_owned)
}

/// A number with so many digits after the point.
pub(crate) fn float_fixed(value: f64, precision: usize) -> String {
    not_finite(value).map_or_else(|| format!("{value:.precision$}"), str::to_owned)
}

pub(crate) fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("+Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

fn go_exponent(exponent: i32) -> String {
    format!("e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_go_prints_them() {
        for (value, want) in [
            (1.0, "1"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (12345678.5, "1.23456785e+07"),
            (1e-5, "1e-05"),
        ] {
            assert_eq!(float_g(value), want);
        }
        assert_eq!(float_fixed(1.005, 2), "1.00");
    }
}
