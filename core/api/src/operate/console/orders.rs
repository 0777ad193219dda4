//! Orders: the search, and one order with everything that is known of it.

use maud::{Markup, html};
use serde_json::Value;

use super::action::{Action, Call, Subject, Verb, outcome};
use super::decisions::decisions;
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table, with_actions};
use super::lists::{self, DELIVERY, ENTRIES};
use super::payments::LIST as PAYMENT_LIST;
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, segment};
use crate::auth::roles::Role;
use crate::http::html::components::{Fact, timeline};

const SECTION: &str = "/console/orders";
const CALL: &str = "/admin/v1/orders/{id}";
const EVENTS: Call = Verb::Post.call("/admin/v1/orders/{id}/events");
const STATUSES: &[(&str, &str)] = &[
    ("pending", "pending"),
    ("in progress", "in progress"),
    ("blocked", "blocked"),
    ("completed", "completed"),
    ("cancelled", "cancelled"),
    ("refunded", "refunded"),
];

/// The search for orders.
pub(super) const LIST: List = List {
    title: "Orders",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/orders",
    criteria: &[
        Input::new("status", "Status").kind(Kind::Choice(STATUSES)),
        Input::new("side", "Side").kind(Kind::Choice(&[("buy", "buy"), ("sell", "sell")])),
        Input::new("partner", "Partner"),
        Input::new("partnerOrderIdentifier", "Partner's reference"),
        Input::new("walletAddress", "Wallet address"),
        Input::new("transactionId", "Transaction"),
        Input::new("from", "From (UTC, such as 2026-03-01T00:00:00Z)"),
        Input::new("to", "To (UTC)"),
    ],
    columns: &[
        ("Order", Cell::Link("/console/orders/", "/id")),
        ("Status", Cell::Badge("/status")),
        ("Side", Cell::Text("/side")),
        ("Partner", Cell::Link("/console/partners/", "/partner")),
        ("Pair", Cell::Text("/currencyPair")),
        ("Amount", Cell::Money("/fiatAmount/amount", "/fiatAmount/currencyCode")),
        ("Partner's reference", Cell::Text("/partnerOrderIdentifier")),
        ("Made", Cell::Time("/date")),
    ],
    empty: "No order meets these criteria.",
};

const FACTS: &[(&str, Cell)] = &[
    ("Status", Cell::Badge("/status")),
    ("Side", Cell::Text("/side")),
    ("Partner", Cell::Link("/console/partners/", "/partner")),
    ("User", Cell::Link("/console/users/", "/userId")),
    ("Fiat", Cell::Money("/fiatAmount", "/fiatCurrency")),
    ("Coins", Cell::Money("/cryptoAmount", "/cryptoCurrency")),
    ("Paid", Cell::Money("/paidAmount", "/fiatCurrency")),
    ("Wallet", Cell::Address("/walletAddress")),
];
const DETAILS: &[(&str, Cell)] = &[
    ("Pair", Cell::Text("/pair")),
    ("Payment method", Cell::Text("/paymentMethod")),
    ("Partner's reference", Cell::Text("/partnerReference")),
    ("Wallet type", Cell::Text("/walletType")),
    ("Destination tag", Cell::Text("/destinationTag")),
    ("Transaction", Cell::Address("/transactionId")),
    ("Reason", Cell::Text("/statusReason")),
    ("Made", Cell::Time("/createdAt")),
    ("Expires", Cell::Time("/expiresAt")),
];
/// The identity of fees: what was paid is what bought coins, and what everybody got.
const PRICE: &[(&str, Cell)] = &[
    ("Quote", Cell::Text("/quoteId")),
    ("Price", Cell::Money("/price", "/fiatCurrency")),
    ("Paid or received", Cell::Money("/fiatAmount", "/fiatCurrency")),
    ("Partner's fee", Cell::Money("/partnerFee", "/fiatCurrency")),
    ("Provider's fee", Cell::Money("/providerFee", "/fiatCurrency")),
    ("Payment method's fee", Cell::Money("/paymentMethodFee", "/fiatCurrency")),
    ("Network's fee", Cell::Money("/networkFee", "/fiatCurrency")),
    ("Spread", Cell::Money("/spreadFee", "/fiatCurrency")),
    ("Affiliate's fee", Cell::Money("/affiliateFee", "/fiatCurrency")),
    ("Coins", Cell::Money("/cryptoAmount", "/cryptoCurrency")),
    ("Estimated", Cell::Text("/isEstimatedQuote")),
];
const BUY: &[(&str, &str)] = &[("/side", "buy")];
const SELL: &[(&str, &str)] = &[("/side", "sell")];
/// A purchase whose wallet can be proven to be the user's, and is not yet.
const UNPROVEN: &[(&str, &str)] =
    &[("/side", "buy"), ("/walletType", "unhosted"), ("/walletProvenAt", "")];
const OPTIONAL_REASON: Input = Input { required: false, ..Input::REASON };

pub(super) const ORDER: Subject = Subject {
    name: "order",
    section: SECTION,
    page: "/console/orders/{id}",
    read: CALL,
    facts: FACTS,
    actions: &[
        Action::new("hold", "Hold", EVENTS, "The order waits, and nothing is sent, until it is released or refunded. Its partner is told that it is blocked, not why.")
            .with(&[Input::REASON]).fixed(&[("event", "hold")]).when(&["in progress"]),
        Action::new("release", "Release", EVENTS, "The order goes on: coins or money leave as soon as nothing else holds them.")
            .with(&[Input::REASON]).fixed(&[("event", "release")]).when(&["blocked"]),
        Action::new("refund", "Refund", EVENTS, "The order ends as refunded, for good. Give the payment itself back as well, if no connector does.")
            .with(&[Input::REASON]).fixed(&[("event", "refund")]).destructive().when(&["in progress", "blocked"]),
        Action::new("cancel", "Cancel", EVENTS, "The order ends, for good; a payment that comes later goes into suspense.")
            .with(&[Input::REASON]).fixed(&[("event", "cancel")]).destructive().when(&["pending"]),
        Action::new("payment-received", "Payment received", EVENTS, "The order goes on as if a connector had reported its payment. Above the limit of one operator a second one must agree.")
            .with(&[
                Input::new("amount", "Amount").kind(Kind::Decimal).hint("The exact one of the order if left out."),
                Input::new("reference", "Reference").hint("The bank's or the chain's own name for the payment."),
            ])
            .fixed(&[("event", "payment-received")]).of_role(Role::Treasury).when(&["pending"]),
        Action::new("payment-denied", "Payment denied", EVENTS, "The order ends as cancelled, for good.")
            .with(&[OPTIONAL_REASON]).fixed(&[("event", "payment-denied")]).destructive().having(BUY).when(&["pending"]),
        Action::new("coins-sent", "Coins sent", EVENTS, "The order counts as sent by hand. Coins that leave twice are lost. Above the limit of one operator a second one must agree.")
            .with(&[Input::new("transactionId", "Transaction on chain").required()])
            .fixed(&[("event", "coins-sent")]).of_role(Role::Treasury).destructive().having(BUY).when(&["in progress"]),
        Action::new("confirmed-on-chain", "Confirmed on chain", EVENTS, "The order ends as completed. Above the limit of one operator a second one must agree.")
            .fixed(&[("event", "confirmed-on-chain")]).of_role(Role::Treasury).having(BUY).when(&["in progress"]),
        Action::new("paid-out", "Paid out", EVENTS, "A sale ends as completed: its seller has the money. Above the limit of one operator a second one must agree.")
            .fixed(&[("event", "paid-out")]).of_role(Role::Treasury).having(SELL).when(&["in progress"]),
        Action::new("prove-wallet", "Accept proof of the wallet", Verb::Post.call("/admin/v1/orders/{id}/wallet-proof"), "The wallet counts as the user's. The coins leave at once unless something else holds them.")
            .with(&[Input::REASON]).having(UNPROVEN).when(&["pending", "in progress", "blocked"]),
        Action::new("replay", "Replay policy decisions", Verb::Post.call("/admin/v1/orders/{id}/replay"), "Runs the policies again on what was recorded, and compares. Nothing changes.")
            .answering(),
    ],
};

const PAYMENTS: &[(&str, Cell)] = &[
    ("Recorded", Cell::Time("/recordedAt")),
    ("Payment", Cell::Link("/console/payments/", "/id")),
    ("Kind", Cell::Text("/kind")),
    ("Amount", Cell::Money("/amount", "/currency")),
    ("State", Cell::Badge("/state")),
    ("By", Cell::Text("/actor")),
];
const DELIVERIES: &[(&str, Cell)] = &[
    ("Delivery", Cell::Link("/console/deliveries/", "/id")),
    ("Event", Cell::Text("/type")),
    ("State", Cell::Badge("/state")),
    ("Attempts", Cell::Text("/attempts")),
    ("Last status", Cell::Text("/lastStatus")),
    ("Last error", Cell::Text("/lastError")),
    ("Made", Cell::Time("/createdAt")),
];

/// The page of an order.
pub(super) async fn show(visit: &Visit<'_>, id: &str, query: &Typed) -> Result<Page, Refused> {
    let ids = [id.to_owned()];
    let order = visit.get(&format!("/admin/v1/orders/{}", segment(id))).await?;
    let of_order = format!("order={}", text(&order, "/id"));
    let (payments, more_payments) = known(visit, &PAYMENT_LIST, &of_order).await?;
    let (entries, more_entries) = known(visit, &ENTRIES, &of_order).await?;
    let (deliveries, more_deliveries) = known(visit, &lists::DELIVERIES, &of_order).await?;
    let decided = ["order.event", "order.wallet-proof"];
    let decided = decisions(visit, &text(&order, "/id"), &decided).await?;
    let body = html! {
        (outcome(query, ORDER.actions))
        (facts(visit, &order, FACTS))
        (ORDER.actions(visit, &ids, &order))
        h2 { "What happened" }
        (timeline(&steps(&order, &payments)))
        @if more_payments.is_some() { p.hint { "Older payments are left out here." } }
        (decided)
        h2 { "Terms" }
        (facts(visit, &order, DETAILS))
        h2 { "Price and fees" }
        (facts(visit, &order, PRICE))
        (policy_decisions(visit, &order))
        (titled_table(visit, "Payments", &payments, PAYMENTS))
        (PAYMENT_LIST.more(&[], more_payments.as_deref(), "payments"))
        (money_path(visit, &entries))
        (ENTRIES.more(&[], more_entries.as_deref(), "entries"))
        (with_actions(visit, &DELIVERY, &[], "Deliveries to the partner", DELIVERIES, &deliveries))
        (lists::DELIVERIES.more(&[], more_deliveries.as_deref(), "deliveries"))
    };
    Ok(Page::new(format!("Order {id}"), SECTION, body))
}

/// The rows of a list that meet a criterion, and the query of the next ones; none where the operator's
/// role does not see them.
async fn known(
    visit: &Visit<'_>,
    list: &List,
    query: &str,
) -> Result<(Vec<Value>, Option<String>), Refused> {
    match visit.rows(&format!("{}?{query}", list.call)).await {
        Err(refused) if refused.status == http::StatusCode::FORBIDDEN => Ok((Vec::new(), None)),
        rows => rows,
    }
}

/// Changes of the order's state and its payments, in the order in which they happened.
fn steps(order: &Value, payments: &[Value]) -> Vec<Fact> {
    let changes = order["timeline"].as_array().into_iter().flatten().filter_map(|step| {
        let to = text(step, "/to");
        let detail = [text(step, "/cause"), text(step, "/reason"), text(step, "/actor")];
        let detail = detail.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        Some(Fact {
            at: text(step, "/at").parse().ok()?,
            title: to,
            detail: Some(detail.join(" · ")),
        })
    });
    let paid = payments.iter().filter_map(|payment| {
        let amount = Cell::Money("/amount", "/currency").text(payment);
        Some(Fact {
            at: text(payment, "/occurredAt").parse().ok()?,
            title: format!("{} {amount}", text(payment, "/kind")),
            detail: Some(format!("{} · {}", text(payment, "/connector"), text(payment, "/actor"))),
        })
    });
    let mut steps: Vec<Fact> = changes.chain(paid).collect();
    steps.sort_by_key(|step| step.at);
    steps
}

/// The decisions of policies that had a say.
fn policy_decisions(visit: &Visit<'_>, order: &Value) -> Markup {
    let columns = &[
        ("Policy", Cell::Text("/kind")),
        ("Version", Cell::Text("/version")),
        ("Rule", Cell::Text("/rule")),
        ("Fuel", Cell::Text("/fuel")),
        ("Component", Cell::Address("/digest")),
    ];
    let rows = order["policyDecisions"].as_array().cloned().unwrap_or_default();
    titled_table(visit, "Policy decisions", &rows, columns)
}

/// The order's entries in the books: each posting in a row.
fn money_path(visit: &Visit<'_>, entries: &[Value]) -> Markup {
    let postings = entries.iter().flat_map(|entry| {
        let postings = entry["postings"].as_array().into_iter().flatten();
        postings.map(move |posting| {
            let mut row = posting.clone();
            row["entry"] = entry["kind"].clone();
            row["occurredAt"] = entry["occurredAt"].clone();
            row
        })
    });
    let columns = &[
        ("When", Cell::Time("/occurredAt")),
        ("Entry", Cell::Text("/entry")),
        ("Account", Cell::Text("/kind")),
        ("Holder", Cell::Text("/holder")),
        ("Amount", Cell::Money("/amount", "/currency")),
    ];
    titled_table(visit, "Path through the books", &postings.collect::<Vec<_>>(), columns)
}
