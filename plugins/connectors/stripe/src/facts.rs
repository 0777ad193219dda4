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

/// The report that an event was passed over, because its object cannot be read.
pub(crate) fn passed_over(event: &Event, cause: &str) -> Value {
    let mut report = fact("health", &format!("event/{}", event.id), event.created);
    report["outcome"] = json!("event passed over");
    report["reason"] = json!(cause);
    report["providerReference"] = json!(event.id);
    report
}

/// The fact that a payment is disputed. `None` for a dispute that has taken no money: it may end
/// without any, and nothing would end what was told.
pub(crate) fn disputed(dispute: &Dispute, payment: &Metadata) -> Option<Value> {
    let money = Money { count: dispute.amount, currency: &dispute.currency };
    (dispute.withdrawn().is_some() || dispute.status == "lost").then(|| {
        let mut fact = money.fact("payment.disputed", &dispute.id, dispute.created);
        fact["reason"] = json!(dispute.reason.as_deref().unwrap_or("unknown"));
        named(of_payment(fact, dispute.payment_intent.as_deref()), payment)
    })
}

/// The fact that a dispute has ended; `None` for one that has not, or has taken no money. Money
/// that has come back wins it, whatever was told of it before: the fact's id names the end. Without
/// that, only the event of the end says when it was won or lost: `closed_at`, in seconds since 1970.
pub(crate) fn dispute_closed(
    dispute: &Dispute,
    payment: &Metadata,
    closed_at: Option<i64>,
) -> Option<Value> {
    let (end, outcome, at) = match (&*dispute.status, dispute.withdrawn(), dispute.reinstated()) {
        (_, Some(_), Some(back)) => (back.id, "won", back.at),
        ("won", Some(_), None) => ("won", "won", closed_at?),
        ("lost", ..) => ("lost", "lost", closed_at?),
        // The payer has the money back without a formal dispute.
        ("prevented", Some(taken), None) => ("lost", "lost", taken.at),
        _ => return None,
    };
    let money = Money { count: dispute.amount, currency: &dispute.currency };
    let mut fact = money.fact("dispute.closed", &dispute.id, at);
    fact["id"] = json!(format!("dispute.closed/{}/{end}", dispute.id));
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

    /// A dispute of 250.50 that was made at 1772000000, with movements of its money.
    fn dispute(status: &str, moved: &Value) -> Dispute {
        let document = json!({"id": "dp_1", "status": status, "amount": 25_050,
            "currency": "eur", "created": 1_772_000_000, "payment_intent": "pi_1",
            "reason": "fraudulent", "balance_transactions": moved});
        Dispute::deserialize(document).unwrap()
    }

    fn withdrawn() -> Value {
        json!({"id": "txn_1", "amount": -25_050, "created": 1_772_000_005})
    }

    fn reinstated() -> Value {
        json!({"id": "txn_2", "amount": 25_050, "created": 1_772_000_009})
    }

    #[test]
    fn a_dispute_is_told_once_it_has_taken_money() {
        let payment = intent("succeeded").metadata;
        let taken = json!([withdrawn()]);
        let opened = disputed(&dispute("needs_response", &taken), &payment).unwrap();
        assert_eq!(
            (&opened["id"], &opened["partner"], &opened["originalReference"]),
            (&json!("payment.disputed/dp_1"), &json!("acme"), &json!("pi_1"))
        );
        for status in [
            "needs_response",
            "under_review",
            "won",
            "warning_needs_response",
            "warning_under_review",
            "warning_closed",
            "prevented",
        ] {
            let without = dispute(status, &json!([]));
            assert!(disputed(&without, &payment).is_none(), "{status}: it may take none");
            assert!(dispute_closed(&without, &payment, Some(1)).is_none(), "{status}");
        }
        let lost = dispute("lost", &json!([]));
        assert_eq!(disputed(&lost, &payment).unwrap()["id"], opened["id"]);
        assert!(dispute_closed(&lost, &payment, Some(1)).is_some(), "it is gone for sure");
    }

    #[test]
    fn a_dispute_ends_by_its_money() {
        let payment = intent("succeeded").metadata;
        let (taken, back) = (json!([withdrawn()]), json!([withdrawn(), reinstated()]));
        let (closed_at, at_taking) = (Some(1_772_000_100), "2026-02-25T06:13:25Z");
        let (at_end, at_return) = ("2026-02-25T06:15:00Z", "2026-02-25T06:13:29Z");
        for (status, moved, end) in [
            ("lost", &taken, Some(("lost", "lost", at_end))),
            // Of the return nothing may be listed yet.
            ("won", &taken, Some(("won", "won", at_end))),
            ("prevented", &taken, Some(("lost", "lost", at_taking))),
            ("warning_closed", &taken, None),
            ("under_review", &taken, None),
            ("lost", &back, Some(("txn_2", "won", at_return))),
            ("won", &back, Some(("txn_2", "won", at_return))),
            ("prevented", &back, Some(("txn_2", "won", at_return))),
            ("warning_closed", &back, Some(("txn_2", "won", at_return))),
        ] {
            let dispute = dispute(status, moved);
            let opened = disputed(&dispute, &payment).unwrap();
            let closed = dispute_closed(&dispute, &payment, closed_at);
            let Some((name, outcome, at)) = end else {
                assert!(closed.is_none(), "{status}");
                continue;
            };
            let closed = closed.unwrap();
            assert_eq!(closed["id"], json!(format!("dispute.closed/dp_1/{name}")), "{status}");
            assert_eq!((&closed["outcome"], &closed["occurredAt"]), (&json!(outcome), &json!(at)));
            for member in ["amount", "currency", "providerReference", "originalReference"] {
                assert_eq!(closed[member], opened[member], "{status}: {member}");
            }
            // What its money tells is the same fact, whichever event shows it.
            let by_other = dispute_closed(&dispute, &payment, None);
            assert_eq!(by_other, (at != at_end).then_some(closed), "{status}");
        }
    }

    #[test]
    fn ends_of_a_dispute_are_facts_of_their_own() {
        let payment = intent("succeeded").metadata;
        let (taken, back) = (json!([withdrawn()]), json!([withdrawn(), reinstated()]));
        for status in ["lost", "prevented"] {
            let told = [&taken, &back].map(|moved| {
                dispute_closed(&dispute(status, moved), &payment, Some(1_772_000_100)).unwrap()
            });
            assert_eq!((&told[0]["outcome"], &told[1]["outcome"]), (&json!("lost"), &json!("won")));
            assert_ne!(told[0]["id"], told[1]["id"], "an edge takes both");
        }
    }
}
