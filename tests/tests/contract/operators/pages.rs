//! Pages of lists: `limit`, `after` and `Link` are alike everywhere.

use rampart_tests::buyer::WALLET;
use rampart_tests::connector::Connector;
use rampart_tests::document::OPERATORS;
use rampart_tests::keys::ed25519;
use rampart_tests::order_fixture::OrderFixture;

use super::*;

/// Lists, and the member that names a row.
const LISTS: [(&str, &str); 25] = [
    ("partners", "slug"),
    ("operators", "name"),
    ("approvals", "id"),
    ("orders", "id"),
    ("payments", "id"),
    ("ledger/entries", "id"),
    ("deliveries", "id"),
    ("mail", "id"),
    ("users", "uuid"),
    ("dca-codes", "code"),
    ("reviews", "id"),
    ("reconciliations", "id"),
    ("audit", "id"),
    ("connectors", "name"),
    ("pairs", "pair"),
    ("prices", "pair"),
    ("payment-methods", "code"),
    ("currencies", "code"),
    ("maintenance-windows", "id"),
    ("operator-keys", "name"),
    ("receipt-keys", "keyId"),
    ("ledger/balances", "accountId"),
    ("partners/acme/staff", "id"),
    ("partners/acme/webhooks", "id"),
    ("partners/acme/verification-keys", "name"),
];
/// Calls whose `after` is a place in a chain, not a page.
const CHAINS: [&str; 2] = ["/admin/v1/audit/verification", "/admin/v1/ledger/check"];

/// Three of everything that is listed.
async fn fill(context: &TestContext) {
    let ada = Operator::new(context, "ada", &["treasury"]).await;
    for name in ["bob", "eve"] {
        Operator::new(context, name, &["viewer"]).await;
    }
    let acme = context.partner("acme").await;
    for slug in ["beta", "gamma"] {
        context.partner(slug).await;
    }
    // An exact payment, for accounts of the books.
    let paid = OrderFixture::order(context, &acme, None, None).await;
    paid.event(context, "payment-received").await.assert_status(200);
    for number in 1..=3_u8 {
        let price = json!({"price": 40_000 + i32::from(number)});
        ada.call(Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(202);
        OrderFixture::ended(context, &acme, "http://127.0.0.1:9/hook").await;
        // Too little: it waits for a person.
        let order = OrderFixture::order(context, &acme, None, None).await;
        let payment = json!({"orderId": order.id, "kind": "received", "amount": 62.5,
            "currency": "EUR", "providerReference": number.to_string(), "reason": "seen"});
        context.admin(Method::POST, "/admin/v1/payments", payment).await.assert_status(201);
        let user = acme.user(&format!("user{number}")).await.log_in().await;
        let plans = format!("/admin/v1/users/{}/dca-codes", user["uuid"].as_str().unwrap());
        let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET});
        context.admin(Method::POST, &plans, plan).await.assert_status(201);
        let statement = "date,amount,currency,reference,providerReference,name,iban\n\
                         2026-03-01,-20,EUR,fee,bank-2,Bank,NL91ABNA0417164300\n";
        let laid = "/admin/v1/reconciliations?connector=manual";
        context.admin_bytes(Method::POST, laid, statement.into()).await.assert_status(201);
        let invited = json!({"email": format!("{number}@acme.example"), "role": "support"});
        let staff = "/admin/v1/partners/acme/staff";
        context.admin(Method::POST, staff, invited).await.assert_status(201);
        Connector::new(context, &format!("cards{number}"), &["payment.create"]).await;
        let key = json!({"publicKey": ed25519(number).1});
        let path = format!("/admin/v1/operator-keys/key{number}");
        context.admin(Method::PUT, &path, key).await.assert_status(200);
        let key = json!({"algorithm": "ed25519", "key": ed25519(number).1});
        let path = format!("/admin/v1/partners/acme/verification-keys/key{number}");
        context.admin(Method::PUT, &path, key).await.assert_status(200);
        let rotate = "/admin/v1/receipt-keys/rotate";
        context.admin(Method::POST, rotate, Value::Null).await.assert_status(200);
        let hook = json!({"url": format!("https://shop.example.com/{number}")});
        acme.post("/api/v2/webhooks", hook).await.assert_status(200);
        let window = json!({"pair": "XRP-EUR", "startsAt": "2999-01-01T00:00:00Z",
            "endsAt": "2999-01-02T00:00:00Z", "reason": "upgrade"});
        let windows = "/admin/v1/maintenance-windows";
        context.admin(Method::POST, windows, window).await.assert_status(201);
    }
}

/// The rows of a page as `member` names them, and its link.
async fn page(context: &TestContext, url: &str, member: &str) -> (Vec<String>, Option<String>) {
    let answer = context.admin(Method::GET, url, Value::Null).await;
    answer.assert_status(200);
    let rows = answer.json();
    let link = answer.header("link").map(|link| {
        let url = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
        url.unwrap_or_else(|| panic!("{link}")).to_owned()
    });
    (rows.as_array().unwrap().iter().map(|row| row[member].to_string()).collect(), link)
}

#[tokio::test]
async fn a_link_leads_from_page_to_page_without_a_gap() {
    let context = TestContext::start().await;
    fill(&context).await;
    for (list, member) in LISTS {
        let path = format!("/admin/v1/{list}");
        let (whole, link) = page(&context, &path, member).await;
        assert!(whole.len() > 2 && link.is_none(), "{list}: {whole:?} {link:?}");
        let (mut seen, mut next) = (Vec::new(), Some(format!("{path}?limit=2")));
        while let Some(url) = next {
            let (rows, link) = page(&context, &url, member).await;
            assert!(rows.len() == 2 || link.is_none(), "{url}: {rows:?}");
            seen.extend(rows);
            next = link;
        }
        assert_eq!(seen, whole, "{list}");
        for limit in ["0", "-1", "x", "1000000"] {
            let url = format!("{path}?limit={limit}");
            context.admin(Method::GET, &url, Value::Null).await.assert_status(422);
        }
    }
}

#[tokio::test]
async fn an_after_that_no_row_has_is_no_end_of_the_list() {
    let context = TestContext::start().await;
    fill(&context).await;
    // Lists in the order of a time, which `after` names by its row, and those that are read whole.
    let in_time =
        ["orders", "payments", "ledger/entries", "screenings", "audit", "maintenance-windows"];
    let whole = ["ledger/balances", "connectors", "partners/acme/webhooks", "currencies"];
    for list in in_time.into_iter().chain(whole) {
        let after = if list == "orders" { "1" } else { "0199a000-0000-7000-8000-0000000000ff" };
        let url = format!("/admin/v1/{list}?after={after}");
        let answer = context.admin(Method::GET, &url, Value::Null).await;
        answer.assert_status(422);
        assert!(answer.text().contains("after"), "{url}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_criterion_stands_in_the_link() {
    let context = TestContext::start().await;
    fill(&context).await;
    for (list, criterion) in [("audit", "target=acme"), ("deliveries", "state=pending")] {
        let url = format!("/admin/v1/{list}?{criterion}&limit=1");
        let (_, link) = page(&context, &url, "id").await;
        let link = link.unwrap_or_else(|| panic!("{url}"));
        assert!(link.starts_with(&format!("{url}&after=")), "{link}");
    }
}

#[tokio::test]
async fn a_page_of_large_calls_that_wait_ends_early() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let partner = "/admin/v1/partners/acme";
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, partner, demand).await.assert_status(200);
    let versions = format!("{partner}/policies/fee/versions");
    let component = "A".repeat(3 * 1024 * 1024);
    for reason in ["1", "2", "3"] {
        let body = json!({"component": component, "activate": true, "reason": reason});
        ada.call(Method::POST, &versions, body).await.assert_status(202);
    }
    let (first, next) = page(&context, "/admin/v1/approvals", "id").await;
    let (rest, end) = page(&context, &next.unwrap(), "id").await;
    assert_eq!((first.len(), rest.len(), end), (2, 1, None));
}

#[test]
fn every_list_that_goes_on_takes_a_limit_and_has_a_link() {
    let mut lists = 0;
    for (path, call) in OPERATORS.value()["paths"].as_object().unwrap() {
        let named = |name: &str| {
            let parameters = call["get"]["parameters"].as_array();
            parameters.into_iter().flatten().any(|parameter| parameter["name"] == name)
        };
        if !named("after") || CHAINS.contains(&&**path) {
            continue;
        }
        lists += 1;
        let link = &call["get"]["responses"]["200"]["headers"]["Link"];
        assert!(named("limit") && link.is_object(), "{path}: {link}");
    }
    assert!(lists > LISTS.len(), "{lists}");
}
