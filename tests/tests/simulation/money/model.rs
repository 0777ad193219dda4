//! The books and the orders as the facts say that they must be: an account of its own, which knows the
//! outside (`truth`) and no production code.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use uuid::Uuid;

use super::books::{Books, Order, Payment, Place};
use super::truth::{FactName, Fate, Outgoing, Truth};

/// Everything that is wrong, an order or a payment each.
pub(crate) fn problems(books: &Books, truth: &Truth) -> Vec<String> {
    let mut found = truth.violations.clone();
    found.extend(books.unbalanced.iter().map(|entry| format!("entry {entry} does not balance")));
    found.extend(books.debits(&["refund_payable"]));
    found.extend(facts(books, truth));
    found.extend(books.payments.iter().filter_map(booked));
    found.extend(books.payments.iter().filter_map(|payment| confirmed(books, payment)));
    found.extend(holdings(books, truth));
    for order in &books.orders {
        let of: Vec<&Payment> =
            books.payments.iter().filter(|p| place(p).1 == Some(order.order_id)).collect();
        found.extend(
            state(books, order, &of, truth)
                .map(|problem| format!("order {} ({}): {problem}", order.order_id, order.status)),
        );
    }
    found
}

/// The place that a payment counts for: its own, or where it was matched to.
fn place(payment: &Payment) -> Place {
    match payment.to_client_id {
        Some(client) => (client, payment.to_order_id),
        None => (payment.client_id, payment.order_id),
    }
}

/// Every accepted fact is there exactly once, and nothing else is.
fn facts(books: &Books, truth: &Truth) -> Vec<String> {
    let mut found = Vec::new();
    let mut stored = BTreeMap::<FactName, Vec<(Decimal, &String)>>::new();
    for payment in &books.payments {
        let Payment { connector, kind, provider_reference, payment_id, .. } = payment;
        // What an operator's event of the order tells has no name.
        if *provider_reference == payment_id.to_string() {
            continue;
        }
        let by_hand = provider_reference.starts_with("byhand-")
            || provider_reference.starts_with("handback-");
        if connector != "manual" || by_hand {
            let name = (connector.clone(), kind.clone(), provider_reference.clone());
            stored.entry(name).or_default().push((payment.amount, &payment.currency));
        }
    }
    for told in &books.confirmations {
        let (by, reference) = (told.connector.clone(), told.provider_reference.clone());
        let name = (by, "refunded".to_owned(), reference);
        let stored = stored.entry(name).or_default();
        match stored.first_mut() {
            // The rest of what it confirms is a payment of the same name.
            Some((amount, _)) => *amount += told.amount,
            None => stored.push((told.amount, &told.currency)),
        }
    }
    for (name, told) in &truth.facts {
        match stored.remove(name).as_deref() {
            None => found.push(format!("{name:?} was told, and is no payment")),
            Some([(of, money)]) => {
                let is_told = |(amount, currency): &(Decimal, String)| {
                    // Without an amount it is the order's.
                    (amount == of || amount.is_zero())
                        && (currency.is_empty() || currency == *money)
                };
                if !told.iter().any(is_told) {
                    found.push(format!("{name:?} is {of} {money}"));
                }
            }
            Some(all) => found.push(format!("{name:?} is {} payments", all.len())),
        }
    }
    found.extend(stored.keys().map(|name| format!("{name:?} is a payment, and was never told")));
    found
}

/// The entry of a payment that moves what we hold, whatever its order.
fn booked(payment: &Payment) -> Option<String> {
    let moved = match payment.kind.as_str() {
        "received" | "deposit-received" | "dispute-won" => payment.amount,
        "refunded" | "disputed" => -payment.amount,
        _ => return None,
    };
    if payment.entries != 1 || payment.moved != moved {
        let Payment { payment_id, kind, entries, moved, .. } = payment;
        return Some(format!("{kind} {payment_id}: {entries} entries moved {moved}"));
    }
    (payment.refunds > payment.amount)
        .then(|| format!("{}: more is given back than came", payment.payment_id))
}

/// Providers have confirmed no more of a refund by hand than was booked.
fn confirmed(books: &Books, payment: &Payment) -> Option<String> {
    let told = books.confirmations.iter().filter(|told| told.payment_id == payment.payment_id);
    let told = told.map(|told| told.amount).sum::<Decimal>();
    let Payment { payment_id, kind, amount, .. } = payment;
    (told > *amount).then(|| format!("{kind} {payment_id}: {told} of {amount} is confirmed"))
}

/// Compares our holdings with the facts, for each order and for what has none.
fn holdings(books: &Books, truth: &Truth) -> Vec<String> {
    let orders: BTreeMap<i64, Uuid> =
        books.orders.iter().map(|order| (order.order_id, order.client_id)).collect();
    let mut expected = BTreeMap::<(Place, String), Decimal>::new();
    let mut add = |place: Place, currency: &str, amount: Decimal| {
        // An order of somebody else is none.
        let known = place.1.filter(|order| orders.get(order) == Some(&place.0));
        *expected.entry(((place.0, known), currency.to_owned())).or_default() += amount;
    };
    for payment in &books.payments {
        let amount = match payment.kind.as_str() {
            "received" | "deposit-received" | "dispute-won" => payment.amount,
            "refunded" | "disputed" => -payment.amount,
            _ => continue,
        };
        add(place(payment), &payment.currency, amount);
    }
    for outgoing in truth.outgoing.values().filter(|outgoing| outgoing.is_booked()) {
        let Some(client) = orders.get(&outgoing.order) else { continue };
        add((*client, Some(outgoing.order)), &outgoing.currency, -outgoing.amount);
    }
    expected.retain(|_, amount| !amount.is_zero());
    let mut held = books.holdings();
    held.retain(|_, amount| !amount.is_zero());
    let places: BTreeSet<_> = expected.keys().chain(held.keys()).cloned().collect();
    let mut found = Vec::new();
    for key in places {
        let ((_, order), currency) = &key;
        if order.is_some_and(|order| books.taken_back.contains(&order)) {
            continue;
        }
        let amount = |of: &BTreeMap<_, Decimal>| of.get(&key).copied().unwrap_or_default();
        let (facts, books) = (amount(&expected), amount(&held));
        if facts != books {
            let order = order.map_or("no order".to_owned(), |order| format!("order {order}"));
            found.push(format!("{order}: the facts say {facts} {currency}, the books {books}"));
        }
    }
    found
}

/// The first thing for which an order is not as its facts want it.
fn state(books: &Books, order: &Order, facts: &[&Payment], truth: &Truth) -> Option<&'static str> {
    let place = (order.client_id, Some(order.order_id));
    let is_wanted = |payment: &&&Payment| {
        matches!(payment.kind.as_str(), "received" | "deposit-received")
            && (!payment.suspense || payment.to_order_id.is_some())
    };
    let wanted = facts.iter().filter(is_wanted).count();
    let is_paid = !matches!(order.status.as_str(), "pending" | "cancelled");
    if wanted > 1 {
        return Some("two payments were what it waited for");
    }
    if is_paid != (wanted == 1) {
        return Some("its state and its payment disagree");
    }
    let converted = books.sum(place, "conversion", &order.asset);
    let is_executed = !converted.is_zero();
    if is_executed && converted != order.coins {
        return Some("another amount was exchanged than its own");
    }
    let received = facts.iter().filter(is_wanted).map(|payment| payment.amount).sum::<Decimal>();
    let given_back = facts.iter().any(|fact| fact.kind == "refunded" || !fact.refunds.is_zero());
    if is_executed && (received < order.due || received != order.due && !given_back) {
        return Some("it was exchanged for another amount than arrived");
    }
    let commanded = truth.outgoing.values().filter(|one| {
        one.order == order.order_id && one.command.is_some() && one.fate != Fate::Failed
    });
    let commanded = commanded.map(|one| one.amount).sum::<Decimal>();
    if commanded > books.payout_max(order.order_id) {
        return Some("more was sent by command than it was to pay out");
    }
    let (payable, customer) = (
        books.sum(place, "payout_payable", &order.gets),
        books.sum(place, "customer", &order.pays),
    );
    if payable > Decimal::ZERO || payable < -order.payout || (!is_executed && !payable.is_zero()) {
        return Some("its payout is owed wrongly");
    }
    if customer > Decimal::ZERO {
        return Some("its user owes us");
    }
    let arrived = |one: &&Outgoing| {
        let is_of = one.order == order.order_id && one.currency == order.gets;
        is_of && one.told_arrived && !one.told_failed
    };
    let arrived = truth.outgoing.values().filter(arrived).map(|one| one.amount).sum::<Decimal>();
    let has_arrived = arrived >= order.payout;
    match order.status.as_str() {
        "completed" if !(is_executed && payable.is_zero()) => Some("its payout is not sent"),
        "refunded" if is_executed || !customer.is_zero() => Some("its payment is still with us"),
        "in progress" if !is_executed => Some("it is paid, and not exchanged"),
        "in progress" if payable.is_zero() && has_arrived => Some("all of it has arrived"),
        "pending" | "cancelled" if is_executed => Some("it was exchanged"),
        _ => None,
    }
}

/// Orders that have not ended although everybody has done what they should: nothing but an operator
/// is waited for.
pub(crate) fn unfinished(books: &Books, truth: &Truth) -> Vec<String> {
    let by_hand: BTreeSet<i64> =
        truth.outgoing.values().filter(|one| one.command.is_none()).map(|one| one.order).collect();
    let waits = |order: &&Order| match order.status.as_str() {
        "pending" => true,
        // Who sends by hand has to end it by hand.
        "in progress" => !by_hand.contains(&order.order_id),
        _ => false,
    };
    let unfinished = books.orders.iter().filter(waits);
    unfinished.map(|order| format!("order {} stays {}", order.order_id, order.status)).collect()
}
