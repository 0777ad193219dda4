//! Common mistakes in signing, tried until one explains a signature.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded;

use super::Difference;
use crate::platform::error::Result;
use crate::trading::offers::signature::{COVERED, Signable, encode};
use rampart_types::decimal;

/// A mistake in encoding a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    NotEncoded,
    FormEncoded,
    LowerCaseEscapes,
    EncodedTwice,
    UnreservedEncoded,
    NumberRewritten,
}

impl Mistake {
    pub(super) const ALL: [Self; 6] = [
        Self::NotEncoded,
        Self::FormEncoded,
        Self::LowerCaseEscapes,
        Self::EncodedTwice,
        Self::UnreservedEncoded,
        Self::NumberRewritten,
    ];

    /// The value as it is encoded with this mistake.
    pub(super) fn encode_wrongly(self, value: &str) -> String {
        match self {
            Self::NotEncoded => value.to_owned(),
            Self::FormEncoded => form_urlencoded::byte_serialize(value.as_bytes()).collect(),
            Self::LowerCaseEscapes => lower_case_escapes(&encode(value)),
            Self::EncodedTwice => encode(&encode(value)),
            Self::UnreservedEncoded => utf8_percent_encode(value, NON_ALPHANUMERIC).to_string(),
            Self::NumberRewritten => match decimal::parse(value) {
                Some(number) => number.normalize().to_string(),
                None => encode(value),
            },
        }
    }

    pub(super) const fn problem(self) -> &'static str {
        match self {
            Self::NotEncoded => "it was not percent-encoded",
            Self::FormEncoded => "it was encoded as a form, not by RFC 3986 (a blank is %20)",
            Self::LowerCaseEscapes => "its escapes were written in small letters (%3a, not %3A)",
            Self::EncodedTwice => "it was percent-encoded twice",
            Self::UnreservedEncoded => "the characters - . _ ~ were encoded too",
            Self::NumberRewritten => "its digits were signed in another form than they are sent",
        }
    }
}

fn lower_case_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Percent-encoded text is ASCII, and two digits follow every percent sign.
        let (escape, rest) = part.split_at(part.len().min(2));
        text.extend(["%", &escape.to_ascii_lowercase(), rest]);
    }
    text
}

/// The fields whose mistake makes the signature verify, and an explanation. At most
/// `2^5 + 6 × 6 + 1` texts are tried.
pub(super) fn find(
    signable: &Signable,
    fits: impl Fn(&str) -> Result<bool>,
) -> Result<(Vec<Difference>, &'static str)> {
    let fields: Vec<_> = signable.fields().collect();
    for mistake in Mistake::ALL {
        for chosen in all_then_each(&fields) {
            if let Some(differs) = affected_fields(&fields, mistake, chosen)
                && fits(&join(&fields, |name, value| {
                    let wrong = chosen.is_none_or(|chosen| chosen == name);
                    if wrong { mistake.encode_wrongly(value) } else { encode(value) }
                }))?
            {
                return Ok((differs, "It fits a text in which values are written differently."));
            }
        }
    }
    for omitted in 1..1_usize << fields.len() {
        let is_omitted = |at: usize| omitted & (1 << at) != 0;
        let rest =
            fields.iter().enumerate().filter(|(at, _)| !is_omitted(*at)).map(|(_, field)| *field);
        let rest: Vec<_> = rest.collect();
        if fits(&join(&rest, |_, value| encode(value)))? {
            let missing = fields.iter().enumerate().filter(|(at, _)| is_omitted(*at));
            let problem = "it is set, but was not signed";
            let differs = missing.map(|(_, (name, _))| Difference::new(*name, problem)).collect();
            return Ok((differs, "It fits a text that leaves fields out."));
        }
    }
    let all = COVERED.map(|name| {
        (name, fields.iter().find(|(set, _)| *set == name).map_or("", |(_, value)| *value))
    });
    if fits(&join(&all, |_, value| encode(value)))? {
        let empty = all.iter().filter(|(_, value)| value.is_empty());
        let differs =
            empty.map(|(name, _)| Difference::new(*name, "it was signed, but is not set"));
        return Ok((differs.collect(), "It fits a text with fields that are not set."));
    }
    Ok((
        Vec::new(),
        "It was made with another secret, or over other values than are sent. Send the text that \
         you signed as `canonical` to have it compared.",
    ))
}

/// All fields at once, then each of them.
fn all_then_each<'a>(
    fields: &'a [(&'static str, &str)],
) -> impl Iterator<Item = Option<&'static str>> + 'a {
    std::iter::once(None).chain(fields.iter().map(|(name, _)| Some(*name)))
}

/// The fields that the mistake changes; `None` when it changes none.
fn affected_fields(
    fields: &[(&'static str, &str)],
    mistake: Mistake,
    chosen: Option<&str>,
) -> Option<Vec<Difference>> {
    let changed = fields.iter().filter(|(name, value)| {
        chosen.is_none_or(|chosen| chosen == *name)
            && mistake.encode_wrongly(value) != encode(value)
    });
    let differs: Vec<_> =
        changed.map(|(name, _)| Difference::new(*name, mistake.problem())).collect();
    (!differs.is_empty()).then_some(differs)
}

fn join(fields: &[(&'static str, &str)], write: impl Fn(&str, &str) -> String) -> String {
    let pair = |(name, value): &(&'static str, &str)| format!("{name}={}", write(name, value));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_encodes_a_value_in_its_own_way() {
        let value = "https://a.b/c?d=e f~";
        for (mistake, encoded) in [
            (Mistake::NotEncoded, value),
            (Mistake::FormEncoded, "https%3A%2F%2Fa.b%2Fc%3Fd%3De+f%7E"),
            (Mistake::LowerCaseEscapes, "https%3a%2f%2fa.b%2fc%3fd%3de%20f~"),
            (Mistake::EncodedTwice, "https%253A%252F%252Fa.b%252Fc%253Fd%253De%2520f~"),
            (Mistake::UnreservedEncoded, "https%3A%2F%2Fa%2Eb%2Fc%3Fd%3De%20f%7E"),
            (Mistake::NumberRewritten, "https%3A%2F%2Fa.b%2Fc%3Fd%3De%20f~"),
        ] {
            assert_eq!(mistake.encode_wrongly(value), encoded, "{mistake:?}");
        }
        assert_eq!(Mistake::NumberRewritten.encode_wrongly("1.50"), "1.5");
    }
}
