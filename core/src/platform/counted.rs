//! A count with its noun.

use std::fmt::Display;

/// The count with the words for one thing or for any other number of them: `1 day`, `2 days`.
pub fn counted(count: impl Copy + Display + From<u8> + PartialEq, one: &str, many: &str) -> String {
    let words = if count == 1_u8.into() { one } else { many };
    format!("{count} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_alone_is_singular() {
        let days = |count: i64| counted(count, "day", "days");
        assert_eq!([days(0), days(1), days(2)], ["0 days", "1 day", "2 days"]);
    }
}
