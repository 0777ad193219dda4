//! Pages: by role, under a strict policy, with filters in the URL.

use std::collections::BTreeSet;

use rampart_api::OPERATOR_ENDPOINTS;
use rampart_core::auth::roles::Role;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::receiver::{Reaction, Receiver};

use super::*;
use crate::sell::Seller;

/// Pages, each with the call that it shows.
const PAGES: [(&str, &str); 23] = [
    ("/console", "/admin/v1/overview"),
    ("/console/orders", "/admin/v1/orders"),
    ("/console/reviews", "/admin/v1/reviews"),
    ("/console/payments", "/admin/v1/payments"),
    ("/console/users", "/admin/v1/users"),
    ("/console/savings-plans", "/admin/v1/dca-codes"),
    ("/console/partners", "/admin/v1/partners"),
    ("/console/market", "/admin/v1/prices"),
    ("/console/market/~/routes", "/admin/v1/routes"),
    ("/console/market/~/methods", "/admin/v1/payment-methods"),
    ("/console/market/~/currencies", "/admin/v1/currencies"),
    ("/console/market/~/maintenance", "/admin/v1/maintenance-windows"),
    ("/console/ledger", "/admin/v1/ledger/balances"),
    ("/console/ledger/entries", "/admin/v1/ledger/entries"),
    ("/console/ledger/reconciliations", "/admin/v1/reconciliations"),
    ("/console/deliveries", "/admin/v1/deliveries"),
    ("/console/deliveries/~/mail", "/admin/v1/mail"),
    ("/console/connectors", "/admin/v1/connectors"),
    ("/console/approvals", "/admin/v1/approvals"),
    ("/console/operators", "/admin/v1/operators"),
    ("/console/operators/~/keys", "/admin/v1/operator-keys"),
    ("/console/audit", "/admin/v1/audit"),
    ("/console/audit/verification", "/admin/v1/audit/verification"),
];
/// Those that another page leads to.
const INNER: [&str; 9] = [
    "/console/ledger/entries",
    "/console/ledger/reconciliations",
    "/console/market/~/routes",
    "/console/market/~/methods",
    "/console/market/~/currencies",
    "/console/market/~/maintenance",
    "/console/deliveries/~/mail",
    "/console/operators/~/keys",
    "/console/audit/verification",
];

#[tokio::test]
async fn a_page_is_for_the_roles_of_its_call() {
    let context = TestContext::start().await;
    for role in Role::ALL {
        let browser = Browser::of(&context, role.as_str(), &[role.as_str()]).await;
        let home = browser.get("/console").await.assert(200, "Overview");
        for (page, call) in PAGES {
            let route =
                OPERATOR_ENDPOINTS.iter().find(|r| r.path == call && r.method == Method::GET);
            let permitted = Role::permits(&[*role], route.unwrap().roles);
            let shown = browser.get(page).await;
            let wanted = if permitted { 200 } else { 403 };
            assert_eq!(shown.status, wanted, "{page} as {role:?}: {}", shown.text);
            let link = format!("href=\"{page}\"");
            let is_entry = !INNER.contains(&page);
            assert_eq!(home.text.contains(&link), permitted && is_entry, "{page} as {role:?}");
        }
    }
}

#[tokio::test]
async fn links_lead_to_pages_that_the_role_sees() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    acme.post("/api/v2/webhooks", hook).await;
    let bought = acme.user("ada").await.buy(100).await.assert_status(200).json();
    let order = format!("orders/{}", bought["orderId"]);
    let event = json!({"event": "payment-received"});
    let path = format!("/admin/v1/{order}/events");
    context.admin(Method::POST, &path, event).await.assert_status(200);
    for role in Role::ALL {
        let browser = Browser::of(&context, role.as_str(), &[role.as_str()]).await;
        let mut links = BTreeSet::new();
        for page in [&*order, "payments", "deliveries", "ledger/entries", "partners/acme"] {
            let shown = browser.get(&format!("/console/{page}")).await;
            let led = shown.text.split("href=\"/console/").skip(1);
            links.extend(led.map(|link| link.split('"').next().unwrap().replace("&amp;", "&")));
        }
        assert!(links.contains(&order), "{role:?}: {links:?}");
        for link in links {
            let shown = browser.get(&format!("/console/{link}")).await;
            assert_eq!(shown.status, 200, "{link} as {role:?}: {}", shown.text);
        }
    }
}

#[tokio::test]
async fn every_page_lets_in_nothing_but_itself() {
    let context = TestContext::start().await;
    let browser = Browser::of(&context, "ada", &["owner"]).await;
    let others = ["/console/nothing", "/console/orders/7", "/console/partners/~/create"];
    for page in PAGES.map(|(page, _)| page).into_iter().chain(others) {
        let shown = browser.get(page).await;
        let policy = shown.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{page}: {policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{page}");
        assert_eq!(shown.header("cache-control"), "no-store", "{page}");
        for outside in ["http://", "https://", " style=", " onclick=", "<script src"] {
            assert!(!shown.text.contains(outside), "{outside} in {page}");
        }
        for form in
            shown.text.split("<form").skip(1).filter(|form| form.contains("method=\"post\""))
        {
            assert!(form.contains("name=\"csrfToken\""), "{page}: {form}");
        }
    }
    browser.get("/console/nothing").await.assert(404, "no such page");
    browser.get("/console/orders/7").await.assert(404, "no such order");
    let refused = browser.post("/console/orders", &[]).await.assert(405, "only shows");
    assert_eq!(refused.header("allow"), "GET, HEAD");
}

#[tokio::test]
async fn a_list_keeps_its_filters_in_the_url_and_goes_on() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut orders = Vec::new();
    for _ in 0..52 {
        orders.push(OrderFixture::order(&context, &acme, None, None).await);
    }
    orders[0].event(&context, "cancel").await.assert_status(200);
    let browser = Browser::of(&context, "ada", &["viewer"]).await;
    let rows = |shown: &Shown| shown.text.matches("href=\"/console/orders/").count();
    let first = browser.get("/console/orders").await.assert(200, "Next page");
    assert_eq!(rows(&first), 50);
    let next = first.text.split("href=\"").find(|link| link.contains("after=")).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    let second = browser.get(&next).await.assert(200, "cancelled");
    assert_eq!(rows(&second), 2);
    let cancelled = browser.get("/console/orders?status=cancelled&partner=acme").await;
    assert_eq!(rows(&cancelled), 1);
    assert!(cancelled.text.contains("value=\"acme\""), "{}", cancelled.text);
    assert!(cancelled.text.contains("<option value=\"cancelled\" selected"), "{}", cancelled.text);
    let wrong = browser.get("/console/orders?from=yesterday&partner=acme").await;
    let wrong = wrong.assert(422, "value=\"yesterday\"").assert(422, "href=\"#field-from\"");
    assert_eq!(wrong.text.matches("aria-invalid=\"true\"").count(), 1, "{}", wrong.text);
    assert_eq!(rows(&wrong), 0);
    browser
        .get("/console/orders?partner=nobody")
        .await
        .assert(200, "No order meets these criteria");
    let owner = Browser::of(&context, "bob", &["owner"]).await;
    for list in ["audit?actor=nobody", "ledger?partner=nobody"] {
        owner.get(&format!("/console/{list}")).await.assert(200, "meets these criteria");
    }
    let file = browser.get("/console/orders?partner=acme&format=csv").await;
    let file = file.assert(200, "Order,Status,Side,Partner,Pair,Amount");
    assert_eq!(
        (file.text.lines().count(), file.header("content-type")),
        (53, "text/csv; charset=utf-8")
    );
    assert!(file.header("content-disposition").starts_with("attachment"));
}

#[tokio::test]
async fn an_order_shows_everything_and_what_can_be_done() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    acme.post("/api/v2/webhooks", hook).await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let treasury = Browser::of(&context, "ada", &["treasury"]).await;
    let path = format!("/console/orders/{}", order.id);
    let page = treasury.get(&path).await.assert(200, "What happened");
    for part in [
        "100 EUR",
        "50000 EUR",
        "Price and fees",
        "Path through the books",
        "received",
        "Payments",
        "Deliveries to the partner",
        "in progress",
        &format!("{path}/hold"),
    ] {
        assert!(page.text.contains(part), "no {part:?} in {}", page.text);
    }
    assert!(!page.text.contains(&format!("{path}/release")), "it is not blocked");
    assert!(!page.text.contains("/redeliver\""), "another role sends again");
    let support = Browser::of(&context, "sue", &["support"]).await;
    let page = support.get(&path).await.assert(200, "Deliveries to the partner");
    assert!(page.text.contains("/redeliver\">Send again</a>"), "{}", page.text);
    let viewer = Browser::of(&context, "eve", &["viewer"]).await;
    let page = viewer.get(&path).await.assert(200, "What happened");
    assert!(!page.text.contains(&format!("{path}/hold")));
    viewer.get(&format!("{path}/hold")).await.assert(403, "not for your role");
    let post = [("reason", "x"), ("csrfToken", &*page.csrf_token())];
    viewer.post(&format!("{path}/hold"), &post).await.assert(403, "not for your role");
}

#[tokio::test]
async fn a_proof_of_the_wallet_is_offered_where_one_can_be_accepted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let sale = Seller::of(&context, &acme, "ann").await.sale(|_| ()).await["orderId"].clone();
    let judge = Browser::of(&context, "judge", &["compliance"]).await;
    let offered = async |id: &str| {
        let path = format!("/console/orders/{id}");
        let page = judge.get(&path).await.assert(200, "What happened");
        page.text.contains(&format!("{path}/prove-wallet"))
    };
    assert!(!offered(&sale.to_string()).await, "a sale pays money out");
    let id = order.id.to_string();
    assert!(offered(&id).await);
    let path = format!("/console/orders/{id}/prove-wallet");
    judge.submit(&path, &[("reason", "a transfer from it")]).await.assert(303, "");
    assert!(!offered(&id).await, "it is proven");
    let hosted = "update buy_order set wallet_type = 'vasp', wallet_proven_at = null";
    sqlx::query(hosted).execute(context.db()).await.unwrap();
    assert!(!offered(&id).await, "it is a provider's");
}

#[tokio::test]
async fn a_delivery_shows_its_request_and_its_attempts() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    host.react(Reaction::status(500));
    let address = host.url("/hook");
    OrderFixture::ended(&context, &acme, &address).await;
    context.core().deliver_due().await.unwrap();
    let list = context.admin(Method::GET, "/admin/v1/deliveries", Value::Null).await.json();
    let [id, event, kind] = ["id", "eventId", "type"].map(|name| list[0][name].as_str().unwrap());
    let path = format!("/console/deliveries/{id}");
    // A partner's host may answer with names of people.
    let viewer = Browser::of(&context, "eve", &["viewer"]).await;
    assert!(!viewer.get(&path).await.assert(403, "").text.contains("Attempts"));
    let support = Browser::of(&context, "sue", &["support"]).await;
    let page = support.get(&path).await.assert(200, "Attempts");
    let request = format!("POST {address}");
    for part in [&*request, event, kind, "acme", "pending", "500", " ms"] {
        assert!(page.text.contains(part), "no {part:?} in {}", page.text);
    }
    support.get(&format!("{path}/redeliver")).await.assert(200, &address);
    support.get("/console/deliveries/7").await.assert(404, "no such delivery");
}

#[tokio::test]
async fn what_others_have_written_is_no_markup() {
    let context = TestContext::start().await;
    let name = "<script>alert(1)</script>";
    let body = json!({"slug": "acme", "name": name, "mode": "test"});
    context.admin(Method::POST, "/admin/v1/partners", body).await.assert_status(201);
    let browser = Browser::of(&context, "ada", &["viewer"]).await;
    for page in ["/console/partners", "/console/partners/acme"] {
        let shown = browser.get(page).await.assert(200, "&lt;script&gt;alert(1)&lt;/script&gt;");
        assert!(!shown.text.contains(name), "{page}");
    }
}

#[tokio::test]
async fn users_are_searched_without_their_data_in_a_url() {
    let context = TestContext::start().await;
    context.partner("acme").await.user("ada").await;
    let browser = Browser::of(&context, "bob", &["support"]).await;
    let criteria = [("email", "ada@mail.example.com")];
    let found = browser.submit("/console/users", &criteria).await.assert(200, "Lovelace");
    assert!(found.text.contains("method=\"post\" action=\"/console/users\""));
    let link = found.text.split("href=\"/console/users/").nth(1).unwrap();
    let path = format!("/console/users/{}", link.split('"').next().unwrap());
    browser.get(&path).await.assert(200, "Keizersgracht");
    assert_eq!(audited(&context, "user.read").await["actor"], "bob");
    let kept = browser.submit("/console/users", &[("email", "not an address")]).await;
    let kept = kept.assert(422, "value=\"not an address\"").assert(422, "href=\"#field-email\"");
    assert_eq!(kept.text.matches("aria-invalid=\"true\"").count(), 1, "{}", kept.text);
    let forged = [("email", "ada@mail.example.com"), ("csrfToken", "forged")];
    let forged = browser.post("/console/users", &forged).await.assert(403, "earlier sign-in");
    assert!(!forged.text.contains("Lovelace"));
    let treasury = Browser::of(&context, "eve", &["treasury"]).await;
    let masked =
        treasury.submit("/console/users", &criteria).await.assert(200, "a***@mail.example.com");
    assert!(!masked.text.contains("Lovelace"));
    treasury.get(&path).await.assert(403, "Not for your role");
}

#[tokio::test]
async fn more_users_than_a_page_has_are_on_the_next_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for number in 0..51 {
        acme.user(&format!("user{number}")).await;
    }
    let browser = Browser::of(&context, "bob", &["support"]).await;
    let criteria = [("partner", "acme")];
    let first = browser.submit("/console/users", &criteria).await.assert(200, "Next page");
    let hidden = |name: &str| {
        let next = first.text.split("<form class=\"row\"").nth(1).unwrap();
        let input = next.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        input.split('"').next().unwrap().to_owned()
    };
    assert_eq!(hidden("partner"), "acme");
    let token = hidden("csrfToken");
    let next = [("partner", "acme"), ("after", &*hidden("after")), ("csrfToken", &*token)];
    let second = browser.post("/console/users", &next).await.assert(200, "Lovelace");
    let links = |text: &str| text.matches("href=\"/console/users/").count();
    assert_eq!((links(&first.text), links(&second.text)), (50, 1));
    assert!(!second.text.contains("Next page"));
}

#[tokio::test]
async fn the_overview_shows_the_health_of_postgres_and_alarms() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let shown = ada.get("/console").await.assert(200, "<h2>Alarms</h2>");
    assert!(shown.text.contains("<h2>Postgres</h2>") && !shown.text.contains("pairs are closed"));
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await.json();
    let checks = overview["checks"].as_array().unwrap();
    for name in ["database", "pool", "replicas", "clock"] {
        let check = json!({"name": name, "status": "ok", "detail": ""});
        assert!(checks.contains(&check), "no {check} in {overview}");
    }
    let aged = json!({"priceMaxAgeSeconds": 60});
    context.admin(Method::PATCH, "/admin/v1/pairs/BTC-EUR", aged).await.assert_status(200);
    context.clock().advance(chrono::TimeDelta::seconds(61));
    ada.get("/console").await.assert(200, "degraded: pairs are closed: BTC-EUR");
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await.json();
    let prices = overview["checks"].as_array().unwrap().iter().find(|c| c["name"] == "prices");
    assert_eq!(prices.unwrap()["status"], "degraded");
}

#[tokio::test]
async fn the_overview_says_how_many_quotes_and_orders_are_completed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let quiet = ada.get("/console").await.assert(200, "of 0 quotes in 24 hours");
    assert!(!quiet.text.contains(" %</b>"), "{}", quiet.text);
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    for _ in 0..4 {
        acme.post("/api/v1/buy/quote", asked.clone()).await.assert_status(200);
    }
    context.core().write_quote_counts().await.unwrap();
    for _ in 0..2 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let one = "update buy_order set status = 'completed' \
        where order_id = (select min(order_id) from buy_order)";
    sqlx::query(one).execute(context.db()).await.unwrap();
    let shown = ada.get("/console").await.assert(200, "<b>50 %</b>");
    let quotes = "<b>25 %</b><span>of 4 quotes in 24 hours</span>";
    assert!(shown.text.contains(quotes), "{}", shown.text);
    for part in [" completed 1</span>", " pending 1</span>", " cancelled 0</span>", "As a table"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await.json();
    let hours = overview["hours"].as_array().unwrap();
    let sum = |state: &str| hours.iter().map(|hour| hour[state].as_i64().unwrap()).sum::<i64>();
    let states = ["pending", "inProgress", "blocked", "completed", "cancelled", "refunded"];
    assert_eq!(states.map(sum), [1, 0, 0, 1, 0, 0]);
}
