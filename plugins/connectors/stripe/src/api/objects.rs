//! The objects of Stripe's API, as far as they matter here.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A payment.
#[derive(Debug, Deserialize)]
pub(crate) struct Intent {
    pub(crate) id: String,
    pub(crate) status: String,
    amount: i64,
    amount_received: Option<i64>,
    pub(crate) currency: String,
    pub(crate) client_secret: Option<String>,
    created: i64,
    pub(crate) canceled_at: Option<i64>,
    pub(crate) cancellation_reason: Option<String>,
    #[serde(default, deserialize_with = "notes")]
    pub(crate) metadata: Metadata,
    /// The charge, or its id.
    #[serde(default)]
    latest_charge: Value,
}

impl Intent {
    /// The amount that was charged, in the smallest unit.
    pub(crate) fn charged(&self) -> i64 {
        self.amount_received.unwrap_or(self.amount)
    }

    /// Time of the charge, in seconds since 1970; of the payment itself if it names none.
    pub(crate) fn charged_at(&self) -> i64 {
        self.latest_charge["created"].as_i64().unwrap_or(self.created)
    }
}

/// Our own notes on a payment or a refund.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) order: Option<String>,
    pub(crate) partner: Option<String>,
    pub(crate) command: Option<String>,
}

/// The notes on a payment or a refund, which may have null in place of them.
fn notes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metadata, D::Error> {
    Option::<Metadata>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A refund.
#[derive(Debug, Deserialize)]
pub(crate) struct Refund {
    pub(crate) id: String,
    /// `succeeded`, `pending`, `requires_action`, `failed` or `canceled`.
    pub(crate) status: Option<String>,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) created: i64,
    pub(crate) payment_intent: Option<String>,
    pub(crate) failure_reason: Option<String>,
    #[serde(default, deserialize_with = "notes")]
    pub(crate) metadata: Metadata,
}

/// A dispute.
#[derive(Debug, Deserialize)]
pub(crate) struct Dispute {
    pub(crate) id: String,
    /// `warning_needs_response`, `warning_under_review` or `warning_closed` of an inquiry, else
    /// `needs_response`, `under_review`, `won`, `lost` or `prevented`.
    pub(crate) status: String,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) created: i64,
    pub(crate) payment_intent: Option<String>,
    pub(crate) reason: Option<String>,
    /// Its movements of money: none, the withdrawal, or that and the return.
    #[serde(default)]
    balance_transactions: Value,
}

/// A movement of a dispute's money.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Movement<'a> {
    pub(crate) id: &'a str,
    /// Time in seconds since 1970.
    pub(crate) at: i64,
}

impl Dispute {
    /// The movement by which it took money; `None` for one that has taken none.
    pub(crate) fn withdrawn(&self) -> Option<Movement<'_>> {
        self.movement(|amount| amount < 0)
    }

    /// The movement by which the money came back.
    pub(crate) fn reinstated(&self) -> Option<Movement<'_>> {
        self.movement(|amount| amount > 0)
    }

    fn movement(&self, is_meant: impl Fn(i64) -> bool) -> Option<Movement<'_>> {
        let mut moved = self.balance_transactions.as_array()?.iter();
        let found = moved.find(|one| one["amount"].as_i64().is_some_and(&is_meant))?;
        let id = found["id"].as_str().unwrap_or_default();
        Some(Movement { id, at: found["created"].as_i64()? })
    }
}

/// News of the account: the kind, and the object that it is about.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) created: i64,
    pub(crate) data: EventData,
}

/// The part of an event's content that is kept: the object is read anew.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EventData {
    pub(crate) object: EventObject,
}

/// The object that an event is about: one of any kind, whose members may be of any form. What could not
/// be read would hide the other events of its page.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EventObject {
    #[serde(default)]
    id: Value,
    /// The payment's id, or the payment.
    #[serde(default)]
    payment_intent: Value,
}

impl EventObject {
    /// Its id; empty without one.
    pub(crate) fn id(&self) -> &str {
        self.id.as_str().unwrap_or_default()
    }

    /// Id of the payment that it names.
    pub(crate) fn payment_intent(&self) -> Option<&str> {
        self.payment_intent.as_str().or_else(|| self.payment_intent["id"].as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_charge_is_read_expanded_or_not() {
        let intent = |charge: Value| {
            let document = json!({"id": "pi_1", "status": "succeeded", "amount": 100,
                "amount_received": 90, "currency": "eur", "created": 5, "latest_charge": charge,
                "metadata": {"order": "7", "other": "x"}});
            Intent::deserialize(document).unwrap()
        };
        assert_eq!(intent(json!({"created": 9})).charged_at(), 9);
        assert_eq!(intent(json!("ch_1")).charged_at(), 5);
        assert_eq!(intent(Value::Null).charged(), 90);
        assert_eq!(intent(Value::Null).metadata.order.as_deref(), Some("7"));
    }

    #[test]
    fn what_is_null_or_of_another_form_is_read_all_the_same() {
        let refund = json!({"id": "re_1", "amount": 1, "currency": "eur", "created": 1,
            "metadata": null});
        assert_eq!(Refund::deserialize(refund).unwrap().metadata.command, None);
        let read = |object: Value| EventObject::deserialize(object).unwrap();
        for payment in [json!("pi_1"), json!({"id": "pi_1"})] {
            let charge = read(json!({"id": "ch_1", "payment_intent": payment}));
            assert_eq!((charge.id(), charge.payment_intent()), ("ch_1", Some("pi_1")));
        }
        for other in [json!({}), json!({"id": 7, "payment_intent": [7]})] {
            assert_eq!((read(other.clone()).id(), read(other).payment_intent()), ("", None));
        }
    }
}
