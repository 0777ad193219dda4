//! The sandbox of test clients: `GET /portal/sandbox` lists the scenarios, `POST …/orders` makes a test
//! order that follows one, `POST …/orders/{id}/{event}` simulates an event of a test order, and
//! `POST …/identity` ends the identity check of a test user.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::identity_checks::{find, outcome_buttons, simulate_identity_check};
use super::page::{DEVELOPERS, FORM_ERRORS, StaffPage, Visit, done};
use crate::auth::caller::{ClientMaybeUser, Confirmer};
use crate::endpoint::{Endpoint, Json};
use crate::http::html::components::{Column, Field, Tone, error_summary, field, note, table};
use crate::http::reply::Reply;
use crate::money::connectors::sandbox;
use crate::money::connectors::sandbox::purchases::simulate;
use crate::partners::staff::StaffRole;
use crate::platform::error::{Denial, Error, Result};
use crate::trading::orders::confirm::{self, Confirm};
use crate::trading::orders::status::{NotApplied, OrderStatus, takes};
use crate::trading::quotes::Side;
use crate::trading::quotes::create::{BuyV1, Request};
use crate::trading::sandbox::{Scenario, SimulatedEvent};
use rampart_types::{OrderId, OrderKey};

const PATH: &str = "/portal/sandbox";
const IDENTITY: &str = "/portal/sandbox/identity";
const ORDERS: &str = "/portal/orders";
const NO_USER: &str = "No user of yours has this name.";
/// Pair, payment method and wallet of a test order; the wallet is nobody's.
const PAIR: &str = "BTC-EUR";
const PAYMENT_METHOD: &str = "creditCard";
const WALLET: &str = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
/// Random bytes that tell the references of test orders apart.
const REFERENCE_BYTES: usize = 6;

/// Lists the scenarios.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        if !visit.session.client.tenant.is_test() {
            return Ok(visit.not_found());
        }
        Ok(page(visit, StatusCode::OK, &[]))
    }
}

/// The page, with the errors of a form that was refused.
fn page(visit: &Visit<'_>, status: StatusCode, errors: &[(&str, &str)]) -> Reply {
    let columns = [
        Column::Text("Scenario"),
        Column::Text("What happens"),
        Column::Text("partnerOrderIdentifier"),
        Column::Amount("or fiatAmount"),
        Column::Text("Ends as"),
        Column::Text("Action"),
    ];
    let rows: Vec<_> = Scenario::ALL.into_iter().map(|scenario| row(visit, scenario)).collect();
    let user = Field {
        value: visit.form().get("user").trim(),
        hint: Some("E-mail address, your identifier of the user, or the user's id."),
        error: errors.first().map(|(_, text)| *text),
        ..Field::text("user", "User")
    };
    let body = html! {
        (note(Tone::Info, &html! {
            "No money moves here: payments, coins and checks of a test client are simulated."
        }))
        (error_summary(FORM_ERRORS, errors))
        (table("Scenarios", &columns, &rows))
        p {
            "A test order buys for one of these amounts, with the card, to a wallet of nobody's. "
            "Its page simulates other events."
        }
        h2 { "Simulated identity check" }
        (visit.form_to(IDENTITY, &html! { (field(&user)) (outcome_buttons()) }))
    };
    visit.page_with_status(status, PATH, "Sandbox", &body)
}

/// Ends the identity check of the user whom the form names.
pub struct EndIdentityCheck;

impl StaffPage for EndIdentityCheck {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = IDENTITY;
    const ROLES: &'static [StaffRole] = DEVELOPERS;
    const ACTION: Option<&'static str> = Some("End an identity check");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        if !visit.session.client.tenant.is_test() {
            return Ok(visit.not_found());
        }
        let Some(user) = find(visit, visit.form().get("user").trim()).await? else {
            return Ok(page(visit, StatusCode::BAD_REQUEST, &[("user", NO_USER)]));
        };
        simulate_identity_check(visit, IDENTITY, user).await?;
        Ok(done(PATH, "simulated"))
    }
}

fn row(visit: &Visit<'_>, scenario: Scenario) -> Vec<Markup> {
    let order = html! {
        input type="hidden" name="scenario" value=(scenario.name());
        button.small type="submit" { "Make an order" }
    };
    vec![
        html! { (scenario.name()) },
        html! { (scenario.description()) },
        html! { code { (scenario.reference()) } },
        html! { (scenario.amount()) },
        html! { (scenario.final_status().as_str()) },
        visit.form_to("/portal/sandbox/orders", &order),
    ]
}

/// Makes a test order that follows a scenario.
pub struct MakeOrder;

impl StaffPage for MakeOrder {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/sandbox/orders";
    const ROLES: &'static [StaffRole] = DEVELOPERS;
    const ACTION: Option<&'static str> = Some("Make a test order");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let name = visit.form().get("scenario");
        let scenario = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
        let scenario = scenario.filter(|_| visit.session.client.tenant.is_test());
        let Some(scenario) = scenario else { return Ok(visit.not_found()) };
        let mut tx = visit.begin().await?;
        let earlier = visit.earlier_result(&mut tx, Self::PATH).await?;
        // Ended first: the confirm takes connections of its own, and a test order moves no money.
        tx.commit().await?;
        let order = match earlier {
            // The first one is still being made.
            Some(order) if order.is_empty() => return Ok(Reply::see_other(ORDERS)),
            Some(order) => order,
            None => make_once(visit, scenario).await?,
        };
        Ok(Reply::see_other(&format!("{ORDERS}/{order}")))
    }
}

/// Makes the order of a form that is used up, and keeps its number. A form without an order may be
/// sent again.
async fn make_once(visit: &Visit<'_>, scenario: Scenario) -> Result<String> {
    let made = make(visit, scenario).await;
    let mut conn = visit.core.db.acquire().await?;
    match made {
        Ok(order) => {
            let order = order.to_string();
            visit.keep_result(&mut conn, MakeOrder::PATH, &order).await?;
            Ok(order)
        }
        Err(error) => {
            visit.release_form(&mut conn, MakeOrder::PATH).await?;
            Err(error)
        }
    }
}

/// Quotes and confirms, as a request of the partner's would; the order's number.
async fn make(visit: &Visit<'_>, scenario: Scenario) -> Result<i64> {
    let (core, client) = (visit.core, &visit.session.client);
    let wanted = json!({
        "currencyPair": PAIR, "paymentMethod": PAYMENT_METHOD, "fiatAmount": scenario.amount(),
    });
    let request = Request::read(Side::Buy, &wanted, client)?;
    let caller = ClientMaybeUser { client: client.clone(), user: None };
    let Json(quote) = BuyV1::call(core, caller, request).await?;
    let quote = document(&quote)?;
    let mark = hex::encode(core.clock.random_bytes::<REFERENCE_BYTES>()?);
    let terms = json!({
        "quote": quote["quote"], "walletAddress": WALLET,
        "returnUrl": core.settings.public_url,
        "partnerOrderIdentifier": format!("{}-{mark}", scenario.reference()),
    });
    let request = Confirm::read_v1(&terms, client)?;
    let caller = Confirmer { client: client.clone(), user: None };
    let Json(confirmed) = confirm::V1::call(core, caller, request).await?;
    let number = document(&confirmed)?["orderId"].as_i64();
    number.ok_or_else(|| Error::invariant("read the number of a test order"))
}

fn document(answer: &impl serde::Serialize) -> Result<Value> {
    let text = serde_json::to_vec(answer).and_then(|text| serde_json::from_slice(&text));
    text.map_err(|error| Error::internal("read an answer", error))
}

/// Simulates an event of a test order.
pub struct SimulateEvent;

impl StaffPage for SimulateEvent {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/sandbox/orders/{id}/{event}";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let client = &visit.session.client;
        let event = SimulatedEvent::from_name(visit.param("event"));
        let event = event.filter(|_| client.tenant.is_test());
        let id = visit.param("id").parse::<OrderId>().ok();
        let Some((id, event)) = id.zip(event) else { return Ok(visit.not_found()) };
        let key = OrderKey { client: client.id(), order: id };
        // Each attempt locks the session.
        let begin = || async move {
            let mut tx = visit.begin().await?;
            let earlier = visit.earlier_result(&mut tx, Self::PATH).await?;
            Ok::<_, Error>(earlier.is_none().then_some(tx))
        };
        match simulate(visit.core, key, event, sandbox::NAME, begin).await {
            Ok(()) => Ok(done(&format!("{ORDERS}/{}", id.number()), "simulated")),
            Err(NotApplied::NoSuchOrder) => Ok(visit.not_found()),
            Err(NotApplied::Forbidden { status }) => {
                let reason = format!("An order that is {} does not take this.", status.as_str());
                Err(Denial::conflict(reason).into())
            }
            Err(NotApplied::Refused(reason)) => Err(Denial::conflict(reason).into()),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }
}

/// The simulated events that a test order in this state takes, on its page.
pub(super) fn events_form(visit: &Visit<'_>, order: OrderId, status: OrderStatus) -> Markup {
    let is_seen = visit.session.client.tenant.is_test() && DEVELOPERS.contains(&visit.session.role);
    let events = SimulatedEvent::ALL.into_iter().filter(|event| takes(status, event.cause()));
    let names: Vec<_> = events.map(SimulatedEvent::as_str).collect();
    html! {
        @if is_seen && !names.is_empty() {
            h2 { "Simulate an event" }
            div.row {
                @for name in names {
                    (visit.button_to(&format!("{PATH}/orders/{}/{name}", order.number()), name))
                }
            }
        }
    }
}
