use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// `mantissa` · 10^`exponent`, without the parser.
fn exactly(mantissa: i128, exponent: i32) -> Quantity {
    let nanos =
        if exponent >= -9 { mantissa * 10_i128.pow((exponent + 9) as u32) } else { panic!("finer than a billionth") };
    Quantity::from_nanos(nanos, Format::DecimalSi)
}

#[test]
fn every_suffix_means_its_power() {
    use Format::{BinarySi, DecimalExponent, DecimalSi};
    let check = |text: &str, mantissa: i128, exponent: i32, format: Format| {
        for (text, want) in [
            (text.to_owned(), exactly(mantissa, exponent)),
            (format!("+{text}"), exactly(mantissa, exponent)),
            (format!("00{text}"), exactly(mantissa, exponent)),
            (format!("-{text}"), exactly(-mantissa, exponent)),
        ] {
            let got = quantity(&text);
            assert_eq!((got, got.format()), (want, format), "{text}");
        }
    };
    for zero in ["0", "0n", "0u", "0m", "0k", "0M", "0G", "0T", "0P", "0E", "0.", ".0", "0.000"] {
        check(zero, 0, 0, DecimalSi);
    }
    for zero in ["0Ki", "0Mi", "0Gi", "0Ti", "0Pi", "0Ei", "0.0Ki"] {
        check(zero, 0, 0, BinarySi);
    }
    check("0e3", 0, 0, DecimalExponent);
    check("0e999999999", 0, 0, DecimalExponent);
    check("0e-999999999", 0, 0, DecimalExponent);

    check("1Ki", 1 << 10, 0, BinarySi);
    check("7Mi", 7 << 20, 0, BinarySi);
    check("6Gi", 6 << 30, 0, BinarySi);
    check("5Ti", 5 << 40, 0, BinarySi);
    check("4Pi", 4 << 50, 0, BinarySi);
    check("3Ei", 3 << 60, 0, BinarySi);

    check("5n", 5, -9, DecimalSi);
    check("4u", 4, -6, DecimalSi);
    check("3m", 3, -3, DecimalSi);
    check("9", 9, 0, DecimalSi);
    check("50k", 5, 4, DecimalSi);
    check("7M", 7, 6, DecimalSi);
    check("6G", 6, 9, DecimalSi);
    check("300T", 3, 14, DecimalSi);
    check("2P", 2, 15, DecimalSi);
    check("1E", 1, 18, DecimalSi);
    check("12E", 12, 18, DecimalSi);

    check("1E-3", 1, -3, DecimalExponent);
    check("1e3", 1, 3, DecimalExponent);
    check("1E6", 1, 6, DecimalExponent);
    check("1e14", 1, 14, DecimalExponent);
    check("1.3E+6", 13, 5, DecimalExponent);
    check("1.40e9", 14, 8, DecimalExponent);
    check("0.5e-2", 5, -3, DecimalExponent);
    check("0.5e0", 5, -1, DecimalExponent);
    check("1e-9", 1, -9, DecimalExponent);
    check("123e6", 123, 6, DecimalExponent);

    check("100.035k", 100_035, 0, DecimalSi);
    check("0.0005k", 5, -1, DecimalSi);
    check("0.05000", 5, -2, DecimalSi);
    check("6.987654321G", 6_987_654_321, 0, DecimalSi);
    check("1.01E", 101, 16, DecimalSi);
    check(".001", 1, -3, DecimalSi);
    check("1.", 1, 0, DecimalSi);
    check("1.G", 1, 9, DecimalSi);

    check("100.035Ki", 10_243_584, -2, BinarySi);
    check("0.5Mi", 1 << 19, 0, BinarySi);
    check("0.05Gi", 536_870_912, -1, BinarySi);
    check("0.025Ti", 274_877_906_944, -1, BinarySi);
}

#[test]
fn what_is_finer_than_a_billionth_is_rounded_away_from_zero() {
    let check = |text: &str, nanos: i128| {
        assert_eq!(quantity(text), exactly(nanos, -9), "{text}");
        assert_eq!(quantity(&format!("-{text}")), exactly(-nanos, -9), "-{text}");
    };
    check("3.001n", 4);
    check("1.1E-9", 2);
    check("0.0000000001", 1);
    check("0.00000000050", 1);
    check("0.5e-9", 1);
    check("0.9n", 1);
    check("0.00000012345", 124);
    check("1e-30", 1);
    check("1e-9223372036854775808", 1);
    check("0.000000000001Ki", 2);
    check(".000000001Ki", 1024);
    check("1.0000000000000000000000000000000000000000000001n", 2);
    check("1.0000000000000000000000000000000000000000000001Ki", 1_024_000_000_001);
    assert_eq!(quantity("0.000000000001Ki").format(), Format::DecimalSi, "below one, a binary quantity is decimal");
}

#[test]
fn what_is_too_large_stays_at_the_bound() {
    let check = |text: &str, want: &str| {
        assert_eq!(quantity(text).to_string(), want, "{text}");
        assert_eq!(quantity(&format!("-{text}")).to_string(), format!("-{want}"), "-{text}");
    };
    check("9Ei", "9223372036854775807");
    check("9223372036854775807Ki", "9223372036854775807");
    check("99999999999999999999999999999999999999999999Ei", "9223372036854775807");
    check("1000E", "1000E");
    check("1e29", "100e27");
    check("1e30", "100e27");
    check("1e9223372036854775807", "100e27");
    check("99999999999999999999999999999999999999999999", "100000000000E");
    assert_eq!((quantity("1e29") + quantity("1e29")).to_string(), "100e27");
    assert_eq!((quantity("1e29") - quantity("-1e29")).to_string(), "100e27");
    assert_eq!((quantity("4Ei") * 4).to_string(), "18446744073709551616", "16Ei would be read as less");
    assert_eq!((quantity("1e29") * i64::MIN).to_string(), "-100e27");
    assert_eq!(Quantity::from_scaled(i64::MAX, Scale::Exa, Format::DecimalSi).to_string(), "100000000000E");
}

#[test]
fn a_quantity_prints_in_canonical_form() {
    let check = |text: &str, want: &str| {
        assert_eq!(quantity(text).to_string(), want, "{text}");
        assert_eq!(quantity(want).to_string(), want, "{want} is canonical");
        if want != "0" {
            assert_eq!(quantity(&format!("-{text}")).to_string(), format!("-{want}"), "-{text}");
        }
    };
    check("0", "0");
    check("0Ki", "0");
    check("00", "0");
    check("1.5", "1500m");
    check("1.500", "1500m");
    check("1000m", "1");
    check("0.5", "500m");
    check("1000M", "1G");
    check("0.001T", "1G");
    check("1.08", "1080m");
    check("1080000000n", "1080m");
    check("1000u", "1m");
    check("1234567M", "1234567M");
    check("123456789012345678", "123456789012345678");
    check("1500", "1500");
    check("5000", "5k");

    check("1024Mi", "1Gi");
    check("1024Ki", "1Mi");
    check("0.5Gi", "512Mi");
    check("1.5Gi", "1536Mi");
    check("307200Ki", "300Mi");
    check("1025024Mi", "1001Gi");
    check("1024Gi", "1Ti");
    check("1025Ki", "1025Ki");
    check("1000Ki", "1000Ki");
    check("0.5Ki", "512");
    check(".001Ki", "1024m");
    check(".000001Ki", "1024u");
    check("100.035Ki", "102435840m");
    check("1.0000001Mi", "1048576104857600n");

    check("1000e-12", "1e-9");
    check("0.001e0", "1e-3");
    check(".001e12", "1e9");
    check("1E3", "1e3");
    check("10e0", "10");
    check("123e6", "123e6");
    check("1230e6", "1230e6");
    check("1e4", "10e3");
    check("12345e5", "1234500e3");
    check("1e21", "1e21");
}

#[test]
fn what_is_no_quantity_is_named_in_the_error() {
    let format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let suffix = "unable to parse quantity's suffix";
    let check = |text: &str, want: &str| {
        assert_eq!(text.parse::<Quantity>().unwrap_err().to_string(), format!("{want}: {text:?}"));
    };
    for text in [
        "", "+", "-", ".", "-.", "Ki", "m", "e3", "1.1.M", "1+1.0M", "0.1am", "aoeu", " 1", "1 ", "--1", "1e3Ki", "é",
        "1é",
    ] {
        check(text, format);
    }
    for text in [
        "0.1mi",
        ".5i",
        "1i",
        "-3.01i",
        "-3.01e-",
        "1e",
        "1e+",
        "1ee3",
        "1Ki5",
        "1+1",
        "1ki",
        "1K",
        "1mm",
        "1e9223372036854775808",
    ] {
        check(text, suffix);
    }
}

#[test]
fn whole_numbers_are_rounded_away_from_zero() {
    let check = |text: &str, value: i64, milli: i64| {
        let given = quantity(text);
        assert_eq!((given.value(), given.milli_value()), (value, milli), "{text}");
        assert_eq!(((-given).value(), (-given).milli_value()), (-value, -milli), "-{text}");
    };
    check("0", 0, 0);
    check("1", 1, 1000);
    check("1n", 1, 1);
    check("1001u", 1, 2);
    check("1.1", 2, 1100);
    check("100m", 1, 100);
    check("1Ki", 1024, 1_024_000);
    check("9P", 9_000_000_000_000_000, 9_000_000_000_000_000_000);
    assert_eq!((quantity("9E").milli_value(), quantity("-9E").milli_value()), (i64::MAX, i64::MIN), "cut to the range");
    assert_eq!((quantity("100E").value(), quantity("-100E").value()), (i64::MAX, i64::MIN));
}

#[test]
fn scales_convert() {
    let given = quantity("1234567890.123456789");
    let check = |scale: Scale, value: i64, rounded: &str| {
        assert_eq!(given.scaled_value(scale), value, "{scale:?}");
        assert_eq!(given.rounded_up(scale).to_string(), rounded, "{scale:?}");
    };
    check(Scale::Nano, 1_234_567_890_123_456_789, "1234567890123456789n");
    check(Scale::Micro, 1_234_567_890_123_457, "1234567890123457u");
    check(Scale::Milli, 1_234_567_890_124, "1234567890124m");
    check(Scale::One, 1_234_567_891, "1234567891");
    check(Scale::Kilo, 1_234_568, "1234568k");
    check(Scale::Mega, 1_235, "1235M");
    check(Scale::Giga, 2, "2G");
    check(Scale::Exa, 1, "1E");
    assert_eq!(Quantity::from_scaled(5, Scale::Mega, Format::BinarySi).to_string(), "5000000");
    assert_eq!(Quantity::from_milli(1500, Format::DecimalSi), quantity("1.5"));
    assert_eq!(Quantity::new(2048, Format::BinarySi).to_string(), "2Ki");
    assert_eq!(quantity("1500m").to_i64(), None);
    assert_eq!(quantity("2000m").to_i64(), Some(2));
    assert_eq!(quantity("100E").to_i64(), None);
    assert_eq!(quantity("-1500m").to_f64(), -1.5);
}

#[test]
fn the_left_side_gives_the_format_unless_it_is_zero() {
    let check = |left: &str, right: &str, sum: &str, difference: &str| {
        let left = quantity(left);
        let right = quantity(right);
        assert_eq!((left + right).to_string(), sum, "{left} + {right}");
        assert_eq!((left - right).to_string(), difference, "{left} - {right}");
        let mut added = left;
        let mut subtracted = left;
        added += right;
        subtracted -= right;
        assert_eq!((added, subtracted), (left + right, left - right));
    };
    check("1Ki", "1024", "2Ki", "0");
    check("2048", "1Ki", "3072", "1024");
    check("1e3", "1k", "2e3", "0");
    check("0", "1Gi", "1Gi", "-1Gi");
    check("0Gi", "100m", "100m", "-100m");
    check("100m", "0Ki", "100m", "100m");
    check("1Gi", "0", "1Gi", "1Gi");
    check("1Gi", "1m", "1073741824001m", "1073741823999m");
    check("100m", "1", "1100m", "-900m");
    assert_eq!(["100m", "200m", "1"].map(quantity).into_iter().sum::<Quantity>().to_string(), "1300m");
    assert_eq!((quantity("1.5Gi") * 2).to_string(), "3Gi");
}

#[test]
fn quantities_compare_by_value() {
    let check = |left: &str, right: &str, want: Ordering| {
        let left = quantity(left);
        let right = quantity(right);
        assert_eq!(left.cmp(&right), want, "{left} against {right}");
        assert_eq!(right.cmp(&left), want.reverse(), "{right} against {left}");
        assert_eq!((-left).cmp(&-right), want.reverse(), "-{left} against -{right}");
    };
    check("1Ki", "1024", Ordering::Equal);
    check("0", "0Ki", Ordering::Equal);
    check("1", "1000m", Ordering::Equal);
    check("100m", "50m", Ordering::Greater);
    check("10000T", "100Gi", Ordering::Greater);
    check("9223372036854775807", "0.1", Ordering::Greater);
    check("9223372036854775807", "9223372036854775807.000000001", Ordering::Less);
    check("-1n", "0", Ordering::Less);
}

#[test]
fn json_is_a_string_or_a_number() {
    let check = |json: &str, want: &str| {
        let given: Quantity = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(serde_json::to_string(&given).unwrap(), format!("{want:?}"), "{json}");
    };
    check(r#""0.5Gi""#, "512Mi");
    check(r#"" 1 ""#, "1");
    check("2", "2");
    check("-2000", "-2k");
    check("0.1", "100m");
    check("1.5e3", "1500");
    check("1e-12", "1n");
    check("18446744073709551615", "18446744073709551615");
    check("null", "0");
    for json in [r#""""#, r#""x""#, "true", "[]", "{}"] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
}

#[test]
fn a_quantity_is_small() {
    assert_eq!(size_of::<Quantity>(), 24);
    assert_eq!(size_of::<Option<Quantity>>(), 24);
}

/// A text, and numerator and denominator of what it means in billionths.
fn any_text() -> impl Strategy<Value = (String, i128, i128)> {
    let suffixes: Vec<(String, i128, i128)> = DECIMAL_SUFFIXES
        .iter()
        .enumerate()
        .map(|(at, suffix)| ((*suffix).to_owned(), 1000_i128.pow(at as u32), 1))
        .chain(BINARY_SUFFIXES[1..5].iter().zip(1..).map(|(suffix, at)| ((*suffix).to_owned(), NANOS << (10 * at), 1)))
        .chain((-12..=18).map(|at: i32| {
            let (up, down) =
                if at >= -9 { (10_i128.pow((at + 9) as u32), 1) } else { (1, 10_i128.pow((-at - 9) as u32)) };
            (format!("e{at}"), up, down)
        }))
        .collect();
    let number = (any::<bool>(), 0_u32..2_000_000, 0_usize..5, 0_u32..100_000);
    (number, proptest::sample::select(suffixes)).prop_map(
        |((negative, whole, places, fraction), (suffix, up, down))| {
            let power = 10_u32.pow(places as u32);
            let fraction = fraction % power;
            let mut text = format!("{}{whole}", if negative { "-" } else { "" });
            if places > 0 {
                text.push_str(&format!(".{fraction:0places$}"));
            }
            let mantissa = i128::from(whole) * i128::from(power) + i128::from(fraction);
            let numerator = if negative { -mantissa } else { mantissa } * up;
            (text + &suffix, numerator, down * i128::from(power))
        },
    )
}

proptest! {
    #[test]
    fn parsing_is_exact_up_to_a_billionth((text, numerator, denominator) in any_text()) {
        let want = numerator / denominator + if numerator % denominator == 0 { 0 } else { numerator.signum() };
        prop_assert_eq!(quantity(&text).nanos(), want, "{}", text);
    }

    #[test]
    fn order_agrees_with_exact_rationals(left in any_text(), right in any_text()) {
        let parts = |(_, up, down): &(String, i128, i128)| (up.div_euclid(*down), up.rem_euclid(*down));
        let (left_whole, left_rest) = parts(&left);
        let (right_whole, right_rest) = parts(&right);
        let exact = left_whole.cmp(&right_whole).then_with(|| (left_rest * right.2).cmp(&(right_rest * left.2)));
        let got = quantity(&left.0).cmp(&quantity(&right.0));
        // Rounding can make two finer amounts equal, and never turns them round.
        let rounded = left_rest != 0 || right_rest != 0;
        prop_assert!(got == exact || rounded && got.is_eq(), "{} against {}: {got:?}, not {exact:?}", left.0, right.0);
    }

    #[test]
    fn printing_and_parsing_gives_the_quantity_back(
        nanos in prop_oneof![any::<i128>(), any::<i64>().prop_map(i128::from), any::<i64>().prop_map(|n| i128::from(n) * NANOS)],
        format in proptest::sample::select(vec![Format::DecimalSi, Format::BinarySi, Format::DecimalExponent]),
    ) {
        let given = Quantity::from_nanos(nanos, format);
        let text = given.to_string();
        let again = quantity(&text);
        prop_assert_eq!(again, given, "{}", text);
    }

    #[test]
    fn sums_and_differences_undo_each_other(left in any::<i64>(), right in any::<i64>()) {
        let left = Quantity::from_milli(left, Format::DecimalSi);
        let right = Quantity::new(right, Format::BinarySi);
        prop_assert_eq!(left + right - right, left);
        prop_assert_eq!(-(left - right), right - left);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-+.0-9eEinumkKMGTP é]{0,12}|[0-9]{0,60}\\.[0-9]{0,60}[KMGTPE]?i?|[0-9]e[-+]?[0-9]{0,20}") {
        if let Ok(parsed) = text.parse::<Quantity>() {
            prop_assert_eq!(quantity(&parsed.to_string()), parsed, "{}", text);
        }
    }
}
