//! Lists whose rows have at most a few actions: deliveries, ledger, market.

use super::action::{Action, Subject, Verb};
use super::form::{Input, Kind};
use super::list::List;
use super::view::Cell;

const SIDE_STATUS: Kind = Kind::Choice(&[
    ("enabled", "enabled"),
    ("maintenance", "maintenance"),
    ("disabled", "disabled"),
]);

/// Deliveries of webhooks and callbacks.
pub(super) const DELIVERIES: List = List {
    title: "Deliveries",
    section: "/console/deliveries",
    page: "/console/deliveries",
    call: "/admin/v1/deliveries",
    criteria: &[
        Input::new("state", "State").kind(Kind::Choice(&[
            ("pending", "pending"),
            ("delivered", "delivered"),
            ("failed", "failed"),
            ("disabled", "disabled"),
        ])),
        Input::new("partner", "Partner"),
        Input::new("order", "Order"),
    ],
    columns: DELIVERY_COLUMNS,
    empty: "No delivery meets these criteria.",
};
const DELIVERY_COLUMNS: &[(&str, Cell)] = &[
    ("Delivery", Cell::Link("/console/deliveries/", "/id")),
    ("State", Cell::Badge("/state")),
    ("Partner", Cell::Text("/partner")),
    ("Event", Cell::Text("/type")),
    ("Order", Cell::Link("/console/orders/", "/orderId")),
    ("Attempts", Cell::Text("/attempts")),
    ("Last status", Cell::Text("/lastStatus")),
    ("Last error", Cell::Text("/lastError")),
    ("Made", Cell::Time("/createdAt")),
];

pub(super) const DELIVERY: Subject = Subject {
    name: "delivery",
    section: "/console/deliveries",
    page: "/console/deliveries/{id}",
    read: "/admin/v1/deliveries/{id}",
    facts: &[
        ("State", Cell::Badge("/state")),
        ("Partner", Cell::Link("/console/partners/", "/partner")),
        ("Event", Cell::Text("/type")),
        ("Order", Cell::Link("/console/orders/", "/orderId")),
        ("Address", Cell::Text("/url")),
        ("Attempts", Cell::Text("/attempts")),
        ("Last status", Cell::Text("/lastStatus")),
        ("Last error", Cell::Text("/lastError")),
        ("Next attempt", Cell::Time("/nextAttemptAt")),
        ("Delivered", Cell::Time("/deliveredAt")),
        ("Made", Cell::Time("/createdAt")),
    ],
    actions: &[Action::new(
        "redeliver",
        "Send again",
        Verb::Post.call("/admin/v1/deliveries/{id}/redeliver"),
        "The event is sent to the same address again, under the same id: a receiver that has it \
         already knows it by that.",
    )
    .having(&[("/redeliverable", "yes")])],
};

/// Mail to users and partners.
pub(super) const MAIL: List = List {
    title: "Mail",
    section: "/console/deliveries",
    page: "/console/deliveries/~/mail",
    call: "/admin/v1/mail",
    criteria: &[Input::new("partner", "Partner"), Input::new("kind", "Occasion")],
    columns: &[
        ("Made", Cell::Time("/createdAt")),
        ("Occasion", Cell::Text("/kind")),
        ("State", Cell::Badge("/state")),
        ("Partner", Cell::Text("/partner")),
        ("User", Cell::Link("/console/users/", "/user")),
        ("To", Cell::Text("/to")),
        ("Subject", Cell::Text("/subject")),
        ("Text", Cell::Text("/text")),
    ],
    empty: "No mail meets these criteria.",
};

/// Balances of the books.
pub(super) const BALANCES: List = List {
    title: "Ledger",
    section: "/console/ledger",
    page: "/console/ledger",
    call: "/admin/v1/ledger/balances",
    criteria: &[
        Input::new("partner", "Partner").hint("house for nobody's"),
        Input::new("currency", "Currency or asset"),
        Input::new("at", "At (UTC)").hint("Now if left out"),
    ],
    columns: &[
        ("Partner", Cell::Text("/partner")),
        ("Account", Cell::Text("/kind")),
        ("Holder", Cell::Text("/holder")),
        ("Balance", Cell::Money("/balance", "/currency")),
    ],
    empty: "No balance meets these criteria.",
};
/// Entries of the books.
pub(super) const ENTRIES: List = List {
    title: "Entries",
    section: "/console/ledger",
    page: "/console/ledger/entries",
    call: "/admin/v1/ledger/entries",
    criteria: &[
        Input::new("partner", "Partner").hint("house for nobody's"),
        Input::new("order", "Order"),
        Input::new("from", "From (UTC)"),
        Input::new("to", "To (UTC)"),
    ],
    columns: &[
        ("Happened", Cell::Time("/occurredAt")),
        ("Entry", Cell::Text("/kind")),
        ("Partner", Cell::Text("/partner")),
        ("Order", Cell::Link("/console/orders/", "/orderId")),
        ("Payment", Cell::Link("/console/payments/", "/paymentId")),
        ("Postings", Cell::Lines("/postings", &["/kind", "/holder", "/amount", "/currency"])),
    ],
    empty: "No entry meets these criteria.",
};

/// Orders that a change of a pair or a payment method finds under way.
const OPEN_ORDERS: &[(&str, Cell)] = &[
    ("Open orders", Cell::Count("/openOrders")),
    ("Partners with open orders", Cell::Count("/partners")),
];

/// Pairs with their prices.
pub(super) const PAIRS: List = List {
    title: "Market",
    section: "/console/market",
    page: "/console/market",
    call: "/admin/v1/prices",
    criteria: &[],
    columns: &[
        ("Pair", Cell::Link("/console/market/", "/pair")),
        ("State", Cell::Badge("/status")),
        ("Price", Cell::Text("/price")),
        ("Set by hand", Cell::Text("/fixed")),
        ("Observed", Cell::Time("/observedAt")),
        ("Too old after seconds", Cell::Text("/maxAgeSeconds")),
        ("Sources say instead", Cell::Text("/deviating")),
        ("Sources", Cell::Lines("/sources", &["/source", "/price", "/observedAt"])),
        ("Quotes void before", Cell::Time("/quotesValidFrom")),
    ],
    empty: "There is no pair.",
};
pub(super) const PAIR: Subject = Subject {
    name: "pair",
    section: "/console/market",
    page: "/console/market/{pair}",
    read: "",
    facts: &[],
    actions: &[
        Action::new(
            "price",
            "Set the price",
            Verb::Put.call("/admin/v1/prices/{pair}"),
            "It confirms one that deviates, and replaces the sources' until it ends. A second \
             operator must agree.",
        )
        .with(&[
            Input::new("price", "Mid price").kind(Kind::Decimal).required(),
            Input::new("maxAgeSeconds", "Ends after seconds").kind(Kind::Integer),
            Input::new("quotesValidFrom", "Void quotes sealed before (UTC)"),
        ]),
        Action::new(
            "sides",
            "Open, close, change terms",
            Verb::Patch.call("/admin/v1/pairs/{pair}"),
            "Every edge follows within a second. What is left empty stays.",
        )
        .with(&[
            Input::new("buy.status", "Purchases").kind(SIDE_STATUS),
            Input::new("sell.status", "Sales").kind(SIDE_STATUS),
            Input::new("spreadPercentage", "Spread (%)").kind(Kind::Decimal),
            Input::new("networkFee", "Network fee").kind(Kind::Decimal),
        ])
        .counting("pair={}", OPEN_ORDERS),
    ],
};
/// Payment methods with their terms.
pub(super) const METHODS: List = List {
    title: "Payment methods",
    section: "/console/market",
    page: "/console/market/~/methods",
    call: "/admin/v1/payment-methods",
    criteria: &[],
    columns: &[
        ("Method", Cell::Link("/console/methods/", "/code")),
        ("Label", Cell::Text("/label")),
        ("Enabled", Cell::Text("/enabled")),
        ("Largest amount", Cell::Text("/limit")),
        ("Fixed fee", Cell::Text("/fees/fixed")),
        ("Fee (%)", Cell::Text("/fees/percentage")),
        ("Seconds for the payment", Cell::Text("/expirationPeriod")),
    ],
    empty: "There is no payment method.",
};
pub(super) const CURRENCIES: List = List {
    title: "Currencies",
    section: "/console/market",
    page: "/console/market/~/currencies",
    call: "/admin/v1/currencies",
    criteria: &[],
    columns: &[
        ("Currency", Cell::Text("/code")),
        ("Kind", Cell::Text("/kind")),
        ("Name", Cell::Text("/name")),
        ("Decimals", Cell::Text("/decimals")),
        ("Network", Cell::Text("/network")),
        ("CAIP-19", Cell::Text("/caip19")),
        ("Takes a tag", Cell::Text("/supportsTag")),
    ],
    empty: "There is no currency.",
};
/// One payment method.
pub(super) const METHOD: Subject = Subject {
    name: "payment method",
    section: "/console/market",
    page: "/console/methods/{code}",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "change",
        "Change a payment method",
        Verb::Patch.call("/admin/v1/payment-methods/{code}"),
        "Every edge follows within a second. What is left empty stays.",
    )
    .with(&[
        Input::new("enabled", "Enabled").kind(Kind::YesNo),
        Input::new("label", "Label"),
        Input::new("limit", "Largest amount").kind(Kind::Decimal),
        Input::new("fees.fixed", "Fixed fee").kind(Kind::Decimal),
        Input::new("fees.percentage", "Fee (%)").kind(Kind::Decimal),
    ])
    .counting("paymentMethod={}", OPEN_ORDERS)],
};
