//! Lists as files: every row of every page, in the columns that were chosen.

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
    let reply = Box::pin(context.core().admin(head, Bytes::new())).await;
    let mut file = reply.file.unwrap();
    let first = file.next().await.unwrap().unwrap();
    let lines = first.split(|byte| *byte == b'\n').count();
    assert_eq!((lines, first.starts_with(b"Order\r\n")), (1 + 200 + 1, true), "a page of the call");
    let disabled = json!({"disabled": true});
    context.admin(Method::PATCH, "/admin/v1/operators/ada", disabled).await.assert_status(204);
    assert!(file.next().await.unwrap().is_err(), "nobody may take it for the whole");
}
