//! Paths and queries of calls.

use rampart_core::http::uri;

/// The query of what is given, with its question mark; empty when nothing is.
pub(super) fn query<'a>(criteria: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let given = criteria
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", uri::escape(&value?))));
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

/// The path of these parts.
pub(super) fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| uri::escape(part)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_what_is_given_and_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(query([("a", None), ("b", None)]), "");
        assert_eq!(query([("a", some("x&y")), ("b", None), ("c", some("1"))]), "?a=x%26y&c=1");
    }

    #[test]
    fn no_part_of_a_path_leads_out_of_it() {
        assert_eq!(path(&["partners", "a/b?c", "staff"]), "partners/a%2Fb%3Fc/staff");
    }
}
