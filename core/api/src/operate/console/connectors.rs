//! Connectors, the programs that talk to providers: the list, the form that adds one, and one of them.

use super::action::{Action, Subject, Verb};
use super::form::{Input, Kind};
use super::list::List;
use super::view::Cell;

const SECTION: &str = "/console/connectors";

/// Every connector but those that run inside.
pub(super) const CONNECTORS: List = List {
    title: "Connectors",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/connectors",
    criteria: &[],
    columns: COLUMNS,
    empty: "Add the first connector.",
};
/// A connector's state: its name, what list and page both show, and its card form.
const CELLS: [(&str, Cell); 9] = [
    ("Connector", Cell::Link("/console/connectors/", "/name")),
    ("Last contact", Cell::Time("/lastContactAt")),
    ("Queue", Cell::Text("/queueLength")),
    ("Oldest command", Cell::Time("/oldestCommandAt")),
    ("Failures", Cell::Text("/failures")),
    ("Capabilities", Cell::Words("/capabilities")),
    ("Methods", Cell::Words("/methods")),
    ("Assets", Cell::Words("/assets")),
    ("Card form", Cell::Json("/cardElement")),
];
/// Cells of a connector in a list.
pub(super) const COLUMNS: &[(&str, Cell)] = {
    let [columns @ .., _] = &CELLS;
    columns
};
/// Cells of a connector's own page.
const FACTS: &[(&str, Cell)] = {
    let [_, facts @ ..] = &CELLS;
    facts
};

/// Actions that need no connector yet.
pub(super) const NEW_CONNECTOR: Subject = Subject {
    name: "connector",
    section: SECTION,
    page: "/console/connectors/~",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "add",
        "Add a connector",
        Verb::Post.call("/admin/v1/connectors"),
        "A second operator must agree. The token is shown once, to who carries the call out. Money \
         and coins come to it by routes.",
    )
    .with(&[
        Input::new("name", "Name")
            .hint("1 to 63 of a-z, 0-9 and -, a letter first; it stays for good.")
            .required(),
        Input::new("capabilities", "Capabilities")
            .kind(Kind::Words)
            .hint(
                "payment.create, payment.cancel, payment.refund, payout.send, deposit.address, \
                 transfer.send, identity.start, screening.check, card.verify, \
                 wallet-provider.verify",
            )
            .required(),
        Input::new("methods", "Payment methods").kind(Kind::Words).hint("Their codes."),
        Input::new("assets", "Assets").kind(Kind::Words).hint("By code or CAIP-19 id."),
    ])
    .answering()],
};

/// One connector.
pub(super) const CONNECTOR: Subject = Subject {
    name: "connector",
    section: SECTION,
    page: "/console/connectors/{name}",
    read: "/admin/v1/connectors/{name}",
    facts: FACTS,
    actions: &[
        Action::new(
            "rotate",
            "Issue a new token",
            Verb::Post.call("/admin/v1/connectors/{name}/rotate"),
            "A second operator must agree. The token is shown once, to who carries the call out; \
             earlier ones end after the overlap.",
        )
        .with(&[Input::new("overlapSeconds", "Overlap in seconds")
            .kind(Kind::Integer)
            .hint("86400, a day, if left out.")])
        .answering()
        .destructive(),
        Action::new(
            "card-form",
            "Set the card form",
            Verb::Put.call("/admin/v1/connectors/{name}/card-element"),
            "The provider's form for cards, whose script runs on the pages where orders are paid \
             through this connector. A second operator must agree; pages follow at once.",
        )
        .with(&[Input::new("cardElement", "Card form")
            .kind(Kind::Json)
            .of("/cardElement")
            .hint(
                "An object with scriptUrl, publicKey and origins, a list of further origins that \
                 the script calls; null or nothing takes the form away.",
            )]),
    ],
};
