//! Cards by the connector for Stripe, against localstripe: on the pay page in a browser, by webhook and
//! by polling, and with the connector killed between any two steps.

use std::time::Duration;

use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::browser::Browser;
use rampart_tests::buyer::{WALLET, order_of, quote};
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::going_live::CONNECTOR;
use rampart_tests::localstripe::{CardConnector, LocalStripe, webhooks_of};
use rampart_tests::process::Process;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

const GOOD: &str = "4242424242424242";
const REFUSED: &str = "4000000000000341";
const SECURED: &str = "4000002500003155";
/// For what a connector does that looks at the events each second.
const PATIENCE: Duration = Duration::from_secs(60);

/// A live partner whose payments by card go to the connector.
struct Shop {
    edge: Edge,
    partner: Caller,
    stripe: LocalStripe,
    connector: CardConnector,
    /// Token of the connector for coins.
    coins: String,
}

/// An order: its number, and the page where it is paid.
struct Order {
    id: u64,
    page: String,
}

impl Shop {
    async fn open() -> Self {
        let edge = Edge::with(|setup| {
            // A live partner needs mail; this one's shop has no users to write to.
            setup.set("mail.smtp_url", "smtp://127.0.0.1:1");
        })
        .await;
        let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
        let partner = edge.partner_of(body).await.authenticated().await;
        let stripe = LocalStripe::start().await;
        let connector = CardConnector::of(&edge, &stripe).await;
        let path = format!("/admin/v1/connectors/{CONNECTOR}/rotate");
        let rotated = edge.admin(Method::POST, &path, json!({})).await.assert_status(200).json();
        let coins = rotated["token"].as_str().unwrap().to_owned();
        Self { edge, partner, stripe, connector, coins }
    }

    /// Has the connector for coins send none: an order's refund is commanded behind its payout.
    async fn reject_payouts(&self) {
        let url = format!("http://{}/connectors/v1/commands", self.edge.connectors);
        let call = async |path: &str, body: Value| {
            let request = Protocol::Http1.client().post(format!("{url}/{path}"));
            let answer = request.bearer_auth(&self.coins).json(&body).send().await.unwrap();
            answer.error_for_status().unwrap().json::<Value>().await.unwrap()
        };
        let lease = json!({"max": 10, "kinds": ["payout.send"]});
        for command in call("lease", lease).await.as_array().unwrap() {
            let outcome = json!({"leaseToken": command["leaseToken"], "outcome": "rejected",
                "reason": "no coins are left"});
            call(&format!("{}/result", command["id"].as_str().unwrap()), outcome).await;
        }
    }

    async fn order(&self, return_url: &str) -> Order {
        let quote = quote(&self.partner).await["quote"].take();
        let body = json!({"quote": quote, "walletAddress": WALLET, "returnUrl": return_url});
        let confirmed = self.partner.post("/api/v1/buy/confirm", body).await;
        let page = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
        Order { id: order_of(&confirmed), page }
    }

    async fn status(&self, order: &Order) -> String {
        let path = format!("/api/v2/buy/orders/{}", order.id);
        let order = self.partner.get(&path).await.assert_status(200).json();
        order["status"].as_str().unwrap().to_owned()
    }

    async fn reaches(&self, order: &Order, status: &str) {
        until(&format!("the order is {status}"), PATIENCE, async || {
            (self.status(order).await == status).then_some(())
        })
        .await;
    }

    /// The payments on record for an order, oldest first.
    async fn payments(&self, order: &Order) -> Vec<Value> {
        let path = format!("/admin/v1/payments?order={}", order.id);
        let listed = self.edge.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        let mut payments = listed.as_array().unwrap().clone();
        payments.sort_by_key(|payment| payment["recordedAt"].as_str().unwrap().to_owned());
        payments
    }

    async fn kinds(&self, order: &Order) -> Vec<String> {
        let payments = self.payments(order).await;
        payments.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// Has an operator give the order's payment back.
    async fn refund(&self, order: &Order) {
        let payments = self.payments(order).await;
        let path = format!("/admin/v1/payments/{}/refund", payments[0]["id"].as_str().unwrap());
        let body = json!({"reason": "the customer asked for it"});
        self.edge.admin(Method::POST, &path, body).await.assert_status(200);
    }
}

impl Order {
    /// The token with which the page has the payment made, once there is one.
    async fn client_token(&self) -> Option<String> {
        let page = Protocol::Http1.client().get(&self.page).send().await.unwrap();
        let text = page.text().await.unwrap();
        let (_, rest) = text.split_once("data-client-token=\"")?;
        Some(rest.split_once('"').unwrap().0.to_owned())
    }
}

/// Types a card into the provider's form and sends it.
async fn enter(browser: &Browser, card: &str) {
    for (field, text) in [("number", card), ("exp_month", "12"), ("exp_year", "30"), ("cvc", "123")]
    {
        browser.enter(&format!("#card-element input[placeholder={field}]"), text).await;
    }
    browser.click("#card-form button").await;
}

/// Opens the page and waits until its form can be used.
async fn open(browser: &Browser, order: &Order) {
    browser.open(&order.page).await;
    until("the form for cards is there", SOON, async || {
        let ready =
            "const b = document.querySelector('#card-form button'); return !!b && !b.disabled";
        browser.run(ready).await.as_bool().unwrap().then_some(())
    })
    .await;
}

/// Presses a button of the bank's dialog: the first one authenticates, the second does not.
async fn authenticate(browser: &Browser, button: u32) {
    browser.shows("Complete authentication").await;
    browser.click(&format!("body > div > button:nth-of-type({button})")).await;
}

#[tokio::test]
async fn a_payer_pays_by_card_in_a_browser() {
    let shop = Shop::open().await;
    let connector = shop.connector.start(true);
    let webhooks = webhooks_of(&connector).await;
    strangers_are_refused(&webhooks).await;
    shop.stripe.send_webhooks("first", &webhooks).await;
    shop.stripe.send_webhooks("again", &webhooks).await;
    let browser = Browser::start().await;
    let host = Receiver::start().await;
    let back = |name: &str| host.url(&format!("/back-{name}"));

    let paid = shop.order(&back("paid")).await;
    open(&browser, &paid).await;
    browser.shows("Pay 100.00 EUR").await;
    enter(&browser, GOOD).await;
    browser.reaches(&back("paid")).await;
    assert_eq!(shop.status(&paid).await, "in progress");
    until("the second webhook is known", PATIENCE, async || {
        connector.err().iter().any(|line| line.contains("is_known=true")).then_some(())
    })
    .await;
    assert_eq!(shop.kinds(&paid).await, ["received"], "two webhooks are one fact");

    let refused = shop.order(&back("refused")).await;
    open(&browser, &refused).await;
    enter(&browser, REFUSED).await;
    browser.shows("Your card was declined. Nothing was charged.").await;
    assert_eq!(shop.status(&refused).await, "pending", "another card may follow");
    enter(&browser, GOOD).await;
    browser.reaches(&back("refused")).await;

    let secured = shop.order(&back("secured")).await;
    open(&browser, &secured).await;
    enter(&browser, SECURED).await;
    authenticate(&browser, 2).await;
    browser.shows("Nothing was charged. Please try again").await;
    enter(&browser, SECURED).await;
    authenticate(&browser, 1).await;
    browser.reaches(&back("secured")).await;
    assert_eq!(shop.status(&secured).await, "in progress");

    let complaints = browser.complaints().await;
    let of_policy = complaints.iter().filter(|line| line.contains("Content Security Policy"));
    assert_eq!(of_policy.collect::<Vec<_>>(), [""; 0]);
}

/// Nobody but the provider is listened to.
async fn strangers_are_refused(webhooks: &str) {
    let client = Protocol::Http1.client();
    let event = json!({"id": "evt_1", "type": "payment_intent.succeeded", "created": 1,
        "data": {"object": {"id": "pi_1"}}});
    let forged = client.post(webhooks).header("stripe-signature", "t=1,v1=00").json(&event);
    assert_eq!(forged.send().await.unwrap().status(), 400);
    let unsigned = client.post(webhooks).json(&event).send().await.unwrap();
    assert_eq!(unsigned.status(), 400);
    assert_eq!(client.get(webhooks).send().await.unwrap().status(), 405);
    let large = client.post(webhooks).body(vec![b'x'; 256 * 1024 + 1]).send().await.unwrap();
    assert_eq!(large.status(), 413);
}

#[tokio::test]
async fn without_webhooks_polling_finds_payments_refunds_and_disputes() {
    let shop = Shop::open().await;
    let connector = shop.connector.start(false);
    let (given_back, disputed) =
        (shop.order("https://a.example/").await, shop.order("https://a.example/").await);
    for order in [&given_back, &disputed] {
        let token = until("the payment is made", SOON, async || order.client_token().await).await;
        assert_eq!(shop.stripe.charge(&token, GOOD).await["status"], "succeeded");
        shop.reaches(order, "in progress").await;
    }
    shop.reject_payouts().await;
    shop.refund(&given_back).await;
    shop.reaches(&given_back, "refunded").await;
    assert_eq!(shop.kinds(&given_back).await, ["received", "refunded"]);
    let payment = shop.stripe.payments_of(disputed.id).await.remove(0);
    let dispute = shop.stripe.dispute(&payment).await;
    let has = async |kinds: &[&str]| {
        until(&format!("{kinds:?}"), PATIENCE, async || {
            (shop.kinds(&disputed).await == kinds).then_some(())
        })
        .await;
    };
    has(&["received", "disputed"]).await;
    shop.stripe.close(&dispute, "lost").await;
    has(&["received", "disputed", "dispute-lost"]).await;
    assert!(connector.status().is_none(), "{:?}", connector.err());
}

/// A connector that is started again when it was killed.
struct Watched<'a> {
    shop: &'a Shop,
    context: TestContext,
    process: Process,
}

impl Watched<'_> {
    /// Has it killed at its next such request.
    async fn dies_at(&self, method: &Method, path: &str, effect: bool) {
        self.shop.stripe.kill_at(method, path, effect).await;
        self.shop.stripe.kills(&self.process).await;
    }

    /// Waits until it is gone and starts it again, to be killed again at such a request if one is
    /// named.
    async fn comes_back(&mut self, dies_at: Option<(&Method, &str, bool)>) {
        self.until("the connector is killed", async || self.process.status()).await;
        self.end_leases("leased_until is not null").await;
        if let Some((method, path, effect)) = dies_at {
            // Its request can come before anybody knows its process.
            self.shop.stripe.kill_at(method, path, effect).await;
        }
        self.process = self.shop.connector.start(false);
        self.shop.stripe.kills(&self.process).await;
    }

    /// Ends leases, as if their minute had passed.
    async fn end_leases(&self, which: &str) {
        let end =
            format!("update command set leased_until = now() where state = 'open' and {which}");
        sqlx::query(AssertSqlSafe(end)).execute(self.context.db()).await.unwrap();
    }

    /// Waits until `look` finds something. A lease that is 2 s old is a dead connector's, which it got
    /// while it died. It is ended once: one that ends anew at each look is never in the past of who
    /// looks for it.
    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        until(what, PATIENCE, async || {
            let old = "leased_until > now() and leased_until < now() + interval '58 seconds'";
            self.end_leases(old).await;
            look().await
        })
        .await
    }

    /// Waits until the order is in this status.
    async fn reaches(&self, order: &Order, status: &str) {
        let what = format!("the order is {status}");
        self.until(&what, async || (self.shop.status(order).await == status).then_some(())).await;
    }

    /// Kills it as soon as an edge has taken the news of a refund of this order.
    async fn dies_between_news_and_result(&self, order: &Order) {
        let kinds = async || self.shop.kinds(order).await;
        self.until("the refund is on record", async || (kinds().await.len() == 2).then_some(()))
            .await;
        self.process.kill();
    }
}

#[tokio::test]
async fn a_connector_killed_at_any_step_charges_and_refunds_nobody_twice() {
    let shop = Shop::open().await;
    let context = TestContext::beside(&shop.edge, Clock::system()).await;
    let process = shop.connector.start(false);
    let mut connector = Watched { shop: &shop, context, process };
    for effect in [false, true] {
        connector.dies_at(&Method::POST, "payment_intents", effect).await;
        let order = shop.order("https://a.example/").await;
        connector.comes_back(None).await;
        let token = connector.until("the payment is made", async || order.client_token().await);
        let token = token.await;
        let payment = format!("payment_intents/{}", token.split_once("_secret_").unwrap().0);
        connector.dies_at(&Method::GET, &payment, effect).await;
        assert_eq!(shop.stripe.charge(&token, GOOD).await["status"], "succeeded");
        connector.comes_back(None).await;
        connector.reaches(&order, "in progress").await;
        shop.reject_payouts().await;
        connector.dies_at(&Method::POST, "refunds", effect).await;
        shop.refund(&order).await;
        connector.comes_back(Some((&Method::GET, &payment, effect))).await;
        connector.comes_back(None).await;
        connector.dies_between_news_and_result(&order).await;
        connector.comes_back(None).await;
        connector.reaches(&order, "refunded").await;
        is_charged_and_refunded_once(&shop, &order).await;
    }
    connector
        .until("no command is left", async || {
            let path = "/admin/v1/connectors/stripe";
            let shown = shop.edge.admin(Method::GET, path, json!({})).await.json();
            (shown["queueLength"] == 0).then_some(())
        })
        .await;
    let check = shop.edge.admin(Method::GET, "/admin/v1/ledger/check", json!({})).await;
    assert_eq!(check.assert_status(200).json()["problems"], json!([]));
}

/// By the provider's account and by ours.
async fn is_charged_and_refunded_once(shop: &Shop, order: &Order) {
    let mut charged = shop.stripe.payments_of(order.id).await;
    charged.retain(|payment| payment["status"] == "succeeded");
    assert_eq!(charged.len(), 1, "{charged:?}");
    let refunds = shop.stripe.refunds_of(&charged[0]).await;
    assert_eq!(refunds.len(), 1, "{refunds:?}");
    assert_eq!(refunds[0]["amount"], 10_000);
    assert_eq!(shop.kinds(order).await, ["received", "refunded"]);
}

#[tokio::test]
async fn check_tells_what_is_wrong_in_one_sentence() {
    let shop = Shop::open().await;
    let good = shop.connector.run(true, &["--check"]);
    assert!(good.ended().await.success(), "{:?}", good.err());
    let nobody = CardConnector::of_nobody(&shop.stripe);
    let bad = nobody.run(false, &["--check"]);
    assert!(!bad.ended().await.success());
    assert_eq!(bad.err().len(), 1, "{:?}", bad.err());
    assert!(bad.err()[0].contains("the edge does not answer"), "{:?}", bad.err());
}
