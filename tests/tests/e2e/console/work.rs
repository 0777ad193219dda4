//! A day of two operators: the queue, payments, a policy's canary, and a partner that goes live.

use rampart_tests::guests::component;
use rampart_tests::mail_server::MailServer;

use super::*;

/// Orders in the review queue.
const QUEUE: usize = 6;

/// The browser of an operator, and the start of the console's URLs.
struct Desk<'a> {
    browser: Browser,
    edge: &'a Edge,
}

impl<'a> Desk<'a> {
    async fn open(edge: &'a Edge, name: &str) -> Self {
        let browser = Browser::start().await;
        sign_in(&browser, edge, &owner(edge, name).await).await;
        Self { browser, edge }
    }

    async fn visit(&self, page: &str) {
        self.browser.open(&format!("http://{}/console{page}", self.edge.admin)).await;
    }

    /// Follows a link to a form, types, and sends it.
    async fn act(&self, link: &str, typed: &[(&str, &str)]) {
        self.browser.click(link).await;
        for (field, text) in typed {
            self.browser.enter(&format!("main [name='{field}']"), text).await;
        }
        self.browser.click("main form button").await;
    }

    /// Agrees to the only call that waits for this operator.
    async fn agree(&self) {
        self.visit("/approvals").await;
        self.act("a[href$='/grant']", &[]).await;
        self.browser.shows("Done: Agree.").await;
    }

    /// Makes the only call that was agreed to.
    async fn carry_out(&self) {
        self.visit("/approvals").await;
        self.act("a[href$='/carry-out']", &[]).await;
        self.browser.shows("The call is carried out.").await;
    }
}

/// The answer to a call of the operators' API.
async fn call(edge: &Edge, method: Method, path: &str, body: Value) -> Value {
    let answer = edge.admin(method, &format!("/admin/v1/{path}"), body).await;
    assert!(answer.status() < 300, "{path}: {}", answer.text());
    answer.json()
}

/// The id of a payment that names no order, and waits in suspense.
async fn received(edge: &Edge, amount: u32, reference: &str) -> String {
    let payment = json!({"kind": "received", "amount": amount, "currency": "EUR",
        "providerReference": reference, "reason": "on the statement"});
    let made = call(edge, Method::POST, "payments", payment).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn status(edge: &Edge, order: u64) -> String {
    let order = call(edge, Method::GET, &format!("orders/{order}"), Value::Null).await;
    order["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_operator_clears_the_review_queue() {
    let edge = Edge::start().await;
    let partner = edge.partner("shop").await.authenticated().await;
    for _ in 0..QUEUE {
        let order = order_of(&order(&partner).await);
        for event in
            [json!({"event": "payment-received"}), json!({"event": "hold", "reason": "look"})]
        {
            call(&edge, Method::POST, &format!("orders/{order}/events"), event).await;
        }
    }
    let ada = Desk::open(&edge, "ada").await;
    for _ in 0..QUEUE {
        ada.visit("/reviews").await;
        ada.browser.click("main a.button").await;
        ada.act("a[href$='/claim']", &[]).await;
        ada.browser.shows("Done: Claim.").await;
        ada.browser.click("main a.button").await;
        ada.act("a[href$='/release']", &[("reason", "looked at")]).await;
        ada.browser.shows("Done: Release.").await;
    }
    ada.visit("/reviews").await;
    ada.browser.shows("Nobody waits for a decision.").await;
}

#[tokio::test]
async fn operators_match_a_payment_and_refund_another_together() {
    let edge = Edge::start().await;
    let partner = edge.partner("shop").await.authenticated().await;
    let open = order_of(&order(&partner).await);
    let nameless = received(&edge, 100, "no number").await;
    let large = received(&edge, 5000, "a stranger").await;
    let (ada, bob) = (Desk::open(&edge, "ada").await, Desk::open(&edge, "bob").await);

    ada.visit("/payments?state=unmatched").await;
    ada.browser.click(&format!("a[href$='{nameless}']")).await;
    ada.act(&format!("a[href$='/match?orderId={open}']"), &[]).await;
    ada.browser.shows("Done: Match to an order.").await;
    assert_ne!(status(&edge, open).await, "pending");

    ada.visit(&format!("/payments/{large}")).await;
    ada.act("a[href$='/refund']", &[("reason", "nobody knows the sender")]).await;
    ada.browser.shows("Another operator must agree first.").await;
    bob.agree().await;
    ada.carry_out().await;
    let payment = call(&edge, Method::GET, &format!("payments/{large}"), Value::Null).await;
    assert_eq!(payment["refundRequested"], 5000, "{payment}");
}

#[tokio::test]
async fn an_operator_starts_a_canary_and_two_take_a_partner_live() {
    let mail = MailServer::start().await;
    let edge = Edge::with(|setup| {
        setup.set("mail.smtp_url", mail.url());
        setup.set("mail.from", "console@example.com");
    })
    .await;
    // Routes and prices are there once another one is live.
    edge.partner_of(json!({"slug": "live-shop", "name": "Live", "mode": "live"})).await;
    edge.partner("shop").await;
    for _ in 0..2 {
        let path = "/admin/v1/partners/shop/policies/fee";
        let pushed = edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await;
        pushed.assert_status(200);
    }
    call(&edge, Method::POST, "partners/shop/policies/fee/rollback", json!({})).await;
    let (ada, bob) = (Desk::open(&edge, "ada").await, Desk::open(&edge, "bob").await);

    ada.visit("/partners/shop/policies/fee").await;
    let typed = [("percentage", "10"), ("reason", "first users")];
    ada.act("a[href$='/versions/2/activate']", &typed).await;
    ada.browser.shows("Done: Activate.").await;
    ada.browser.shows("10 %").await;
    let policy = call(&edge, Method::GET, "partners/shop/policies/fee", Value::Null).await;
    assert_eq!((&policy["active"], &policy["trial"]["percentage"]), (&json!(1), &json!(10)));

    ada.visit("/partners/shop").await;
    ada.act("a[href$='/go-live']", &[]).await;
    ada.browser.shows("Another operator must agree first.").await;
    bob.agree().await;
    ada.carry_out().await;
    let partner = call(&edge, Method::GET, "partners/shop", Value::Null).await;
    assert_eq!(partner["mode"], "live");
}
