//! Payments: the search, one payment with suggestions of its order, and what operators do with it.

use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, segment};
use crate::http::html::components::{Tone, note};

const SECTION: &str = "/console/payments";
const KINDS: &[(&str, &str)] = &[
    ("received", "received: money from a buyer"),
    ("refunded", "refunded: money back to a buyer"),
    ("disputed", "disputed: taken back by a buyer's bank"),
    ("dispute-won", "dispute-won: it has come back"),
    ("dispute-lost", "dispute-lost: it is gone"),
    ("deposit-received", "deposit-received: coins from a seller"),
    ("payout-sent", "payout-sent: coins to a buyer"),
    ("payout-confirmed", "payout-confirmed: they have arrived"),
    ("payout-failed", "payout-failed: they have not"),
    ("transfer-sent", "transfer-sent: money to a seller"),
    ("transfer-completed", "transfer-completed: it has arrived"),
    ("transfer-returned", "transfer-returned: it came back"),
];

/// The search for payments.
pub(super) const LIST: List = List {
    title: "Payments",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/payments",
    criteria: &[
        Input::new("state", "State").kind(Kind::Choice(&[
            ("suspense", "suspense: its order does not want it"),
            ("unmatched", "unmatched: it has no order"),
            ("matched", "matched"),
        ])),
        Input::new("partner", "Partner").hint("house for nobody's"),
        Input::new("order", "Order"),
    ],
    columns: &[
        ("Recorded", Cell::Time("/recordedAt")),
        ("Payment", Cell::Link("/console/payments/", "/id")),
        ("State", Cell::Badge("/state")),
        ("Kind", Cell::Text("/kind")),
        ("Amount", Cell::Money("/amount", "/currency")),
        ("Partner", Cell::Text("/partner")),
        ("Order", Cell::Link("/console/orders/", "/orderId")),
        ("Reference", Cell::Text("/providerReference")),
        ("Connector", Cell::Text("/connector")),
    ],
    empty: "No payment meets these criteria.",
};

/// Actions that need no payment yet.
pub(super) const PAYMENTS: Subject = Subject {
    name: "payment",
    section: SECTION,
    page: "/console/payments/~",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "record", "Record a payment by hand",
        Verb::Post.call("/admin/v1/payments"),
        "It is booked, and its order follows, as if a connector had reported it. Above the limit of \
         one operator a second one must agree.",
    )
    .with(&[
        Input::new("kind", "Kind").kind(Kind::Choice(KINDS)).required(),
        Input::new("amount", "Amount").kind(Kind::Decimal).required(),
        Input::new("currency", "Currency or asset").required(),
        Input::new("providerReference", "The bank's or the chain's own name for it").required(),
        Input::new("orderId", "Order"),
        Input::new("partner", "Partner").hint("The order's if left out, or nobody's."),
        Input::REASON,
    ])],
};

const FACTS: &[(&str, Cell)] = &[
    ("State", Cell::Badge("/state")),
    ("Kind", Cell::Text("/kind")),
    ("Amount", Cell::Money("/amount", "/currency")),
    ("Refund asked for", Cell::Money("/refundRequested", "/currency")),
    ("Left to be given back", Cell::Money("/refundable", "/currency")),
    ("Partner", Cell::Text("/partner")),
    ("Order", Cell::Link("/console/orders/", "/orderId")),
    ("Connector", Cell::Text("/connector")),
    ("Reference", Cell::Text("/providerReference")),
    ("By", Cell::Text("/actor")),
    ("Reason", Cell::Text("/reason")),
    ("Happened", Cell::Time("/occurredAt")),
    ("Recorded", Cell::Time("/recordedAt")),
];

pub(super) const PAYMENT: Subject = Subject {
    name: "payment",
    section: SECTION,
    page: "/console/payments/{id}",
    read: "/admin/v1/payments/{id}",
    facts: FACTS,
    actions: &[
        Action::new(
            "match", "Match to an order",
            Verb::Post.call("/admin/v1/payments/{id}/match"),
            "The order goes on as if the payment had named it. This cannot be taken back. Above the \
             limit of one operator, and for coins, a second one must agree.",
        )
        .with(&[Input::new("orderId", "Order").kind(Kind::Integer).required()])
        .when(&["suspense", "unmatched"]),
        Action::new(
            "refund", "Refund",
            Verb::Post.call("/admin/v1/payments/{id}/refund"),
            "The payment is given back by its connector, and its order waits for that. Above the \
             limit of one operator, and for coins, a second one must agree.",
        )
        .with(&[
            Input::new("amount", "Amount")
                .kind(Kind::Decimal)
                .hint("All that is left if left out."),
            Input::REASON,
        ])
        .having(&[("/isRefundable", "yes")])
        .destructive(),
    ],
};

/// The page of a payment.
pub(super) async fn show(visit: &Visit<'_>, id: &str, query: &Typed) -> Result<Page, Refused> {
    let ids = [id.to_owned()];
    let mut payment = visit.get(&format!("/admin/v1/payments/{}", segment(id))).await?;
    payment["isRefundable"] = (text(&payment, "/refundable") != "0").into();
    let waits = matches!(&*text(&payment, "/state"), "suspense" | "unmatched");
    let suggested = match waits {
        true => visit.rows(&format!("/admin/v1/payments/{}/suggestions", segment(id))).await?.0,
        false => Vec::new(),
    };
    let columns = &[
        ("Order", Cell::Link("/console/orders/", "/orderId")),
        ("Why", Cell::Words("/reasons")),
        ("Status", Cell::Badge("/status")),
        ("Amount", Cell::Money("/fiatAmount", "/fiatCurrency")),
        ("Partner", Cell::Text("/partner")),
        ("Made", Cell::Time("/createdAt")),
    ];
    let match_path = format!("/console/payments/{}/match", segment(id));
    let body = html! {
        (outcome(query, PAYMENT.actions))
        (facts(visit, &payment, FACTS))
        (PAYMENT.actions(visit, &ids, &payment))
        @if let Some(report) = payment.get("report").filter(|report| report.is_object()) {
            h2 { "The report as it came" }
            pre tabindex="0" { (format!("{report:#}")) }
        }
        @if waits {
            @if suggested.is_empty() {
                (note(Tone::Info, &html! {
                    "No open order fits this payment by number, amount or name."
                }))
            }
            (titled_table(visit, "Orders that it may be meant for", &suggested, columns))
            @for order in suggested.iter().filter(|_| PAYMENT.may(visit, "match")) {
                @let number = text(order, "/orderId");
                a.action href={ (match_path) "?orderId=" (number) } { "Match to " (number) } " "
            }
        }
    };
    Ok(Page::new("Payment", SECTION, body))
}
