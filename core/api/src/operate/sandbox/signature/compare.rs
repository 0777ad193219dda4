//! Comparison of the text that a partner has signed with the text that it must sign, by field.

use super::Difference;
use super::mistakes::Mistake;
use crate::trading::offers::signature::{COVERED, Signable, encode};

/// Most fields that are read from an untrusted text.
const FIELDS_MAX: usize = 32;

/// Fields that are missing, superfluous or have another value, in any order.
pub(super) fn differences(signable: &Signable, signed: &str) -> Vec<Difference> {
    let signed: Vec<_> = signed
        .split('&')
        .take(FIELDS_MAX)
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    let sent = |name: &str| signed.iter().find(|(other, _)| *other == name).map(|(_, text)| *text);
    let mut differs = Vec::new();
    for (name, value) in signable.fields() {
        match sent(name) {
            None => differs.push(Difference::new(name, "it is set, but was not signed")),
            Some(text) if text == encode(value) => {}
            Some(text) => {
                let mistake =
                    Mistake::ALL.into_iter().find(|mistake| mistake.encode_wrongly(value) == text);
                let problem = mistake.map_or("another value was signed", Mistake::problem);
                differs.push(Difference::new(name, problem));
            }
        }
    }
    for (name, _) in signed.iter().filter(|(name, _)| !name.is_empty()) {
        if !COVERED.contains(name) {
            differs.push(Difference::new(*name, "it was signed, but is not covered"));
        } else if !signable.fields().any(|(set, _)| set == *name) {
            differs.push(Difference::new(*name, "it was signed, but is not set"));
        }
    }
    differs
}
