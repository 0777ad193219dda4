//! A partner whose coins go over a real chain: an edge, anvil, and the connector for Ethereum
//! between them. The cards are the test's.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::anvil::{Anvil, CHAIN_ID, TREASURY_KEY};
use crate::bank;
use crate::caller::Caller;
use crate::deadline::until;
use crate::edge::{Edge, Folder};
use crate::process::Process;
use crate::remote_connector::RemoteConnector;

/// Blocks with which a transaction is final in these tests.
pub const CONFIRMATIONS: u64 = 3;
/// Free deposit addresses of each asset.
pub const ADDRESSES: u32 = 3;
/// The shortest lease: what a killed connector had goes on after it.
const LEASE_SECONDS: u64 = 10;
/// Payouts on their way into a block at once.
const SLOTS: u32 = 50;
/// The treasury's key, as a configuration has it.
const TREASURY_FILE: &str = "key = { file = \"$FOLDER/key\" }";
/// A BIP-32 seed.
const SEED: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The edge, the chain, the partner.
pub struct ChainShop {
    /// The edge.
    pub edge: Edge,
    /// The chain.
    pub anvil: Anvil,
    /// The token that is sold as USDC.
    pub token: String,
    /// The partner.
    pub partner: Caller,
    cards: RemoteConnector,
    chain: ChainConnector,
}

impl ChainShop {
    /// Starts edge and chain, and leads the partner's coins to the connector. Which is not started.
    pub async fn start() -> Self {
        let anvil = Anvil::start().await;
        let token = anvil.token().await;
        let addresses = ADDRESSES.to_string();
        let edge = Edge::with(|setup| {
            setup.set("connectors.deposit_addresses_min", addresses);
        })
        .await;
        let partner = edge.partner("acme").await.authenticated().await;
        let cards = ["payment.create", "transfer.send"];
        let cards = RemoteConnector::add(&edge, "cards", &cards).await;
        let chain = ["payout.send", "deposit.address"];
        let chain = RemoteConnector::add(&edge, "chain", &chain).await.token;
        let mut routes = Vec::new();
        for (method, direction) in [("creditCard", "in"), ("bankTransfer", "out")] {
            routes.push(json!({"partner": "acme", "method": method, "direction": direction,
                "connector": "cards"}));
        }
        for (asset, direction) in [("ETH", "in"), ("ETH", "out"), ("USDC", "in"), ("USDC", "out")] {
            routes.push(json!({"partner": "acme", "asset": asset, "direction": direction,
                "connector": "chain"}));
        }
        let put = edge.admin(Method::PUT, "/admin/v1/routes", json!({ "routes": routes })).await;
        put.assert_status(200);
        let chain = ChainConnector::new(&edge, &anvil, &token, &chain);
        Self { edge, anvil, token, partner, cards, chain }
    }

    /// Writes a configuration with this key.
    pub fn configure(&self, name: &str, key: &str) {
        self.chain.configure(name, key);
    }

    /// Writes a configuration that has so many payouts on their way into a block at once.
    pub fn configure_slots(&self, name: &str, slots: u32) {
        self.chain.write_configuration(name, TREASURY_FILE, slots);
    }

    /// The connector with the configuration of this name, and these arguments.
    pub fn connector(&self, name: &str, arguments: &[&str]) -> Process {
        self.chain.spawn(name, arguments)
    }

    /// Confirms a purchase of so many EUR; its order.
    pub async fn order(&self, pair: &str, wallet: &str, fiat: u32) -> u64 {
        let body = json!({"currencyPair": pair, "paymentMethod": "creditCard", "fiatAmount": fiat});
        let quote = self.partner.post("/api/v1/buy/quote", body).await.assert_status(200).json();
        let body = json!({"quote": quote["quote"], "walletAddress": wallet,
            "returnUrl": crate::buyer::RETURN_URL});
        let confirmed = self.partner.post("/api/v1/buy/confirm", body).await;
        crate::buyer::order_of(&confirmed)
    }

    /// Has the cards pay every order that waits for it, until so many are paid.
    pub async fn pay(&self, count: usize) {
        let mut paid = 0;
        until("the orders are paid", Duration::from_secs(60), async || {
            let lease = json!({"max": 100, "waitSeconds": 1, "leaseSeconds": 60,
                "kinds": ["payment.create"]});
            let leased = self.cards.call("commands/lease", lease).await;
            for command in leased.as_array().unwrap() {
                self.pay_one(command).await;
                paid += 1;
            }
            (paid >= count).then_some(())
        })
        .await;
    }

    async fn pay_one(&self, command: &Value) {
        let (id, body) = (command["id"].as_str().unwrap(), &command["body"]);
        let result = json!({"redirectUrl": "https://psp.example/pay", "providerReference": id});
        self.cards.done(command, result).await;
        let received = json!({"id": id, "kind": "payment.received", "partner": "acme",
            "occurredAt": "2026-03-01T12:00:00Z", "orderId": body["orderId"],
            "providerReference": id, "amount": body["amount"], "currency": body["currency"]});
        self.cards.call("events", received).await;
    }

    /// The order as its partner reads it.
    pub async fn read(&self, order: u64) -> Value {
        let path = format!("/api/v2/buy/orders/{order}");
        self.partner.get(&path).await.assert_status(200).json()
    }

    /// Ends when the order is complete; fails if the connector has ended.
    pub async fn complete(&self, connector: &Process, order: u64) -> Value {
        until("the order is complete", Duration::from_secs(240), async || {
            assert!(connector.status().is_none(), "{:?}", connector.err());
            let read = self.read(order).await;
            (read["status"] == "completed").then_some(read)
        })
        .await
    }
}

/// The settings of the connector for Ethereum, and a folder for them.
pub struct ChainConnector {
    edge: SocketAddr,
    rpc_url: String,
    /// Address of the token that is sold as USDC.
    token: String,
    folder: Folder,
}

impl ChainConnector {
    /// The connector of a chain with this token of USDC, which has `secret` at the edge. It pays from
    /// the treasury, by the configuration `evm`.
    pub fn new(edge: &Edge, anvil: &Anvil, token: &str, secret: &str) -> Self {
        let (rpc_url, token) = (anvil.url.clone(), token.to_owned());
        let connector = Self { edge: edge.connectors, rpc_url, token, folder: Folder::make() };
        connector.write("token", secret);
        connector.write("key", TREASURY_KEY);
        connector.write("seed", SEED);
        connector.configure("evm", TREASURY_FILE);
        connector
    }

    /// Writes a configuration with this key.
    pub fn configure(&self, name: &str, key: &str) {
        self.write_configuration(name, key, SLOTS);
    }

    fn write_configuration(&self, name: &str, key: &str, slots: u32) {
        let text = format!(
            r#"{key}
state_folder = "$FOLDER/state"
edge = {{ url = "http://{}", token = {{ file = "$FOLDER/token" }} }}
chain = {{ rpc_url = "{}", id = {CHAIN_ID}, poll_milliseconds = 100 }}
payouts = {{ in_flight_max = {slots}, lease_seconds = {LEASE_SECONDS}, stuck_seconds = 5, resend_seconds = 1 }}
assets.ETH = {{ decimals = 18, confirmations = {CONFIRMATIONS} }}
assets.USDC = {{ contract = "{}", decimals = 6, confirmations = {CONFIRMATIONS}, native_price = "0.0003" }}
deposits.keys.seed.file = "$FOLDER/seed"
"#,
            self.edge, self.rpc_url, self.token,
        );
        let folder = self.folder.path().display().to_string();
        self.write(&format!("{name}.toml"), &text.replace("$FOLDER", &folder));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Starts it with the configuration of this name, and these arguments.
    pub fn spawn(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = Command::new(bank::connector("evm"));
        command.env_clear().args(arguments).arg("--config");
        command.arg(self.folder.path().join(format!("{name}.toml")));
        Process::spawn(command)
    }
}
