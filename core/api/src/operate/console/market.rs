//! One pair: its price, what its sources say and how old that is, and its terms. One payment method.

use chrono::{DateTime, Utc};
use maud::html;
use rust_decimal::Decimal;
use serde_json::Value;

use super::action::outcome;
use super::form::Typed;
use super::layout::Page;
use super::list::titled_table;
use super::lists::{METHOD, METHODS, PAIR, PAIRS};
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit};

const PRICE: &[(&str, Cell)] = &[
    ("State", Cell::Badge("/status")),
    ("Price", Cell::Money("/price", "/fiat")),
    ("Set by hand", Cell::Text("/fixed")),
    ("Observed", Cell::Time("/observedAt")),
    ("Age", Cell::Text("/age")),
    ("Too old after seconds", Cell::Text("/maxAgeSeconds")),
    ("Sources say instead", Cell::Money("/deviating", "/fiat")),
    ("That deviates by", Cell::Text("/deviation")),
    ("Quotes void before", Cell::Time("/quotesValidFrom")),
];
const SOURCES: &[(&str, Cell)] = &[
    ("Source", Cell::Text("/source")),
    ("Price", Cell::Money("/price", "/fiat")),
    ("Deviates by", Cell::Text("/deviation")),
    ("Observed", Cell::Time("/observedAt")),
    ("Age", Cell::Text("/age")),
    ("Read", Cell::Time("/readAt")),
];
const TERMS: &[(&str, Cell)] = &[
    ("Purchases", Cell::Badge("/buy/status")),
    ("Least purchase", Cell::Money("/buy/min", "/fiat")),
    ("Largest purchase", Cell::Money("/buy/max", "/fiat")),
    ("Sales", Cell::Badge("/sell/status")),
    ("Least sale", Cell::Money("/sell/min", "/coin")),
    ("Largest sale", Cell::Money("/sell/max", "/coin")),
    ("Spread (%)", Cell::Text("/spreadPercentage")),
    ("Network fee", Cell::Money("/networkFee", "/fiat")),
    ("Seconds of a quote", Cell::Text("/quoteLifetimeSeconds")),
    ("Seconds of a price", Cell::Text("/priceMaxAgeSeconds")),
];

/// The page of a pair.
///
/// # Errors
/// 404 for a pair that there is not; the refusal of a call.
pub(super) async fn show(visit: &Visit<'_>, code: &str, query: &Typed) -> Result<Page, Refused> {
    let is_it = |row: &Value| row["pair"] == code;
    let mut price = visit.find(PAIRS.call, is_it).await?;
    let mut pair = visit.find("/admin/v1/pairs", is_it).await?;
    let terms = &mut pair["terms"];
    let (coin, fiat) = code.split_once('-').unwrap_or_default();
    terms["coin"] = coin.into();
    terms["fiat"] = fiat.into();
    price["fiat"] = fiat.into();
    let now = visit.core.clock.now();
    let mid = text(&price, "/price");
    price["age"] = age(&price, now).into();
    price["deviation"] = deviation(&text(&price, "/deviating"), &mid).into();
    let mut sources = price["sources"].as_array().cloned().unwrap_or_default();
    for source in &mut sources {
        source["age"] = age(source, now).into();
        source["fiat"] = fiat.into();
        source["deviation"] = deviation(&text(source, "/price"), &mid).into();
    }
    let ids = [code.to_owned()];
    let body = html! {
        (outcome(query, PAIR.actions))
        (facts(visit, &price, PRICE))
        (PAIR.actions(visit, &ids, &Value::Null))
        @if sources.is_empty() { p.hint { "No source is configured for this pair." } }
        (titled_table(visit, "Sources", &sources, SOURCES))
        h2 { "Terms" }
        (facts(visit, &pair["terms"], TERMS))
    };
    Ok(Page::new(format!("Pair {code}"), PAIRS.section, body))
}

/// The page of a payment method, with its terms.
///
/// # Errors
/// 404 for a method that there is not; the refusal of the call.
pub(super) async fn show_method(
    visit: &Visit<'_>,
    code: &str,
    query: &Typed,
) -> Result<Page, Refused> {
    let method = visit.find(METHODS.call, |row| row["code"] == code).await?;
    let body = html! {
        (outcome(query, METHOD.actions))
        (facts(visit, &method, METHODS.columns))
        (METHOD.actions(visit, &[code.to_owned()], &method))
    };
    Ok(Page::new(format!("Payment method {code}"), METHOD.section, body))
}

/// The age of an observation in seconds; empty without one.
fn age(observation: &Value, now: DateTime<Utc>) -> String {
    let at = text(observation, "/observedAt").parse::<DateTime<Utc>>();
    at.map_or_else(|_| String::new(), |at| format!("{} s", (now - at).num_seconds()))
}

/// The distance of a price from the mid price in percent; empty without both.
fn deviation(price: &str, mid: &str) -> String {
    let (Ok(price), Ok(mid)) = (price.parse::<Decimal>(), mid.parse::<Decimal>()) else {
        return String::new();
    };
    let share = price.checked_sub(mid).and_then(|distance| distance.checked_div(mid));
    let percent = share.and_then(|share| share.checked_mul(Decimal::ONE_HUNDRED));
    percent.map_or_else(String::new, |percent| format!("{} %", percent.round_dp(2).normalize()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distances_are_in_percent_and_ages_in_seconds() {
        assert_eq!(deviation("99000", "90000"), "10 %");
        assert_eq!(deviation("90000", "91000"), "-1.1 %");
        assert_eq!((deviation("", "90000"), deviation("1", "0")), (String::new(), String::new()));
        let now = DateTime::from_timestamp(1_800_000_007, 0).unwrap();
        assert_eq!(age(&json!({"observedAt": "2027-01-15T08:00:00Z"}), now), "7 s");
        assert_eq!(age(&json!({"observedAt": null}), now), "");
    }
}
