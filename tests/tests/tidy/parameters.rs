//! Parameters of functions: a reader sees what each of them is.

use crate::{nothing_breaks, rust};

/// Functions of an endpoint that take its `Request`, which may be a tuple of what it has read.
const TAKE_A_REQUEST: [&str; 4] = ["call", "call_with_key", "hold", "needs_approval"];

#[test]
fn no_parameter_is_a_tuple() {
    let breaks = rust().flat_map(|source| {
        let found = tuple_parameters(&source.text).into_iter();
        found.map(move |place| format!("{}:{place}", source.path))
    });
    nothing_breaks("a function takes values one by one, or as a type with a name", breaks);
}

/// The parameters that are tuples or references to one, as `line: function takes tuple`. Parameters
/// of closures, tuples within other types and aliases are not seen.
pub(crate) fn tuple_parameters(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, keyword) in text.match_indices("fn ") {
        let (above, rest) = (&text[..at], &text[at + keyword.len()..]);
        let beginning = above.rsplit('\n').next().unwrap_or_default();
        let name =
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let is_code = !beginning.trim_start().starts_with("//");
        if name.is_empty() || !is_code || !(beginning.is_empty() || beginning.ends_with(' ')) {
            continue;
        }
        let mut signature = &rest[name.len()..];
        if let Some((_, behind)) = bracket('<', signature) {
            signature = behind;
        }
        let (parameters, _) = bracket('(', signature).unwrap_or_default();
        for tuple in parameters.into_iter().filter_map(tuple) {
            let is_request = TAKE_A_REQUEST.contains(&name)
                && text.contains(&format!("type Request = {tuple};"));
            if !is_request {
                let line = above.matches('\n').count() + 1;
                found.push(format!("{line}: {name} takes {tuple}"));
            }
        }
    }
    found
}

/// The type of a parameter if it is a tuple or a reference to one: in one line, without the
/// reference.
fn tuple(parameter: &str) -> Option<String> {
    let kind = parameter.split_once(": ")?.1.trim_start_matches('&');
    let kind = if kind.starts_with('\'') { kind.split_once(' ')?.1 } else { kind };
    let (mut parts, behind) = bracket('(', kind.trim_start_matches("mut "))?;
    if parts.len() < 2 || !behind.is_empty() {
        return None;
    }
    parts.retain(|part| !part.is_empty());
    Some(format!("({})", parts.join(", ")))
}

/// The parts between the commas of the bracket that a text begins with, and the text behind it.
/// `None` if it begins with something else.
fn bracket(opening: char, text: &str) -> Option<(Vec<&str>, &str)> {
    if !text.starts_with(opening) {
        return None;
    }
    let (mut parts, mut start, mut depth, mut before) = (Vec::new(), 1, 0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            // The end of an arrow.
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            return Some((parts, &text[start..]));
        }
        before = c;
    }
    None
}
