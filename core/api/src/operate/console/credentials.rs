//! A partner's API keys and webhook endpoints: as its page shows them, and as lists of their own.

use super::action::{Action, Subject, Verb};
use super::list::List;
use super::view::Cell;

const SECTION: &str = "/console/partners";

/// A partner's name and state, where something of it is shown.
pub(super) const FACTS: &[(&str, Cell)] = &[
    ("Name", Cell::Text("/name")),
    ("Mode", Cell::Badge("/mode")),
    ("Status", Cell::Badge("/status")),
];

/// An API key among others.
pub(super) const KEYS: &[(&str, Cell)] = &[
    ("Key", Cell::Text("/name")),
    ("Id", Cell::Address("/id")),
    ("Scopes", Cell::Words("/scopes")),
    ("Networks", Cell::Words("/allowedAddresses")),
    ("Ends", Cell::Time("/expiresAt")),
    ("Last use", Cell::Time("/lastUsedAt")),
];

/// API keys as a list.
pub(super) const KEY_LIST: List = List {
    title: "API keys of",
    section: SECTION,
    page: "/console/partners/{slug}/~/keys",
    call: "/admin/v1/partners/{slug}#/apiKeys",
    criteria: &[],
    columns: KEYS,
    empty: "The partner has no live key.",
};

/// One API key.
pub(super) const KEY: Subject = Subject {
    name: "API key",
    section: SECTION,
    page: "/console/partners/{slug}/keys/{id}",
    read: "/admin/v1/partners/{slug}",
    facts: FACTS,
    actions: &[Action::new(
        "revoke",
        "Revoke",
        Verb::Delete.call("/admin/v1/partners/{slug}/api-keys/{id}"),
        "Every edge refuses the key within a second, for good. Whoever uses it stops working.",
    )
    .destructive()
    .counting(
        "partner={}&apiKey={}",
        &[
            ("Last use of the key", Cell::Time("/lastUsedAt")),
            ("Other live keys of the partner", Cell::Count("/apiKeys")),
        ],
    )],
};

/// A webhook endpoint among others.
pub(super) const WEBHOOKS: &[(&str, Cell)] = &[
    ("URL", Cell::Text("/url")),
    ("State", Cell::Badge("/state")),
    ("Events", Cell::Words("/events")),
    ("Failing since", Cell::Time("/failingSince")),
    ("Made", Cell::Time("/createdAt")),
];

/// Webhook endpoints as a list.
pub(super) const WEBHOOK_LIST: List = List {
    title: "Webhook endpoints of",
    section: SECTION,
    page: "/console/partners/{slug}/~/webhooks",
    call: "/admin/v1/partners/{slug}/webhooks",
    criteria: &[],
    columns: WEBHOOKS,
    empty: "The partner has registered none.",
};

/// One webhook endpoint.
pub(super) const WEBHOOK: Subject = Subject {
    name: "webhook endpoint",
    section: SECTION,
    page: "/console/partners/{slug}/webhooks/{id}",
    read: "/admin/v1/partners/{slug}",
    facts: FACTS,
    actions: &[
        Action::new(
            "test", "Test",
            Verb::Post.call("/admin/v1/partners/{slug}/webhooks/{id}/test"),
            "A test event is sent there, whatever the endpoint listens to. The deliveries show its fate.",
        )
        .having(&[("/state", "active")]),
        Action::new(
            "remove", "Remove",
            Verb::Delete.call("/admin/v1/partners/{slug}/webhooks/{id}"),
            "Nothing is sent there any more, not what waits either. The partner can register it again.",
        )
        .destructive()
        .counting(
            "partner={}&webhook={}",
            &[("Deliveries that wait, and are not sent", Cell::Count("/pendingDeliveries"))],
        ),
    ],
};
