use proptest::prelude::*;
use serde_json::json;

use super::*;

fn decimal(text: &str) -> Decimal {
    parse(text).unwrap()
}

fn to_json(value: Decimal) -> String {
    serde_json::to_string(&JsonDecimal(value)).unwrap()
}

#[test]
fn a_number_is_read_exactly_with_or_without_exponent() {
    for (text, plain) in [
        ("0", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("0e999999", "0"),
        ("0.1", "0.1"),
        ("1e2", "100"),
        ("1E+2", "100"),
        ("12.50e-1", "1.25"),
        ("100.00", "100"),
        ("-3.10", "-3.1"),
        ("0.0000000000000000000000000001", "0.0000000000000000000000000001"),
        ("1e-28", "0.0000000000000000000000000001"),
        ("9999999999999999999999999999", "9999999999999999999999999999"),
        ("1e28", "10000000000000000000000000000"),
        ("79228162514264337593543950335", "79228162514264337593543950335"),
    ] {
        assert_eq!(to_json(decimal(text)), plain, "{text}");
    }
}

#[test]
fn invalid_or_oversized_numbers_are_refused() {
    for text in [
        "",
        "-",
        "+1",
        ".5",
        "5.",
        "01",
        "-01",
        "1e",
        "1e+",
        "e5",
        "0x1",
        "1_000",
        "1,5",
        " 1",
        "1 ",
        "NaN",
        "Infinity",
        "١",
        "1e400",
        "1e-400",
        "1e29",
        "1e-29",
        "--1",
        "1.2.3",
        "1e5e5",
        "1e1.5",
        "100000000000000000000000000000",
        "79228162514264337593543950336",
        "1e99999999999999999999",
        "-1e9223372036854775807",
        "123456789012345678901234567890",
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
    assert_eq!(parse(&format!("1.{}", "0".repeat(NUMBER_BYTES_MAX))), None);
}

#[test]
fn only_the_lenient_reader_takes_text() {
    let read: Value =
        serde_json::from_str(r#"{"number":0.10,"text":"0.10","wide":1e400}"#).unwrap();
    assert_eq!(from_number(&read["number"]), Some(decimal("0.1")));
    assert_eq!(from_number(&read["text"]), None);
    assert_eq!(from_number_or_text(&read["text"]), Some(decimal("0.1")));
    assert_eq!(from_number(&read["wide"]), None);
    for other in [json!(""), json!(null), json!(true), json!([1]), json!({"amount": 1})] {
        assert_eq!(from_number_or_text(&other), None, "{other}");
    }
}

#[test]
fn a_decimal_is_written_without_trailing_zeros_and_never_as_negative_zero() {
    let negative_zero = -Decimal::new(0, 2);
    assert_eq!(to_json(negative_zero), "0");
    assert_eq!(to_json(Decimal::new(10_000_000, 8)), "0.1");
    assert_eq!(to_json(Decimal::MAX), "79228162514264337593543950335");
    assert_eq!(serde_json::to_value(JsonDecimal(Decimal::new(250, 2))).unwrap().to_string(), "2.5");
}

#[test]
fn products_that_would_lose_a_digit_are_refused() {
    let fine = decimal("1.00000000000001");
    let exact = decimal("1.0000000000000200000000000001");
    assert_eq!(multiply_rounded(fine, fine, 28), Some(exact));
    let too_fine = decimal("1.000000000000001");
    assert_eq!(multiply_rounded(too_fine, too_fine, 30), None);
    assert_eq!(multiply_rounded(Decimal::MAX, Decimal::TWO, 0), None);
    assert_eq!(multiply_rounded(too_fine, too_fine, 2), Some(Decimal::ONE));
    assert_eq!(multiply_rounded(Decimal::new(1, 28), Decimal::new(1, 28), 2), Some(Decimal::ZERO));
    assert_eq!(multiply_rounded(decimal("1e-28"), decimal("1e-20"), 8), Some(Decimal::ZERO));
}

#[test]
fn a_product_is_rounded_once_and_half_up() {
    let cents = |left, right| multiply_rounded(decimal(left), decimal(right), 2);
    assert_eq!(cents("0.01", "0.5"), Some(decimal("0.01")));
    assert_eq!(cents("0.01", "0.49999"), Some(Decimal::ZERO));
    assert_eq!(cents("1.005", "1"), Some(decimal("1.01")));
    assert_eq!(cents("-1.005", "1"), Some(decimal("-1.01")));
    assert_eq!(cents("1.0049999999999999999", "1"), Some(decimal("1")));
}

#[test]
fn products_and_quotients_are_rounded_up_or_down() {
    let up = |left, right, decimals| multiply_up(decimal(left), decimal(right), decimals);
    assert_eq!(up("0.00000001", "90000", 2), Some(decimal("0.01")));
    assert_eq!(up("0.5", "0.04", 2), Some(decimal("0.02")));
    assert_eq!(up("2", "3", 2), Some(decimal("6")));
    assert_eq!(up("-0.5", "0.05", 2), Some(decimal("-0.02")));
    let down = |left, right| divide_down(decimal(left), decimal(right), 8);
    assert_eq!(down("1", "3"), Some(decimal("0.33333333")));
    assert_eq!(down("-1", "3"), Some(decimal("-0.33333334")));
    assert_eq!(down("0.000000019", "1"), Some(decimal("0.00000001")));
    assert_eq!(down("100", "0.00000001"), Some(decimal("10000000000")));
    assert_eq!(divide_up(decimal("1"), decimal("3"), 0), Some(decimal("1")));
    assert_eq!(divide_up(decimal("9"), decimal("3"), 0), Some(decimal("3")));
    for divisor in ["0", "-1"] {
        assert_eq!(down("1", divisor), None);
    }
    assert_eq!(down("79228162514264337593543950335", "1e-28"), None);
}

#[test]
fn percent_and_sum_are_exact() {
    assert_eq!(percent_of(decimal("99.99"), decimal("1.25")), Some(decimal("1.249875")));
    assert_eq!(percent_of(decimal("1e-28"), Decimal::ONE), None);
    assert_eq!(sum(["0.1", "0.2", "-0.3"].map(decimal)), Some(Decimal::ZERO));
    assert_eq!(sum([Decimal::MAX, Decimal::ONE]), None);
    assert_eq!(sum([decimal("9999999999999999999999999999"), decimal("0.1")]), None);
}

#[test]
fn trailing_zeros_are_no_decimals() {
    assert!(fits_decimals(Decimal::new(100_000, 3), 2));
    assert!(fits_decimals(decimal("0.01"), 2));
    assert!(!fits_decimals(decimal("0.001"), 2));
}

#[test]
fn fuzz_decimals() {
    rampart_fuzz::fuzz("decimals", |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let Some(value) = parse(text) else { return };
        assert_eq!(parse(&to_json(value)), Some(value), "written and read again");
        let other: serde_json::Result<Value> = serde_json::from_str(text);
        assert!(other.is_ok_and(|other| other.is_number()), "a number of JSON");
    });
}

proptest! {
    #[test]
    fn a_serialized_decimal_parses_back(mantissa in -(10_i128.pow(28))..10_i128.pow(28), scale in 0_u32..=28) {
        let value = Decimal::from_i128_with_scale(mantissa, scale);
        let text = to_json(value);
        prop_assert!(!text.contains(['e', 'E']) && text != "-0");
        prop_assert!(!text.contains('.') || !text.ends_with('0'));
        prop_assert_eq!(serde_json::from_str::<JsonDecimal>(&text).unwrap().0, value);
        prop_assert_eq!(parse(&text), Some(value));
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in ".*", number in "-?[0-9]{0,30}\\.?[0-9]{0,30}[eE]?[+-]?[0-9]{0,20}") {
        let _ = (parse(&text), parse(&number));
    }

    #[test]
    fn arithmetic_agrees_with_integers(left in -1_000_000_i64..1_000_000, right in -1_000_000_i64..1_000_000, scale in 0_u32..=8) {
        let (a, b) = (Decimal::new(left, scale), Decimal::new(right, 3));
        let exact = a.checked_mul(b).map(|value| value.normalize());
        prop_assert_eq!(multiply_rounded(a, b, 11), exact);
        for decimals in 0..=4 {
            let (unit, exact) = (Decimal::new(1, decimals), a * b);
            let product = multiply_up(a, b, decimals).unwrap();
            prop_assert!(product >= exact && product - exact < unit);
            if right > 0 {
                let (down, up) =
                    (divide_down(a, b, decimals).unwrap(), divide_up(a, b, decimals).unwrap());
                prop_assert!(down * b <= a && a < (down + unit) * b);
                prop_assert!(up * b >= a && a > (up - unit) * b);
            }
        }
        prop_assert_eq!(sum([a, b]), a.checked_add(b).map(|value| value.normalize()));
    }
}
