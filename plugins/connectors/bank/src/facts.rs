//! The meaning of a statement's lines, as events.
//!
//! An event's id is made of what the line says and of nothing else, and its reference is the one that
//! the edge's own reconciliation would give the line: however often and by whomever a statement is
//! read, a payment counts once. Names that earlier versions gave the line stand beside it.

use chrono::SecondsFormat;
use rampart_statement::{Line, stored_reference};
use rust_decimal::Decimal;
use serde_json::{Number, Value, json};

use crate::transfer::{Purpose, command_of};

/// Most earlier references that an edge reads. A batch may have thousands of them, more than an event
/// may be long.
const EARLIER_MAX: usize = 8;

/// The event of a line; `None` for what left the account without a command of ours, such as the
/// bank's fees, which a reconciliation lists.
pub(crate) fn fact(line: &Line) -> Option<Value> {
    let ours = command_of(&line.end_to_end_id);
    let is_return = !line.return_reason.is_empty();
    let mut event = match (line.amount > Decimal::ZERO, ours) {
        // A payer may write anything into the id of a transfer; that it came back, the bank says.
        (true, Some((Purpose::Sale, command))) if is_return => {
            let sent = &line.end_to_end_id;
            // Earlier versions gave each return of a transfer the transfer's own reference.
            json!({ "kind": "transfer.returned", "commandId": command,
                "providerReference": line.return_reference(), "originalReference": sent,
                "earlierReferences": [sent], "reason": line.return_reason })
        }
        (true, _) => {
            let mut event =
                json!({ "kind": "payment.received", "providerReference": line.provider_reference });
            if !line.earlier_references.is_empty() {
                let read = line.earlier_references.iter().take(EARLIER_MAX);
                event["earlierReferences"] = read.map(String::as_str).collect();
            }
            // What came back is nobody's new payment, though it may quote the order that it was sent
            // for: an operator looks at it.
            if let (false, Some(order)) = (is_return, line.order_digits()) {
                event["orderId"] = order.parse::<u64>().ok()?.into();
            }
            event
        }
        // A payment that its payer or the bank took back.
        (false, _) if is_return => return None,
        (false, Some((purpose, command))) => {
            let kind = match purpose {
                Purpose::Sale => "transfer.completed",
                Purpose::Refund => "payment.refunded",
            };
            json!({ "kind": kind, "commandId": command, "providerReference": line.end_to_end_id })
        }
        (false, None) => return None,
    };
    let kind = event["kind"].as_str().unwrap_or_default();
    let reference = event["providerReference"].as_str().unwrap_or_default();
    event["id"] = stored_reference(&format!("{kind}/{reference}")).into();
    let occurred_at = line.at()?.to_rfc3339_opts(SecondsFormat::Secs, true);
    event["occurredAt"] = occurred_at.into();
    event["amount"] = Value::Number(number(line.amount.abs())?);
    event["currency"] = line.currency.clone().into();
    event["statement"] = json!({ "reference": line.reference, "name": line.name,
        "iban": line.iban, "bankReference": line.provider_reference });
    Some(event)
}

/// A decimal as a JSON number, digit by digit.
fn number(amount: Decimal) -> Option<Number> {
    serde_json::from_str(&amount.normalize().to_string()).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use rampart_statement::NOT_PROVIDED;

    use super::*;
    use crate::transfer::end_to_end_id;
    use crate::transfer::tests::COMMAND;

    pub(crate) fn line(amount: i64) -> Line {
        Line {
            account: "NL02ABNA0123456789".to_owned(),
            date: "2026-03-01".parse().ok(),
            amount: Decimal::new(amount, 2),
            currency: "EUR".to_owned(),
            reference: "order 1742 9804 5501 3377".to_owned(),
            provider_reference: "bank-1".to_owned(),
            name: "Ada".to_owned(),
            iban: "NL58ABNA0000000001".to_owned(),
            ..Line::default()
        }
    }

    #[test]
    fn an_incoming_payment_names_its_order_and_the_banks_reference() {
        let event = fact(&line(25_010)).unwrap();
        assert_eq!(event["id"], "payment.received/bank-1");
        assert_eq!(event["orderId"], 1_742_980_455_013_377_u64);
        assert_eq!(event["occurredAt"], "2026-03-01T00:00:00Z");
        assert_eq!(event["amount"].to_string(), "250.1");
        let other = Line { reference: "lunch".to_owned(), ..line(100) };
        assert_eq!(fact(&other).unwrap()["orderId"], Value::Null);
    }

    #[test]
    fn the_id_of_an_event_is_bounded_as_its_reference_is() {
        let long = |end: &str| Line { provider_reference: "x".repeat(254) + end, ..line(100) };
        let [one, other] = ["1", "2"].map(|end| fact(&long(end)).unwrap()["id"].clone());
        assert_ne!(one, other);
        assert_eq!(one.as_str().unwrap().len(), 255);
    }

    #[test]
    fn an_incoming_payment_has_its_earlier_names() {
        assert_eq!(fact(&line(100)).unwrap()["earlierReferences"], Value::Null);
        for name in ["t", NOT_PROVIDED] {
            let named = Line { earlier_references: vec![name.to_owned()], ..line(100) };
            assert_eq!(fact(&named).unwrap()["earlierReferences"], json!([name]));
        }
        let names: Vec<String> = (0..10_000).map(|name| name.to_string()).collect();
        let batch = Line { earlier_references: names.clone(), ..line(100) };
        assert_eq!(fact(&batch).unwrap()["earlierReferences"], json!(names[..EARLIER_MAX]));
    }

    #[test]
    fn what_left_by_a_command_of_ours_has_completed() {
        let of = |purpose| Line { end_to_end_id: end_to_end_id(purpose, COMMAND), ..line(-9_310) };
        let sale = fact(&of(Purpose::Sale)).unwrap();
        assert_eq!(
            (&sale["kind"], &sale["commandId"]),
            (&json!("transfer.completed"), &json!(COMMAND))
        );
        assert_eq!(sale["amount"].to_string(), "93.1");
        let refund = fact(&of(Purpose::Refund)).unwrap();
        assert_eq!(refund["kind"], "payment.refunded");
        assert_eq!(refund["providerReference"], end_to_end_id(Purpose::Refund, COMMAND));
        assert_eq!(fact(&line(-500)), None, "the bank's own fees");
    }

    #[test]
    fn each_return_of_a_transfer_is_an_event_of_its_own() {
        let sent = end_to_end_id(Purpose::Sale, COMMAND);
        // The bank gives no name of its own, but tells the one that the transfer had.
        let back = |amount: i64, day: &str| Line {
            date: day.parse().ok(),
            end_to_end_id: sent.clone(),
            provider_reference: sent.clone(),
            return_reason: "AC04".to_owned(),
            ..line(amount)
        };
        let event = |line: Line| fact(&line).unwrap();
        let first = event(back(6_000, "2026-03-01"));
        assert_eq!(first, event(back(6_000, "2026-03-01")), "read again");
        for other in [back(500, "2026-03-01"), back(6_000, "2026-03-02")].map(event) {
            assert_ne!(other["id"], first["id"]);
            assert_ne!(other["providerReference"], first["providerReference"]);
            assert_eq!(other["originalReference"], first["originalReference"]);
        }
        assert_eq!(first["earlierReferences"], json!([sent]));
    }

    #[test]
    fn only_the_bank_says_that_a_transfer_came_back() {
        let sent_by_a_payer =
            Line { end_to_end_id: end_to_end_id(Purpose::Sale, COMMAND), ..line(9_310) };
        assert_eq!(fact(&sent_by_a_payer).unwrap()["kind"], "payment.received");
        let returned = Line { return_reason: "AC04".to_owned(), ..sent_by_a_payer };
        let event = fact(&returned).unwrap();
        assert_eq!(
            (&event["kind"], &event["reason"]),
            (&json!("transfer.returned"), &json!("AC04"))
        );
        assert_eq!(event["commandId"], COMMAND);
        assert_eq!(event["providerReference"], "bank-1/2026-03-01/93.1");
        assert_eq!(event["originalReference"], end_to_end_id(Purpose::Sale, COMMAND));
        let refund = Line { end_to_end_id: end_to_end_id(Purpose::Refund, COMMAND), ..returned };
        let event = fact(&refund).unwrap();
        assert_eq!((&event["kind"], &event["orderId"]), (&json!("payment.received"), &Value::Null));
        let unnamed = Line { return_reason: "AC04".to_owned(), ..line(9_310) };
        let event = fact(&unnamed).unwrap();
        assert_eq!((&event["kind"], &event["orderId"]), (&json!("payment.received"), &Value::Null));
        let taken_back = Line { return_reason: "reversal".to_owned(), ..line(-100) };
        assert_eq!(fact(&taken_back), None);
    }
}
