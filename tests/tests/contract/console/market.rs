//! Pairs, routes, mail, and statements beside the books.

use chrono::TimeDelta;
use rampart_tests::connector::Connector;
use rampart_tests::price_source::PriceSource;

use super::*;

const UPLOAD: &str = "/console/ledger/reconciliations/~/upload";
/// A line that is in no payment, and one that leaves without a reason.
const STATEMENT: &str = "date,amount,currency,reference,providerReference,name,iban\n\
    2026-03-01,100,EUR,hello,bank-1,Ada,NL91ABNA0417164300\n\
    2026-03-01,-20,EUR,fee,bank-2,Bank,NL91ABNA0417164300\n";

/// A form with a statement as its file, as a browser sends it.
fn with_statement(members: &[(&str, &str)], statement: &str) -> Bytes {
    let part = |head: &str, content: &str| {
        format!("--b1\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    };
    let mut body: String =
        members.iter().map(|(name, value)| part(&format!("name=\"{name}\""), value)).collect();
    body += &part("name=\"statement\"; filename=\"a.csv\"", statement);
    format!("{body}--b1--\r\n").into()
}

impl Shown {
    /// The digest that the form keeps of the routes that it showed.
    fn shown_routes(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"shown.routes\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

async fn upload(browser: &Browser<'_>, members: &[(&str, &str)], statement: &str) -> Shown {
    let media_type = ("content-type", "multipart/form-data; boundary=b1");
    let body = with_statement(members, statement);
    browser.send(Method::POST, UPLOAD, &[media_type], body).await
}

#[tokio::test]
async fn a_statement_is_uploaded_once_and_its_differences_are_shown() {
    let context = TestContext::start().await;
    Connector::new(&context, "bank", &["transfer.send"]).await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let eve = Browser::of(&context, "eve", &["viewer"]).await;
    eve.get(UPLOAD).await.assert(403, "not for your role");
    upload(&eve, &[("connector", "bank")], STATEMENT).await.assert(403, "not for your role");
    ada.get("/console/ledger/reconciliations").await.assert(200, &format!("href=\"{UPLOAD}\""));

    let csrf_token = ada.get(UPLOAD).await.assert(200, "type=\"file\"").csrf_token();
    let forged = upload(&ada, &[("connector", "bank"), ("csrfToken", "x")], STATEMENT).await;
    forged.assert(403, "nothing was done");
    let empty = upload(&ada, &[("connector", "bank"), ("csrfToken", &csrf_token)], "").await;
    let empty = empty.assert(422, "Statement is missing");
    assert!(empty.text.contains("value=\"bank\""), "what was typed is kept: {}", empty.text);
    let csrf_token = empty.csrf_token();
    let members = [("connector", "bank"), ("csrfToken", &*csrf_token)];
    let unreadable = upload(&ada, &members, "<a/>").await.assert(422, "the statement:");
    let csrf_token = unreadable.csrf_token();

    let members = [("connector", "bank"), ("csrfToken", &*csrf_token)];
    let made = upload(&ada, &members, STATEMENT).await.assert(303, "");
    let shown = ada.get(made.header("location")).await.assert(200, "bank-2");
    assert!(shown.text.contains("-20 EUR") && !shown.text.contains("bank-1"), "{}", shown.text);
    let again = upload(&ada, &members, STATEMENT).await.assert(303, "");
    assert_eq!(again.header("location"), made.header("location"));
    let other = STATEMENT.replace("hello", "again");
    upload(&ada, &members, &other).await.assert(409, "counts once");
    let payments = ada.get("/console/payments?state=unmatched").await.assert(200, "bank-1");
    assert_eq!(payments.text.matches("bank-1").count(), 1);
    let list = eve.get("/console/ledger/reconciliations?connector=bank").await.assert(200, "ada");
    assert!(!list.text.contains(UPLOAD));
    assert_eq!(audited(&context, "reconciliation.create").await["actor"], "ada");
    let many = "update reconciliation set differences = \
        to_jsonb(array_fill(differences -> 0, array[1001]))";
    sqlx::query(many).execute(context.db()).await.unwrap();
    let page = ada.get(made.header("location")).await;
    page.assert(200, "There are more than these: they stand neither here nor in the file.");
}

#[tokio::test]
async fn routes_are_replaced_by_two_persons_and_never_over_somebody_elses() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    Connector::new(&context, "cards", &["payment.create"]).await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let path = "/console/market/~/routes/replace";
    ada.get("/console/market").await.assert(200, "/console/market/~/routes");
    let form = ada.get(path).await.assert(200, ">[]</textarea>");
    let none = form.shown_routes();
    let send = async |form: &Shown, shown: &str, routes: &str| {
        let csrf_token = form.csrf_token();
        let members = [("csrfToken", &*csrf_token), ("shown.routes", shown), ("routes", routes)];
        ada.post(path, &members).await
    };
    let wrong = send(&form, &none, "[{").await.assert(422, "Routes: JSON");
    let empty = send(&wrong, &none, "").await.assert(422, "Routes is missing");
    let route = json!({"partner": "acme", "method": "creditCard", "direction": "in",
        "connector": "cards"});
    let many = json!(vec![&route; 10_001]).to_string();
    let many = send(&empty, &none, &many).await.assert(422, "routes: at most 10000");
    let routes = json!([route]).to_string();
    let waits = send(&many, &none, &routes).await.assert(303, "");
    let waits = waits.header("location").to_owned();
    ada.get(&waits).await.assert(200, "Another operator must agree first");

    let body = json!({"routes": [route]});
    context.admin(Method::PUT, "/admin/v1/routes", body).await.assert_status(200);
    ada.get("/console/market/~/routes").await.assert(200, "href=\"/console/partners/acme\"");
    let form = ada.get(path).await;
    assert_ne!(form.shown_routes(), none);
    let stale = send(&form, &none, "[ ]").await.assert(422, "has become something else");
    assert_ne!(stale.shown_routes(), none, "sent again, it replaces what is shown now");
}

#[tokio::test]
async fn routes_whose_connector_lacks_the_capability_are_warned_of() {
    let context = TestContext::start().await;
    Connector::new(&context, "bank", &["transfer.send"]).await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let put = async |routes: &[(&str, &str, &str)]| {
        let routes: Vec<_> = routes
            .iter()
            .map(|(leg, of, direction)| {
                json!({"partner": null, *leg: of, "direction": direction, "connector": "bank"})
            })
            .collect();
        let body = json!({ "routes": routes });
        context.admin(Method::PUT, "/admin/v1/routes", body).await.assert_status(200);
        ada.get("/console/market/~/routes").await
    };
    let good = ("method", "bankTransfer", "out");
    let shown = put(&[good]).await.assert(200, "bankTransfer");
    assert!(!shown.text.contains("lacks"), "{}", shown.text);
    let idle = [good, ("method", "bankTransfer", "in"), ("asset", "ETH", "out")];
    let shown = put(&idle).await.assert(200, "bank lacks payment.create: its routes of money in");
    let shown = shown.assert(200, "bank lacks payout.send: its routes of coins out");
    assert_eq!(shown.text.matches("bank lacks").count(), 2, "{}", shown.text);
}

#[tokio::test]
async fn mail_is_shown_without_its_codes() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let invited = json!({"email": "ada@acme.example", "role": "support"});
    let staff = "/admin/v1/partners/acme/staff";
    context.admin(Method::POST, staff, invited).await.assert_status(201);
    let sue = Browser::of(&context, "sue", &["support"]).await;
    sue.get("/console/deliveries").await.assert(200, "/console/deliveries/~/mail");
    let shown = sue.get("/console/deliveries/~/mail?partner=acme").await;
    let shown = shown.assert(200, "ada@acme.example");
    assert!(shown.text.contains('…'), "{}", shown.text);
    assert_eq!(audited(&context, "mail.list").await["actor"], "sue");
    let eve = Browser::of(&context, "eve", &["viewer"]).await;
    let seen = eve.get("/console/deliveries").await.assert(200, "Deliveries");
    assert!(!seen.text.contains("~/mail"));
    eve.get("/console/deliveries/~/mail").await.assert(403, "Not for your role");
}

#[tokio::test]
async fn a_pair_shows_what_its_sources_say_and_its_terms() {
    let sources = [PriceSource::start().await, PriceSource::start().await];
    let settings = sources.iter().map(PriceSource::settings).collect();
    let context = TestContext::with(|all| {
        all.prices.sources.insert("BTC-EUR".to_owned(), settings);
    })
    .await;
    let now = context.clock().now();
    sources[0].say("90000", now);
    sources[1].say("92000", now);
    let core = context.core();
    core.price_feed.as_ref().unwrap().refresh(core).await.unwrap();
    core.refresh().await.unwrap();
    let terms = json!({"spreadPercentage": 0.75, "buy": {"min": 17}});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", terms).await.assert_status(200);
    let pairs = context.admin(Method::GET, "/admin/v1/pairs", Value::Null).await.json();
    let pair = pairs.as_array().unwrap().iter().find(|row| row["pair"] == "BTC-EUR").unwrap();
    assert_eq!(pair["terms"]["spreadPercentage"], json!(0.75));
    assert_eq!(pair["terms"]["buy"]["min"], json!(17));
    context.clock().advance(TimeDelta::seconds(7));
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    ada.get("/console/market").await.assert(200, " 92000 ");
    let page = ada.get("/console/market/BTC-EUR").await.assert(200, "91000");
    for part in ["-1.1 %", ">1.1 %", "<dd>0.75</dd>", ">17 EUR<"] {
        assert!(page.text.contains(part), "no {part} in {}", page.text);
    }
    let (_, age) = page.text.split_once("<dt>Age</dt><dd>").unwrap();
    let age: u32 = age.split(" s</dd>").next().unwrap().parse().unwrap();
    // What the test itself takes comes on top.
    assert!((7..100).contains(&age), "{age} s");
    ada.get("/console/market/ZZZ-EUR").await.assert(404, "no such page");
}

#[tokio::test]
async fn a_payment_method_shows_its_terms() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let page = ada.get("/console/methods/creditCard").await;
    let page = page.assert(200, "<dt>Enabled</dt><dd>yes</dd>");
    assert!(page.text.contains("<dt>Fee (%)</dt>"), "{}", page.text);
    ada.get("/console/methods/nothing").await.assert(404, "no such page");
}

#[tokio::test]
async fn a_maintenance_window_is_planned_and_ended_by_forms() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let list = "/console/market/~/maintenance";
    ada.get("/console/market").await.assert(200, &format!("href=\"{list}\""));
    ada.get(list).await.assert(200, "No maintenance is planned");
    let plan = format!("{list}/plan");
    let members = |pair| [("pair", pair), ("endsAt", "2999-01-01T00:00:00Z"), ("reason", "node")];
    let wrong = ada.submit(&plan, &members("ZZZ-EUR")).await.assert(422, "no such pair");
    assert!(wrong.text.contains("value=\"ZZZ-EUR\""), "what was typed is kept: {}", wrong.text);
    ada.submit(&plan, &members("BTC-EUR")).await.assert(303, "");
    let shown = ada.get(list).await.assert(200, "running");
    let link = shown.text.split("href=\"/console/maintenance/").nth(1).unwrap();
    let path = format!("/console/maintenance/{}", link.split('"').next().unwrap());
    let end = format!("{path}/end");
    ada.get(&path).await.assert(200, &end);
    let eve = Browser::of(&context, "eve", &["viewer"]).await;
    let seen = eve.get(&path).await.assert(200, "BTC-EUR");
    assert!(!seen.text.contains(&end) && !eve.get(list).await.text.contains(&plan));
    ada.submit(&end, &[]).await.assert(303, "");
    let over = ada.get(&path).await.assert(200, "past");
    assert!(!over.text.contains(&end), "{}", over.text);
    let file = format!("{list}?format=csv&columns=Pair,State");
    ada.get(&file).await.assert(200, "State,Pair\r\npast,BTC-EUR\r\n");
    ada.get("/console/maintenance/nothing").await.assert(404, "no such page");
}
