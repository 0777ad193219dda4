//! Values of files with commas between them (RFC 4180).

/// A value in quotes, where it needs them. No spreadsheet calculates it, nor what is behind a `;` in it,
/// where some begin another cell.
pub fn quoted(value: &str) -> String {
    let value = value.split(';').map(uncalculated).collect::<Vec<_>>().join(";");
    if value.contains([',', ';', '"', '\r', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

/// The content of a cell, with a `'` before a formula.
fn uncalculated(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && cell.parse::<rust_decimal::Decimal>().is_err();
    if is_formula { format!("'{cell}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_no_formula() {
        for (value, expected) in [
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "'=1+1"),
            ("-12.50", "-12.50"),
            ("+31612345678", "+31612345678"),
            ("", ""),
        ] {
            assert_eq!(quoted(value), expected);
        }
    }

    #[test]
    fn no_formula_is_behind_a_semicolon() {
        for (value, expected) in [
            ("a;b", "\"a;b\""),
            ("a;=1+1", "\"a;'=1+1\""),
            ("=1;@x", "\"'=1;'@x\""),
            ("1;-2", "\"1;-2\""),
        ] {
            assert_eq!(quoted(value), expected);
        }
    }
}
