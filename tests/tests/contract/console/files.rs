//! Lists as files: every row of every page, in the columns that were chosen.

use rampart_api::operate::listener;
use rampart_core::platform::db::PoolKind;
use rampart_tests::connector::Connector;
use rampart_tests::guests::component;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

#[tokio::test]
async fn a_file_has_the_rows_of_all_pages_in_the_chosen_columns() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for _ in 0..52 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let page = ada.get("/console/orders?partner=acme").await;
    let page = page.assert(200, "name=\"columns\" value=\"Order\" checked");
    assert!(page.text.contains("type=\"hidden\" name=\"partner\" value=\"acme\""));
    let url = "/console/orders?partner=acme&format=csv&columns=Status&columns=Order";
    let file = ada.get(url).await.assert(200, "Order,Status\r\n");
    assert!(file.reply.body.is_empty(), "it is made while it is sent");
    let lines: Vec<_> = file.text.lines().collect();
    assert_eq!(lines.len(), 53);
    assert!(lines[1..].iter().all(|line| line.ends_with(",pending")), "{}", file.text);
    let unknown = ada.get("/console/orders?format=csv&columns=Order,Colour").await;
    unknown.assert(422, "there is no column Colour");
    ada.get("/console/orders?format=csv&from=yesterday").await.assert(422, "Not understood");
    ada.get("/console/approvals?format=csv&columns=State").await.assert(200, "State\r\n");
}

#[tokio::test]
async fn a_file_of_users_is_posted_and_every_page_of_it_stands_in_the_audit() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for number in 0..51 {
        acme.user(&format!("user{number}")).await;
    }
    let bob = Browser::of(&context, "bob", &["support"]).await;
    let criteria = [("partner", "acme"), ("format", "csv"), ("columns", "Last name")];
    let file = bob.submit("/console/users", &criteria).await.assert(200, "Last name\r\n");
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert_eq!(file.text.matches("Lovelace").count(), 51);
    let list = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let reads = list.as_array().unwrap().iter().filter(|row| row["action"] == "user.search");
    assert_eq!(reads.count(), 2);
    let forged = [("format", "csv"), ("csrfToken", "forged")];
    let forged = bob.post("/console/users", &forged).await.assert(403, "earlier sign-in");
    assert!(forged.reply.file.is_none() && !forged.text.contains("Lovelace"));
    let eve = Browser::of(&context, "eve", &["viewer"]).await;
    let refused = eve.post("/console/users", &criteria).await;
    assert!(refused.status == 403 && refused.reply.file.is_none(), "{}", refused.text);
}

#[tokio::test]
async fn a_file_ends_with_the_session_that_asked_for_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for _ in 0..=200 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let head = ada.head(Method::GET, "/console/orders?format=csv&columns=Order");
    let reply = Box::pin(listener::answer(context.core(), head, Bytes::new())).await;
    let mut file = reply.file.unwrap();
    let first = file.next().await.unwrap().unwrap();
    let lines = first.split(|byte| *byte == b'\n').count();
    assert_eq!((lines, first.starts_with(b"Order\r\n")), (1 + 200 + 1, true), "a page of the call");
    let disabled = json!({"disabled": true});
    context.admin(Method::PATCH, "/admin/v1/operators/ada", disabled).await.assert_status(204);
    assert!(file.next().await.unwrap().is_err(), "nobody may take it for the whole");
}

#[tokio::test]
async fn a_file_is_made_on_connections_of_operators() {
    let context = TestContext::with(|settings| {
        settings.database.acquire_timeout_ms = 5_000;
    })
    .await;
    let acme = context.partner("acme").await;
    for _ in 0..=200 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let ada = Browser::of(&context, "ada", &["viewer"]).await;
    let mut held = Vec::new();
    for _ in 0..context.core().settings.database.worker_connections_max {
        held.push(PoolKind::Workers.run(context.core().db.acquire()).await.unwrap());
    }
    let file = ada.get("/console/orders?format=csv&columns=Order").await.assert(200, "Order\r\n");
    assert_eq!(file.text.lines().count(), 1 + 201);
}

/// A named API key and a version of the fee policy of acme.
async fn key_and_version(context: &TestContext) {
    let key = json!({"name": "office", "scopes": ["quotes:read"]});
    let keys = "/admin/v1/partners/acme/api-keys";
    context.admin(Method::POST, keys, key).await.assert_status(201);
    let policy = "/admin/v1/partners/acme/policies/fee";
    context.admin_bytes(Method::PUT, policy, component("tiered-fee")).await.assert_status(200);
}

#[tokio::test]
async fn a_list_of_what_something_has_is_a_file_too() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    key_and_version(&context).await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    acme.post("/api/v2/webhooks", hook).await.assert_status(200);
    let invited = json!({"email": "eve@acme.example", "role": "owner"});
    let staff = "/admin/v1/partners/acme/staff";
    context.admin(Method::POST, staff, invited).await.assert_status(201);
    let user = acme.user("ada").await;
    let photo = json!({"name": "Ada Lovelace", "iban": "NL91ABNA0417164300",
        "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="});
    user.post("/api/v1/user/verify/iban/photo", &photo).await.assert_status(200);
    let user = user.log_in().await["uuid"].as_str().unwrap().to_owned();
    Connector::new(&context, "cards", &["payment.create"]).await;
    Connector::new(&context, "bank", &["transfer.send"]).await;
    let route = json!({"partner": "acme", "method": "creditCard", "direction": "in",
        "connector": "cards"});
    let routes = json!({ "routes": [route] });
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let statement = "date,amount,currency,reference,providerReference,name,iban\n\
        2026-03-01,-20,EUR,fee,bank-2,Bank,NL91ABNA0417164300\n";
    let laid = "/admin/v1/reconciliations?connector=bank";
    let laid = context.admin_bytes(Method::POST, laid, statement.into()).await;
    let laid = laid.assert_status(201).json()["id"].as_str().unwrap().to_owned();
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    for (path, heads, row) in [
        ("partners/acme/~/keys", "Key,Id,Scopes,Networks,Ends,Last use\r\n", ",quotes:read,"),
        (
            "partners/acme/~/webhooks",
            "URL,State,Events,Failing since,Made\r\n",
            "https://shop.example.com/hook,active,",
        ),
        ("partners/acme/~/staff", "Address,Role,Joined,", "eve@acme.example,owner,"),
        (
            "partners/acme/policies/fee/~/versions",
            "Version,Active,Name,",
            "\r\n1,yes,rampart/tiered-fee,",
        ),
        (&*format!("users/{user}/~/accounts"), "Account,Type,Name,", "NL91ABNA0417164300,"),
        ("operators/ada/~/tokens", "Token,Made by,Made,Ends\r\n", ",admin,"),
        ("operators/ada/~/sessions", "Session,With a token,Roles,", ",yes,owner,"),
        ("market/~/routes/~/routes", "Partner,Direction,", "acme,in,creditCard,,cards\r\n"),
        (
            &*format!("ledger/reconciliations/{laid}/~/differences"),
            "Found in,Reference,Amount,By the books\r\n",
            "bank-2,'-20 EUR,",
        ),
    ] {
        let file = ada.get(&format!("/console/{path}?format=csv")).await.assert(200, row);
        assert!(file.text.starts_with(heads), "{path}: {}", file.text);
        assert_eq!(file.header("content-type"), "text/csv; charset=utf-8", "{path}");
        let name = path.rsplit('/').next().unwrap();
        let disposition = format!("attachment; filename=\"{name}.csv\"");
        assert_eq!(file.header("content-disposition"), disposition);
        ada.get(&format!("/console/{path}")).await.assert(200, "</h1>");
    }
    let chosen = "/console/partners/acme/~/webhooks?format=csv&columns=State";
    ada.get(chosen).await.assert(200, "State\r\nactive\r\n");
    // The page of the thing leads to its file.
    let form = "action=\"/console/partners/acme/~/keys\"";
    ada.get("/console/partners/acme").await.assert(200, form);
    ada.get("/console/partners/nobody/~/keys?format=csv").await.assert(404, "Not found");
    let viewer = Browser::of(&context, "bob", &["viewer"]).await;
    viewer.get("/console/partners/acme/~/staff?format=csv").await.assert(403, "Not for your role");
}
