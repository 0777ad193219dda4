//! Savings plans: the list, and one with its deposits, of which each has become an order.

use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::view::{Cell, facts};
use super::visit::{Refused, Visit, fill};
use crate::http::html::components::empty_state;

const SECTION: &str = "/console/savings-plans";

/// The search for savings plans.
pub(super) const LIST: List = List {
    title: "Savings plans",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/dca-codes",
    criteria: &[
        Input::new("code", "Code").hint("The one that a transfer names."),
        Input::new("partner", "Partner"),
        Input::new("user", "User's id"),
    ],
    columns: &[
        ("Plan", Cell::Link("/console/savings-plans/", "/code")),
        ("Partner", Cell::Link("/console/partners/", "/partner")),
        ("User", Cell::Link("/console/users/", "/userId")),
        ("Buys", Cell::Text("/cryptoCurrency")),
        ("Intended", Cell::Cents("/intendedAmount")),
        ("Frequency", Cell::Text("/frequency")),
        ("Made", Cell::Time("/createdAt")),
    ],
    empty: "No savings plan meets these criteria. One is opened on the page of its user.",
};

/// Columns of a user's own plans.
pub(super) const OF_USER: &[(&str, Cell)] = &[
    ("Plan", Cell::Link("/console/savings-plans/", "/code")),
    ("Buys", Cell::Text("/cryptoCurrency")),
    ("Frequency", Cell::Text("/frequency")),
    ("Made", Cell::Time("/createdAt")),
];

/// Opens a plan for a user.
pub(super) const OPEN: Action = Action::new(
    "open-savings-plan",
    "Open a savings plan",
    Verb::Post.call("/admin/v1/users/{uuid}/dca-codes"),
    "What the user transfers under its code buys as it arrives, and goes to this wallet. The code \
     is on the user's page then.",
)
.with(&[
    Input::new("cryptoCurrency", "Coin that is bought").hint("Its code, such as BTC.").required(),
    Input::new("walletAddress", "Wallet address").required(),
    Input::new("destinationTag", "Destination tag")
        .kind(Kind::Json)
        .hint("If the wallet has one: a number for XRP, in quotes for other coins."),
    Input::new("name", "Name"),
    Input::new("intendedAmount", "Intended amount in EUR")
        .kind(Kind::Cents)
        .hint("Shown to the user, never acted on, as is the frequency."),
    Input::new("frequency", "Frequency").kind(Kind::Choice(&[
        ("weekly", "weekly"),
        ("monthly", "monthly"),
        ("quarterly", "quarterly"),
        ("half_yearly", "half-yearly"),
    ])),
    Input::new("partner", "Opened through the partner")
        .hint("Its slug, for the user to see; nobody's if left out."),
]);

/// A savings plan.
pub(super) const PLAN: Subject = Subject {
    name: "savings plan",
    section: SECTION,
    page: "/console/savings-plans/{code}",
    read: "/admin/v1/dca-codes/{code}",
    facts: &[
        ("Code", Cell::Text("/code")),
        ("Partner", Cell::Link("/console/partners/", "/partner")),
        ("User", Cell::Link("/console/users/", "/userId")),
        ("Buys", Cell::Text("/cryptoCurrency")),
        ("Wallet", Cell::Address("/walletAddress")),
        ("Destination tag", Cell::Text("/destinationTag")),
        ("Deposits go to", Cell::Text("/bankIban")),
        ("Intended", Cell::Cents("/intendedAmount")),
        ("Frequency", Cell::Text("/frequency")),
        ("Hidden by the user", Cell::Text("/hidden")),
        ("Made", Cell::Time("/createdAt")),
    ],
    actions: &[Action::new(
        "deposit",
        "Report a deposit",
        Verb::Post.call("/admin/v1/dca-codes/{code}/deposits"),
        "It becomes an order at once, which buys coins for the user. A reference counts once. \
         Above the limit of one operator a second one must agree.",
    )
    .with(&[
        Input::new("amount", "Amount").kind(Kind::Decimal).required(),
        Input::new("currencyCode", "Currency").hint("Its code, such as EUR.").required(),
        Input::new("reference", "The bank's own name for it").required(),
    ])],
};

/// Deposits to a plan as a list.
pub(super) const DEPOSITS: List = List {
    title: "Deposits to",
    section: SECTION,
    page: "/console/savings-plans/{code}/~/deposits",
    call: "/admin/v1/dca-codes/{code}#/deposits",
    criteria: &[],
    columns: &[
        ("Reported", Cell::Time("/createdAt")),
        ("Amount", Cell::Money("/amount", "/currencyCode")),
        ("Reference", Cell::Text("/reference")),
        ("Order", Cell::Link("/console/orders/", "/orderId")),
    ],
    empty: "Nothing was deposited yet.",
};

/// The page of a savings plan.
pub(super) async fn show(visit: &Visit<'_>, code: &str, query: &Typed) -> Result<Page, Refused> {
    let ids = [code.to_owned()];
    let plan = visit.get(&fill(PLAN.read, &ids)).await?;
    let deposits = plan["deposits"].as_array().cloned().unwrap_or_default();
    let body = html! {
        (outcome(query, PLAN.actions))
        (facts(visit, &plan, PLAN.facts))
        (PLAN.actions(visit, &ids, &plan))
        @if deposits.is_empty() { (empty_state("No deposit", DEPOSITS.empty)) }
        @else {
            (titled_table(visit, "Deposits", &deposits, DEPOSITS.columns))
            p.hint { "The newest, at most 1000." }
            (DEPOSITS.export(&ids, query))
        }
    };
    Ok(Page::new(format!("Savings plan {code}"), SECTION, body))
}
