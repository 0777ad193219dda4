//! A count with its noun.

use std::fmt::Display;

/// The count with the words for one thing or for any other number of them: `1 day`, `2 days`.
pub fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + Display + From<u8> + PartialEq,
{
    let words = if count == N::from(1_u8) { one } else { many };
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
