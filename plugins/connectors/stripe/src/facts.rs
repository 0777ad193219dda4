//! Facts as an edge takes them, made of the provider's objects alone: the same object is the same
//! fact, byte by byte, whoever reports it and however often.

use chrono::{DateTime, SecondsFormat};
use rust_decimal::Decimal;
use serde_json::{Number, Value, json};

use crate::amounts;
use crate::api::{Dispute, Event, Intent, Metadata, Refund};

/// The fact that a payment has arrived; `None` for one that has not.
pub(crate) fn received(intent: &Intent) -> Option<Value> {
    let money = Money { count: intent.charged(), currency: &intent.currency };
    (intent.status == "succeeded").then(|| {
        let fact = money.fact("payment.received", &intent.id, intent.charged_at());
        named(fact, &intent.metadata)
    })
}

/// The fact that nobody can make a payment any more; `None` for one that may still be made.
pub(crate) fn failed(intent: &Intent) -> Option<Value> {
    let at = intent.canceled_at.filter(|_| intent.status == "canceled")?;
    let mut fact = named(fact("payment.failed", &intent.id, at), &intent.metadata);
    fact["reason"] = json!(intent.cancellation_reason.as_deref().unwrap_or("canceled"));
    Some(fact)
}

/// The fact that a payment was given back; `None` for a refund that has not succeeded.
pub(crate) fn refunded(refund: &Refund, payment: &Metadata) -> Option<Value> {
    let money = Money { count: refund.amount, currency: &refund.currency };
    (refund.status.as_deref() == Some("succeeded")).then(|| {
        let mut fact = money.fact("payment.refunded", &refund.id, refund.created);
        if let Some(command) = &refund.metadata.command {
            fact["commandId"] = json!(command);
        }
        named(of_payment(fact, refund.payment_intent.as_deref()), payment)
    })
}

/// The report that a refund will not succeed, which a person must look at; `None` for any other.
pub(crate) fn refund_failed(refund: &Refund) -> Option<Value> {
    matches!(refund.status.as_deref(), Some("failed" | "canceled")).then(|| {
        let mut report = fact("health", &format!("refund/{}", refund.id), refund.created);
        report["outcome"] = json!("refund failed");
        report["reason"] = json!(refund.failure_reason.as_deref().unwrap_or("unknown"));
        report["providerReference"] = json!(refund.id);
        report
    })
}

/// The report that an event was passed over, because its object may not be read.
pub(crate) fn passed_over(event: &Event, cause: &str) -> Value {
    let mut report = fact("health", &format!("event/{}", event.id), event.created);
    report["outcome"] = json!("event passed over");
    report["reason"] = json!(cause);
    report["providerReference"] = json!(event.id);
    report
}

/// The fact that a payment is disputed. `None` for an inquiry, and for a dispute that was prevented,
/// while it has taken no money.
pub(crate) fn disputed(dispute: &Dispute, payment: &Metadata) -> Option<Value> {
    let money = Money { count: dispute.amount, currency: &dispute.currency };
    let may_take_none = dispute.status.starts_with("warning_") || dispute.status == "prevented";
    (!may_take_none || dispute.withdrawn_at().is_some()).then(|| {
        let mut fact = money.fact("payment.disputed", &dispute.id, dispute.created);
        fact["reason"] = json!(dispute.reason.as_deref().unwrap_or("unknown"));
        named(of_payment(fact, dispute.payment_intent.as_deref()), payment)
    })
}

/// The fact that a dispute has ended; `None` for one that has not, or has taken no money. Only the
/// event of the end says when it was won or lost: `closed_at`, in seconds since 1970.
pub(crate) fn dispute_closed(
    dispute: &Dispute,
    payment: &Metadata,
    closed_at: Option<i64>,
) -> Option<Value> {
    let (outcome, at) = match &*dispute.status {
        decided @ ("won" | "lost") => (decided, closed_at?),
        // The payer has the money back without a formal dispute, unless it has come back to us.
        "prevented" => match (dispute.reinstated_at(), dispute.withdrawn_at()) {
            (Some(at), _) => ("won", at),
            (None, at) => ("lost", at?),
        },
        "warning_closed" => ("won", dispute.reinstated_at()?),
        _ => return None,
    };
    let money = Money { count: dispute.amount, currency: &dispute.currency };
    let mut fact = money.fact("dispute.closed", &dispute.id, at);
    fact["outcome"] = json!(outcome);
    Some(named(of_payment(fact, dispute.payment_intent.as_deref()), payment))
}

/// An amount as the provider counts it.
struct Money<'a> {
    count: i64,
    currency: &'a str,
}

impl Money<'_> {
    fn fact(&self, kind: &str, reference: &str, at: i64) -> Value {
        let currency = self.currency.to_ascii_uppercase();
        let mut fact = fact(kind, reference, at);
        fact["providerReference"] = json!(reference);
        fact["amount"] = number(amounts::from_smallest(self.count, &currency));
        fact["currency"] = json!(currency);
        fact
    }
}

fn fact(kind: &str, reference: &str, at: i64) -> Value {
    let at = DateTime::from_timestamp(at, 0).unwrap_or_default();
    json!({
        "id": format!("{kind}/{reference}"),
        "kind": kind,
        "occurredAt": at.to_rfc3339_opts(SecondsFormat::Secs, true),
    })
}

/// Adds the payment that was given back or is disputed.
fn of_payment(mut fact: Value, intent: Option<&str>) -> Value {
    if let Some(intent) = intent {
        fact["originalReference"] = json!(intent);
    }
    fact
}

/// Adds the partner and the order that a payment of ours is noted with.
fn named(mut fact: Value, payment: &Metadata) -> Value {
    if let Some(partner) = &payment.partner {
        fact["partner"] = json!(partner);
    }
    if let Some(order) = payment.order.as_ref().and_then(|order| order.parse::<i64>().ok()) {
        fact["orderId"] = json!(order);
    }
    fact
}

/// A JSON number with these digits.
fn number(amount: Decimal) -> Value {
    amount.to_string().parse::<Number>().map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn intent(status: &str) -> Intent {
        let document = json!({"id": "pi_1", "status": status, "amount": 25_050, "currency": "eur",
            "created": 1_772_000_000, "canceled_at": 1_772_000_009,
            "latest_charge": {"created": 1_772_000_005},
            "metadata": {"order": "1742980455013377", "partner": "acme", "command": "c"}});
        Intent::deserialize(document).unwrap()
    }

    #[test]
    fn a_charge_is_a_payment_with_its_digits() {
        let fact = received(&intent("succeeded")).unwrap();
        let expected = json!({"id": "payment.received/pi_1", "kind": "payment.received",
            "occurredAt": "2026-02-25T06:13:25Z", "providerReference": "pi_1",
            "amount": "250.5".parse::<Number>().unwrap(), "currency": "EUR", "partner": "acme",
            "orderId": 1_742_980_455_013_377_i64});
        assert_eq!(fact, expected);
        for status in ["requires_payment_method", "requires_action", "processing", "canceled"] {
            assert!(received(&intent(status)).is_none(), "{status}");
        }
    }

    #[test]
    fn only_a_canceled_payment_has_failed() {
        let fact = failed(&intent("canceled")).unwrap();
        assert_eq!(
            (&fact["id"], &fact["reason"]),
            (&json!("payment.failed/pi_1"), &json!("canceled"))
        );
        // A refused card may be followed by another one.
        assert!(failed(&intent("requires_payment_method")).is_none());
    }

    #[test]
    fn a_refund_counts_once_it_has_succeeded() {
        let refund = |status: &str| {
            let document = json!({"id": "re_1", "status": status, "amount": 100, "currency": "jpy",
                "created": 1_772_000_000, "payment_intent": "pi_1", "metadata": {"command": "c-1"}});
            Refund::deserialize(document).unwrap()
        };
        let payment = intent("succeeded").metadata;
        let fact = refunded(&refund("succeeded"), &payment).unwrap();
        assert_eq!(
            (&fact["providerReference"], &fact["commandId"]),
            (&json!("re_1"), &json!("c-1"))
        );
        assert_eq!(fact["originalReference"], "pi_1");
        assert_eq!(fact["amount"].to_string(), "100");
        for status in ["pending", "requires_action", "failed", "canceled"] {
            assert!(refunded(&refund(status), &payment).is_none(), "{status}");
        }
        assert_eq!(refund_failed(&refund("failed")).unwrap()["kind"], "health");
        assert!(refund_failed(&refund("pending")).is_none());
    }

    #[test]
    fn a_dispute_takes_money_and_an_inquiry_does_not() {
        let dispute = |status: &str| {
            let document = json!({"id": "dp_1", "status": status, "amount": 25_050,
                "currency": "eur", "created": 1_772_000_000, "payment_intent": "pi_1",
                "reason": "fraudulent"});
            Dispute::deserialize(document).unwrap()
        };
        let payment = intent("succeeded").metadata;
        let opened = disputed(&dispute("needs_response"), &payment).unwrap();
        assert_eq!(
            (&opened["partner"], &opened["originalReference"]),
            (&json!("acme"), &json!("pi_1"))
        );
        for status in
            ["warning_needs_response", "warning_under_review", "warning_closed", "prevented"]
        {
            assert!(disputed(&dispute(status), &payment).is_none(), "{status}");
            assert!(dispute_closed(&dispute(status), &payment, Some(1)).is_none(), "{status}");
        }
        assert!(dispute_closed(&dispute("under_review"), &payment, Some(1)).is_none());
        assert!(dispute_closed(&dispute("lost"), &payment, None).is_none(), "nobody says when");
        let lost = dispute_closed(&dispute("lost"), &payment, Some(1_772_000_000)).unwrap();
        assert_eq!(
            (&lost["outcome"], &lost["id"]),
            (&json!("lost"), &json!("dispute.closed/dp_1"))
        );
        assert_eq!(lost["originalReference"], "pi_1");
    }

    #[test]
    fn a_dispute_that_was_prevented_or_an_inquiry_that_took_money_ends_by_its_money() {
        let withdrawn = json!({"amount": -25_050, "created": 1_772_000_005});
        let reinstated = json!({"amount": 25_050, "created": 1_772_000_009});
        let payment = intent("succeeded").metadata;
        for (status, moved, outcome, at) in [
            ("prevented", json!([withdrawn]), Some("lost"), "2026-02-25T06:13:25Z"),
            ("prevented", json!([withdrawn, reinstated]), Some("won"), "2026-02-25T06:13:29Z"),
            ("warning_closed", json!([withdrawn, reinstated]), Some("won"), "2026-02-25T06:13:29Z"),
            ("warning_closed", json!([withdrawn]), None, ""),
            ("warning_under_review", json!([withdrawn]), None, ""),
        ] {
            let document = json!({"id": "dp_1", "status": status, "amount": 25_050,
                "currency": "eur", "created": 1_772_000_000, "payment_intent": "pi_1",
                "balance_transactions": moved});
            let dispute = Dispute::deserialize(document).unwrap();
            let opened = disputed(&dispute, &payment).unwrap();
            assert_eq!(opened["id"], "payment.disputed/dp_1", "it was told, so it ends");
            // The same fact, whichever event shows it.
            for closed_at in [None, Some(1_772_000_100)] {
                let closed = dispute_closed(&dispute, &payment, closed_at);
                let told = closed.as_ref().map(|closed| closed["outcome"].as_str().unwrap());
                assert_eq!(told, outcome, "{status}");
                if let Some(closed) = closed {
                    assert_eq!(closed["occurredAt"], at, "{status}");
                    assert_eq!(closed["amount"], opened["amount"], "{status}");
                }
            }
        }
    }
}
