//! Checks of answers that the types of `wit/` cannot say. An answer that fails one is
//! `Cause::Answer`: the policy broke the contract.

use rust_decimal::Decimal;

use crate::bindings::crypto::Algorithm;
use crate::bindings::fee::{self, FeeKind};
use crate::bindings::method_order::{self, OrderRequest, Placement};
use crate::bindings::signature::{Signer, Verdict};
use crate::request::METHODS_MAX;

/// Most lines in a fee schedule.
const LINES_MAX: usize = 16;
const CODE_CHARS_MAX: usize = 32;
const RULE_CHARS_MAX: usize = 64;
const DECIMAL_CHARS_MAX: usize = 40;
const REPLAY_TOKEN_BYTES_MAX: usize = 255;
/// 100 %, in parts per million.
const PPM_WHOLE: i32 = 1_000_000;

/// The fees of a quote or an order as rules; the host does the sums.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeSchedule {
    /// At most 16.
    pub lines: Vec<FeeLine>,
    /// Parts per million of the mid rate, against the user; negative is a subsidy. Within ±100 %.
    pub spread_ppm: i32,
    /// Which rule of the policy fired, for the audit row; `[a-z0-9-]{0,64}`.
    pub rule: String,
}

/// One fee.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeLine {
    /// Whose fee it is.
    pub kind: FeeKind,
    /// For reports; `[a-z0-9-]{1,32}`.
    pub code: String,
    /// How much.
    pub charge: Charge,
}

/// How a fee is reckoned. Amounts are in the pay currency; nothing here is clamped or rounded yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Charge {
    /// An amount.
    Flat(Decimal),
    /// Parts per million of the pay amount, within ±100 %, and bounds of the result.
    Rate {
        /// Parts per million.
        ppm: i32,
        /// The fee is never less, if set; not above `at_most`.
        at_least: Option<Decimal>,
        /// The fee is never more, if set.
        at_most: Option<Decimal>,
    },
}

/// Every method that is to be shown, best first.
///
/// What the contract leaves to the host is done: a method the policy did not name follows in the
/// host's order, and a policy that hides everything is not obeyed (the host's order stands).
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Ids of the request, each at most once; never empty unless the request was.
    pub shown: Vec<Placement>,
    /// Where the method of each of them stands in the request.
    pub places: Vec<usize>,
    /// Which rule of the policy fired, for the audit row; `[a-z0-9-]{0,64}`.
    pub rule: String,
}

pub(crate) fn fee_schedule(answer: fee::FeeSchedule) -> Result<FeeSchedule, String> {
    let fee::FeeSchedule { lines, spread, rule } = answer;
    if lines.len() > LINES_MAX {
        return Err(format!("{} fee lines, at most {LINES_MAX} are allowed", lines.len()));
    }
    Ok(FeeSchedule {
        lines: lines.into_iter().map(fee_line).collect::<Result<_, _>>()?,
        spread_ppm: ppm(spread)?,
        rule: checked_rule(rule)?,
    })
}

fn fee_line(line: fee::FeeLine) -> Result<FeeLine, String> {
    let fee::FeeLine { kind, code, charge } = line;
    if code.is_empty() || !is_slug(&code, CODE_CHARS_MAX) {
        return Err("a fee code is not [a-z0-9-]{1,32}".into());
    }
    let charge = match charge {
        fee::Charge::Flat(amount) => Charge::Flat(decimal(&amount)?),
        fee::Charge::Rate(rate) => Charge::Rate { ppm: ppm(rate)?, at_least: None, at_most: None },
        fee::Charge::Bounded(fee::BoundedRate { rate, at_least, at_most }) => {
            let at_least = at_least.as_deref().map(decimal).transpose()?;
            let at_most = at_most.as_deref().map(decimal).transpose()?;
            if let (Some(least), Some(most)) = (at_least, at_most)
                && least > most
            {
                return Err(format!("at-least {least} is above at-most {most}"));
            }
            Charge::Rate { ppm: ppm(rate)?, at_least, at_most }
        }
    };
    Ok(FeeLine { kind, code, charge })
}

/// `request` has at most [`METHODS_MAX`] methods.
pub(crate) fn ranking(
    answer: method_order::Ranking,
    request: &OrderRequest,
) -> Result<Ranking, String> {
    let method_order::Ranking { mut shown, hidden, rule } = answer;
    let rule = checked_rule(rule)?;
    let mut placed = [false; METHODS_MAX];
    let mut places = Vec::with_capacity(request.methods.len());
    for id in shown.iter().map(|p| &p.id).chain(&hidden) {
        let place = request.methods.iter().position(|m| m.id == *id);
        match place.filter(|place| placed.get(*place) == Some(&false)) {
            Some(place) => {
                placed[place] = true;
                places.push(place);
            }
            None => return Err("an id is repeated or was not in the request".into()),
        }
    }
    places.truncate(shown.len());
    let hides_everything = hidden.len() == request.methods.len();
    for (place, method) in request.methods.iter().enumerate() {
        if hides_everything || !placed[place] {
            shown.push(Placement { id: method.id.clone(), badge: None });
            places.push(place);
        }
    }
    Ok(Ranking { shown, places, rule })
}

/// `verified` is what the host itself found genuine during this call: a policy that calls a payload
/// authentic without having asked is not believed.
pub(crate) fn verdict(
    answer: Verdict,
    verified: &[(String, Algorithm)],
) -> Result<Verdict, String> {
    if let Verdict::Authentic(Signer { key, algorithm, replay_token, .. }) = &answer {
        if !verified.iter().any(|(k, a)| k == key && a == algorithm) {
            return Err("authentic, but the host verified no signature with the named key".into());
        }
        if replay_token.as_ref().is_some_and(|t| t.is_empty() || t.len() > REPLAY_TOKEN_BYTES_MAX) {
            return Err(format!("a replay token is not 1 to {REPLAY_TOKEN_BYTES_MAX} bytes"));
        }
    }
    Ok(answer)
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, at most 40 characters, and within the precision of `Decimal`
/// (28 digits): money is never rounded on its way in.
pub(crate) fn decimal(text: &str) -> Result<Decimal, String> {
    let wrong = || "a decimal is not plain decimal text of at most 28 digits".to_owned();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let well_formed = text.len() <= DECIMAL_CHARS_MAX
        && digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits);
    if !well_formed {
        return Err(wrong());
    }
    Decimal::from_str_exact(text).map_err(|_| wrong())
}

fn ppm(rate: i32) -> Result<i32, String> {
    match (-PPM_WHOLE..=PPM_WHOLE).contains(&rate) {
        true => Ok(rate),
        false => Err(format!("a rate of {rate} parts per million is beyond 100 %")),
    }
}

fn checked_rule(rule: String) -> Result<String, String> {
    match is_slug(&rule, RULE_CHARS_MAX) {
        true => Ok(rule),
        false => Err("a rule is not [a-z0-9-]{0,64}".into()),
    }
}

fn is_slug(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests;
