//! The form of an event. Whatever has it, and is the connector's to report, is stored: what it says is
//! judged afterwards.

use chrono::{DateTime, Utc};
use rampart_types::money::AMOUNT_MAX;
use rampart_types::{OrderId, decimal};
use rust_decimal::Decimal;
use serde_json::Value;
use uuid::Uuid;

use super::kind::EventKind;
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, optional, required};
use crate::money::connectors::network_fee::NetworkFee;
use crate::money::payments::store::currency_of;
use crate::platform::error::Denial;

/// Longest id, reference or other name, in characters.
const NAME_CHARS_MAX: usize = 255;

/// Most earlier references that are read.
pub(super) const EARLIER_MAX: usize = 8;

/// The members that have a meaning. Others are kept; of any kind are those whose value is no reason to
/// refuse a fact.
pub(super) const MEMBERS: &[Member] = &[
    required("id", Kind::Sized(1, NAME_CHARS_MAX), "The connector's own id of the event."),
    required("kind", Kind::OneOf(&EventKind::NAMES), "Kind."),
    required("occurredAt", Kind::Format("date-time"), "Time at the provider, since 1970."),
    optional("partner", Kind::Any, "The partner's slug; what is none names no partner."),
    optional("orderId", Kind::Any, "The order's number; what is none names no order."),
    optional("commandId", Kind::Any, "The uuid of the command that it follows from."),
    optional(
        "providerReference",
        Kind::Sized(1, NAME_CHARS_MAX),
        "The provider's reference; that of a known payment tells the order of what follows from it.",
    ),
    optional(
        "originalReference",
        Kind::Sized(1, NAME_CHARS_MAX),
        "Of a refund or a dispute with a reference of its own: that of its payment; of a return \
         with one: that of its payout or transfer.",
    ),
    optional(
        "earlierReferences",
        Kind::Any,
        "Of a payment that came in or a transfer that came back: other references under which it \
         may have been reported before, with this amount and `occurredAt`. Each of those payments \
         counts for one event only.",
    ),
    optional(
        "amount",
        Kind::Decimal,
        "Above zero, at most 1e15 whole units; of `health` what the connector holds of `asset`, \
         or zero.",
    ),
    optional("currency", Kind::Text, "Of money, such as `EUR`."),
    optional(
        "asset",
        Kind::Text,
        "Of coins: a code such as `ETH`, or a CAIP-19 id. Coins with an amount whose `currency` is \
         another one are refused (422).",
    ),
    optional("address", Kind::Any, "The deposit address that coins came to; tells their order."),
    optional("tag", Kind::Any, "Its tag: a text or a number."),
    optional("transactionId", Kind::Sized(1, NAME_CHARS_MAX), "The transaction on chain."),
    optional("confirmations", Kind::Integer(0, u32::MAX as i64), "Blocks on top of it."),
    optional(
        "networkFee",
        Kind::Any,
        "Above zero: what the chain took for a payout, of `networkFeeAsset`.",
    ),
    optional(
        "networkFeeAsset",
        Kind::Any,
        "The chain's own coin; without it the fee is of `asset`.",
    ),
    optional("outcome", Kind::Any, "Such as `won`, `lost`, `verified`, `rejected`."),
    optional("reason", Kind::Any, "The provider's reason."),
];

/// An event as read.
#[derive(Debug)]
pub struct Report {
    pub(super) id: String,
    pub(super) kind: EventKind,
    pub(super) occurred_at: DateTime<Utc>,
    pub(super) partner: Option<String>,
    pub(super) order: Option<OrderId>,
    pub(super) command: Option<Uuid>,
    pub(super) provider_reference: Option<String>,
    pub(super) original_reference: Option<String>,
    /// Of a payment that came in, or a transfer that came back; without its own.
    pub(super) earlier_references: Vec<String>,
    pub(super) amount: Option<Decimal>,
    /// Of money or coins, as sent.
    pub(super) currency: Option<String>,
    /// Of coins, as sent.
    asset: Option<String>,
    pub(super) address: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) transaction_id: Option<String>,
    pub(super) confirmations: Option<u32>,
    pub(super) network_fee: Option<NetworkFee>,
    pub(super) outcome: Option<String>,
    pub(super) reason: Option<String>,
    /// The whole document.
    pub(super) raw: Value,
}

impl Report {
    /// Reads an event.
    ///
    /// # Errors
    /// One sentence for a document that has not the form of one.
    pub(in crate::money::connectors) fn read(document: &Value) -> Result<Self, String> {
        if !document.is_object() {
            return Err("the body is not a JSON object".to_owned());
        }
        let kind = document["kind"].as_str().and_then(EventKind::from_name);
        let kind = kind.ok_or_else(|| format!("kind: one of {}", EventKind::NAMES.join(", ")))?;
        let occurred_at = document["occurredAt"].as_str().and_then(time);
        let report = Self {
            id: name(document, "id")?.ok_or("id: 1 to 255 characters")?,
            kind,
            occurred_at: occurred_at
                .ok_or("occurredAt: a time since 1970, such as 2026-03-01T12:00:00Z")?,
            partner: document["partner"].as_str().map(str::to_owned),
            order: order(&document["orderId"]),
            command: document["commandId"].as_str().and_then(|text| text.parse().ok()),
            provider_reference: name(document, "providerReference")?,
            original_reference: name(document, "originalReference")?,
            earlier_references: earlier_references(document),
            amount: amount(&document["amount"], kind)?,
            currency: name(document, "currency")?.or(name(document, "asset")?),
            asset: name(document, "asset")?,
            address: document["address"].as_str().map(str::to_owned),
            tag: tag(&document["tag"]),
            transaction_id: name(document, "transactionId")?,
            confirmations: confirmations(&document["confirmations"])?,
            network_fee: NetworkFee::read(document),
            outcome: document["outcome"].as_str().map(str::to_owned),
            reason: document["reason"].as_str().map(storable),
            raw: document.clone(),
        };
        report.check().map(|()| report)
    }

    /// Checks that an amount of coins is of one asset, whether `currency` or `asset` names it.
    ///
    /// # Errors
    /// 422 when they name two: booked under either, the amount may be wrong.
    pub(super) fn check_asset(&self, core: &Core) -> Result<(), Denial> {
        let (Some(_), Some(currency), Some(asset)) = (self.amount, &self.currency, &self.asset)
        else {
            return Ok(());
        };
        if self.kind.is_of_coins() && currency_of(core, currency).0 != currency_of(core, asset).0 {
            return Err(Denial::unprocessable("currency: another one than asset"));
        }
        Ok(())
    }

    /// Checks that money has a name, an amount and a currency.
    fn check(&self) -> Result<(), String> {
        if !self.kind.names_amount() {
            return Ok(());
        }
        if self.provider_reference.is_none() {
            return Err("providerReference: 1 to 255 characters".to_owned());
        }
        if self.amount.is_none() {
            return Err("amount: a number above zero".to_owned());
        }
        let member = if self.kind == EventKind::DepositReceived { "asset" } else { "currency" };
        self.currency.as_ref().map(|_| ()).ok_or_else(|| format!("{member}: 1 to 255 characters"))
    }
}

/// A time since 1970: those of long before cannot be stored, or are none to who reads the books.
fn time(text: &str) -> Option<DateTime<Utc>> {
    text.parse::<DateTime<Utc>>().ok().filter(|at| *at >= DateTime::UNIX_EPOCH)
}

/// A text of 1 to 255 characters without control characters; `None` if it is absent or null.
fn name(document: &Value, member: &str) -> Result<Option<String>, String> {
    let value = &document[member];
    if value.is_null() {
        return Ok(None);
    }
    let text = value.as_str().filter(|text| {
        (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.contains(char::is_control)
    });
    let wrong = || format!("{member}: 1 to 255 characters, none of them a control character");
    text.map(|text| Some(text.to_owned())).ok_or_else(wrong)
}

/// A text for people as Postgres stores it, which has no U+0000.
pub(in crate::money::connectors) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The earlier references; what is none is no reason to refuse a fact.
fn earlier_references(document: &Value) -> Vec<String> {
    let listed = document["earlierReferences"].as_array().into_iter().flatten();
    listed.take(EARLIER_MAX).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A tag as the pool of addresses has it: a text, or a number's digits.
fn tag(value: &Value) -> Option<String> {
    match value {
        Value::String(tag) => Some(tag.clone()),
        Value::Number(tag) => Some(tag.to_string()),
        _ => None,
    }
}

/// The number of an order; what is none names no order of ours.
fn order(value: &Value) -> Option<OrderId> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    number.and_then(OrderId::new)
}

/// The amount that has moved, or that is held, which may be nothing.
fn amount(value: &Value, kind: EventKind) -> Result<Option<Decimal>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let is_held = kind == EventKind::Health;
    let is_possible = |amount: &Decimal| *amount > Decimal::ZERO || is_held && amount.is_zero();
    let amount = decimal::from_number(value)
        .filter(|amount| is_possible(amount) && *amount <= Decimal::from(AMOUNT_MAX));
    let wrong = || format!("amount: a number above zero, at most {AMOUNT_MAX}");
    amount.map(Some).ok_or_else(wrong)
}

fn confirmations(value: &Value) -> Result<Option<u32>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.map(Some).ok_or_else(|| "confirmations: a whole number".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn received() -> Value {
        json!({"id": "evt-1", "kind": "payment.received", "occurredAt": "2026-03-01T12:00:00Z",
            "partner": "acme", "orderId": 7, "providerReference": "pay-1", "amount": 2.5,
            "currency": "EUR"})
    }

    #[test]
    fn what_is_no_report_is_refused_with_a_sentence() {
        for (member, value) in [
            ("id", json!(null)),
            ("id", json!("")),
            ("id", json!("a\u{0}b")),
            ("kind", json!("payment.guessed")),
            ("occurredAt", json!("yesterday")),
            ("occurredAt", json!("1969-12-31T23:59:59Z")),
            ("occurredAt", json!("-9999-01-01T00:00:00Z")),
            ("amount", json!(0)),
            ("amount", json!(-5)),
            ("amount", json!(AMOUNT_MAX + 1)),
            ("amount", json!("2.5")),
            ("amount", json!(null)),
            ("currency", json!(null)),
            ("providerReference", json!(7)),
            ("originalReference", json!("")),
            ("confirmations", json!(-1)),
        ] {
            let mut document = received();
            document[member] = value.clone();
            let refused = Report::read(&document).unwrap_err();
            assert!(refused.starts_with(member), "{member} {value}: {refused}");
        }
        assert!(Report::read(&json!([])).is_err());
    }

    #[test]
    fn what_money_is_for_is_no_reason_to_refuse_it() {
        for (member, value) in [
            ("orderId", json!("no number")),
            ("orderId", json!(-1)),
            ("orderId", json!([1])),
            ("partner", json!(false)),
            ("commandId", json!("none")),
            ("occurredAt", json!("2999-01-01T00:00:00Z")),
            ("tag", json!([1])),
            ("unknownMember", json!({"a": [1]})),
        ] {
            let mut document = received();
            document[member] = value.clone();
            assert_eq!(Report::read(&document).unwrap().raw, document, "{member} {value}");
        }
    }

    #[test]
    fn a_reason_is_read_as_it_can_be_stored() {
        let mut document = received();
        document["reason"] = json!("card\u{0}declined");
        let report = Report::read(&document).unwrap();
        assert_eq!(report.reason.as_deref(), Some("card\u{fffd}declined"));
        assert_eq!(report.raw, document);
    }

    #[test]
    fn a_connector_may_hold_nothing() {
        let mut document = received();
        (document["kind"], document["amount"]) = (json!("health"), json!(0));
        assert_eq!(Report::read(&document).unwrap().amount, Some(Decimal::ZERO));
        document["amount"] = json!(-1);
        assert!(Report::read(&document).is_err());
    }

    #[test]
    fn a_tag_is_a_text_or_the_digits_of_a_number() {
        for (sent, read) in [(json!("12345"), Some("12345")), (json!(12345), Some("12345"))] {
            let mut document = received();
            document["tag"] = sent;
            assert_eq!(Report::read(&document).unwrap().tag.as_deref(), read);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text: String, number: i64) {
            for member in ["id", "kind", "occurredAt", "amount", "orderId", "currency"] {
                let mut document = received();
                document[member] = json!(text);
                let _ = Report::read(&document);
                document[member] = json!(number);
                let _ = Report::read(&document);
            }
        }
    }
}
