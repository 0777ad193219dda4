//! A live partner with everything that moves its money and coins: edge, chain, cards, bank, and the
//! shipped connectors as processes.

use std::time::Duration;

use http::Method;
use rampart_tests::anvil::Anvil;
use rampart_tests::bank::BankAccount;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::chain_shop::ChainConnector;
use rampart_tests::deadline::until;
use rampart_tests::edge::Edge;
use rampart_tests::localstripe::{CardConnector, LocalStripe, webhooks_of};
use rampart_tests::mail_server::MailServer;
use rampart_tests::process::Process;
use rampart_tests::receiver::Receiver;
use rampart_tests::remote_connector::RemoteConnector;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::provider::IdentityProvider;

/// Time within which everything that is asked for has happened, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// EUR for a coin.
const PRICE: u32 = 2_500;

/// All of it.
pub(super) struct Market {
    pub(super) edge: Edge,
    pub(super) anvil: Anvil,
    pub(super) bank: BankAccount,
    pub(super) provider: IdentityProvider,
    /// The partner's site.
    pub(super) shop: Receiver,
    partner: Caller,
    user: Value,
    user_id: tokio::sync::OnceCell<String>,
    connectors: Vec<Process>,
    _stripe: LocalStripe,
    _cards: CardConnector,
    _chain: ChainConnector,
    _mail: MailServer,
}

impl Market {
    /// Starts everything, and makes the partner once nothing is missing for it to be live.
    pub(super) async fn open() -> Self {
        let (anvil, stripe, mail) =
            tokio::join!(Anvil::start(), LocalStripe::start(), MailServer::start());
        let edge = Edge::with(|setup| {
            setup.set("mail.smtp_url", mail.url());
            setup.set("mail.from", "shop@example.com");
            setup.set("connectors.deposit_addresses_min", "3");
        })
        .await;
        let made = json!({"slug": "acme", "name": "Acme", "mode": "live"});
        let refused = edge.admin(Method::POST, "/admin/v1/partners", made.clone()).await;
        assert_eq!(refused.assert_status(409).json()["missing"], json!(["route", "live price"]));
        let kinds = ["payment.create", "payment.cancel", "payment.refund", "transfer.send"];
        let bank = RemoteConnector::add(&edge, "bank", &kinds).await;
        let kinds = ["payout.send", "deposit.address"];
        let chain = RemoteConnector::add(&edge, "chain", &kinds).await;
        set_routes_and_price(&edge).await;
        let token = anvil.token().await;
        let chain = ChainConnector::new(&edge, &anvil, &token, &chain.token);
        let bank = BankAccount::new(edge.connectors, &bank.token);
        let cards = CardConnector::of(&edge, &stripe).await;
        let connectors = vec![cards.start(true), chain.spawn("evm", &[]), bank.spawn(&[])];
        stripe.send_webhooks("first", &webhooks_of(&connectors[0]).await).await;
        let provider = IdentityProvider::start(&edge).await;
        let made = edge.admin(Method::POST, "/admin/v1/partners", made).await;
        let made = made.assert_status(201).json();
        let partner = Caller::new(edge.address, Protocol::Http1, made);
        let market = Self {
            edge,
            anvil,
            bank,
            provider,
            shop: Receiver::start().await,
            partner,
            user: registration("ada"),
            user_id: tokio::sync::OnceCell::new(),
            connectors,
            _stripe: stripe,
            _cards: cards,
            _chain: chain,
            _mail: mail,
        };
        market.has_addresses().await;
        market
    }

    /// Waits until the connector has made addresses that coins can be sold to.
    async fn has_addresses(&self) {
        until("the connector has made addresses", PATIENCE, async || {
            self.all_run();
            let path = "/admin/v1/connectors/chain";
            let shown = self.edge.admin(Method::GET, path, json!({})).await.json();
            (shown["queueLength"] == 0 && !shown["lastContactAt"].is_null()).then_some(())
        })
        .await;
    }

    /// The link of a checkout for so many EUR of ETH.
    pub(super) async fn checkout(&self, fiat: u32) -> String {
        let body = json!({"baseCurrency": "ETH", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": fiat});
        let made = self.partner.post("/api/v2/buy/checkout", body).await.assert_status(200).json();
        made["checkoutUrl"].as_str().unwrap().to_owned()
    }

    /// Registers the user, whom the provider screens.
    pub(super) async fn register(&self) {
        self.partner.post("/api/v2/user", self.user.clone()).await.assert_status(200);
        self.provider.clear("person").await;
        let login = json!({"emailAddress": self.user["email"], "password": self.user["password"]});
        let login = self.partner.post("/api/v1/user/login", login).await.assert_status(200).json();
        let uuid = login["uuid"].as_str().unwrap().to_owned();
        self.user_id.set(uuid).unwrap();
    }

    /// A call for the user that the edge grants.
    pub(super) async fn asked(&self, path: &str, body: Value) -> Value {
        let request = self.partner.request(Method::POST, path);
        let identifier = self.user["identifier"].as_str().unwrap();
        let answer = request.header("user-identifier", identifier).json(&body).send().await;
        answer.assert_status(200).json()
    }

    /// Reads as the user.
    pub(super) async fn asked_for(&self, path: &str) -> Value {
        let request = self.partner.request(Method::GET, path);
        let identifier = self.user["identifier"].as_str().unwrap();
        request.header("user-identifier", identifier).send().await.assert_status(200).json()
    }

    /// Path of the user in the operators' API.
    pub(super) fn user_path(&self) -> String {
        format!("/admin/v1/users/{}", self.user_id.get().unwrap())
    }

    /// The order as an operator sees it.
    pub(super) async fn order(&self, order: u64) -> Value {
        let path = format!("/admin/v1/orders/{order}");
        self.edge.admin(Method::GET, &path, Value::Null).await.assert_status(200).json()
    }

    /// Waits until the order is in this status.
    pub(super) async fn reaches(&self, order: u64, status: &str) {
        until(&format!("the order is {status}"), PATIENCE, async || {
            self.all_run();
            (self.order(order).await["status"] == status).then_some(())
        })
        .await;
    }

    /// Fails if a connector has ended.
    pub(super) fn all_run(&self) {
        for connector in &self.connectors {
            assert!(connector.status().is_none(), "{:?}", connector.err());
        }
    }
}

/// Leads sales to the bank and coins to the chain, and gives coins a price that ends. The cards find
/// their way when their connector is made.
async fn set_routes_and_price(edge: &Edge) {
    let route = |leg: &str, of: &str, direction: &str, connector: &str| json!({"partner": null, leg: of, "direction": direction, "connector": connector});
    let routes = json!({"routes": [
        route("method", "bankTransfer", "in", "bank"),
        route("method", "bankTransfer", "out", "bank"),
        route("asset", "ETH", "in", "chain"),
        route("asset", "ETH", "out", "chain"),
    ]});
    for (method, path, body) in [
        (Method::PUT, "/admin/v1/routes", routes),
        (Method::PATCH, "/admin/v1/pairs/ETH-EUR", json!({"priceMaxAgeSeconds": 3_600})),
        (Method::PUT, "/admin/v1/prices/ETH-EUR", json!({ "price": PRICE })),
    ] {
        edge.admin(method, path, body).await.assert_status(200);
    }
}
