//! A stand-in for Stripe in a process of its own (`deploy/localstripe`), and the connector that takes
//! cards by it.

use std::path::PathBuf;
use std::process::Command;

use http::Method;
use serde_json::{Value, json};

use crate::bank;
use crate::caller::Protocol;
use crate::edge::{Edge, Folder};
use crate::process::Process;
use crate::repository::root;

/// The account's secret key.
const SECRET_KEY: &str = "sk_test_12345";
/// The account's public key.
pub const PUBLIC_KEY: &str = "pk_test_12345";
/// The secret that webhooks are signed with.
pub const WEBHOOK_SECRET: &str = "whsec_12345";

/// The stand-in. It ends when it is dropped.
pub struct LocalStripe {
    /// Its URL.
    pub url: String,
    _process: Process,
}

impl LocalStripe {
    /// One on a free port, without anything in it.
    pub async fn start() -> Self {
        let process = Process::spawn(Command::new(root().join("deploy/localstripe")));
        let url = process.prints("listening ").await;
        Self { url, _process: process }
    }

    /// URL of the script with its form for cards.
    pub fn script_url(&self) -> String {
        format!("{}/js.stripe.com/v3/", self.url)
    }

    /// GET of its API.
    pub async fn get(&self, path: &str) -> Value {
        let request = Protocol::Http1.client().get(format!("{}/v1/{path}", self.url));
        let answer = request.basic_auth(SECRET_KEY, Some("")).send().await.unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }

    /// Every payment of an order.
    pub async fn payments_of(&self, order: u64) -> Vec<Value> {
        let all = self.get("payment_intents?limit=1000").await;
        let order = order.to_string();
        let of_order = |one: &&Value| one["metadata"]["order"] == order.as_str();
        all["data"].as_array().unwrap().iter().filter(of_order).cloned().collect()
    }

    /// Every refund of a payment.
    pub async fn refunds_of(&self, payment: &Value) -> Vec<Value> {
        let path = format!("refunds?limit=1000&payment_intent={}", payment["id"].as_str().unwrap());
        self.get(&path).await["data"].as_array().unwrap().clone()
    }

    /// Charges a card as the form on the pay page does; the payment as it is then.
    pub async fn charge(&self, client_token: &str, card: &str) -> Value {
        let payment = client_token.split("_secret_").next().unwrap();
        let card = json!({"number": card, "exp_month": "12", "exp_year": "2030", "cvc": "123"});
        let body = json!({"key": PUBLIC_KEY, "client_secret": client_token,
            "payment_method_data": {"type": "card", "card": card}});
        let url = format!("{}/v1/payment_intents/{payment}/confirm", self.url);
        let answer = Protocol::Http1.client().post(url).json(&body).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Has webhooks sent to a URL. Each `id` is one more sending.
    pub async fn send_webhooks(&self, id: &str, url: &str) {
        let body = json!({ "url": url, "secret": WEBHOOK_SECRET });
        self.configure(&format!("webhooks/{id}"), body).await;
    }

    /// Has the cardholder dispute a payment; the dispute.
    pub async fn dispute(&self, payment: &Value) -> Value {
        self.configure("disputes", json!({ "payment_intent": payment["id"] })).await
    }

    /// Decides a dispute: `won` or `lost`.
    pub async fn close(&self, dispute: &Value, status: &str) {
        let path = format!("disputes/{}", dispute["id"].as_str().unwrap());
        self.configure(&path, json!({ "status": status })).await;
    }

    /// Kills a connector at its next such request, after that has had its effect or before. The
    /// request waits until [`LocalStripe::kills`] tells the process.
    pub async fn kill_at(&self, method: &Method, path: &str, effect: bool) {
        let path = format!("/v1/{path}");
        let body = json!({"pid": null, "method": method.as_str(), "path": path, "effect": effect});
        self.configure("kill", body).await;
    }

    /// Tells which process is killed.
    pub async fn kills(&self, connector: &Process) {
        self.configure("kill", json!({"pid": connector.id()})).await;
    }

    async fn configure(&self, path: &str, body: Value) -> Value {
        let url = format!("{}/_config/{path}", self.url);
        let answer = Protocol::Http1.client().request(Method::POST, url).json(&body).send().await;
        let bytes = answer.unwrap().error_for_status().unwrap().bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// The settings of the connector for cards, and a folder for them.
pub struct CardConnector {
    edge: String,
    stripe: String,
    token: String,
    folder: Folder,
}

impl CardConnector {
    /// The connector of an edge: it is made there, money by card is routed to it, and it has the form
    /// of the stand-in on the pay page.
    pub async fn of(edge: &Edge, stripe: &LocalStripe) -> Self {
        let kinds = ["payment.create", "payment.cancel", "payment.refund"];
        let body = json!({ "name": "stripe", "capabilities": kinds, "methods": ["creditCard"] });
        let made = edge.admin(Method::POST, "/admin/v1/connectors", body).await;
        let token = made.assert_status(201).json()["token"].as_str().unwrap().to_owned();
        let form = json!({"scriptUrl": stripe.script_url(), "publicKey": PUBLIC_KEY,
            "origins": []});
        let path = "/admin/v1/connectors/stripe/card-element";
        let body = json!({ "cardElement": form });
        edge.admin(Method::PUT, path, body).await.assert_status(200);
        let path = "/admin/v1/routes";
        let mut routes = edge.admin(Method::GET, path, json!({})).await.json();
        let route = json!({"partner": null, "method": "creditCard", "direction": "in",
            "connector": "stripe"});
        routes["routes"].as_array_mut().unwrap().insert(0, route);
        edge.admin(Method::PUT, path, routes).await.assert_status(200);
        let (edge, stripe) = (format!("http://{}", edge.connectors), stripe.url.clone());
        Self { edge, stripe, token, folder: Folder::make() }
    }

    /// The connector of an edge that is not there.
    pub fn of_nobody(stripe: &LocalStripe) -> Self {
        let (edge, stripe) = ("http://127.0.0.1:1".to_owned(), stripe.url.clone());
        Self { edge, stripe, token: "rcn_none".to_owned(), folder: Folder::make() }
    }

    /// Starts it: with webhooks, or looking at the events each second.
    pub fn start(&self, webhooks: bool) -> Process {
        self.run(webhooks, &[])
    }

    /// Runs it with these arguments besides its configuration.
    pub fn run(&self, webhooks: bool, arguments: &[&str]) -> Process {
        let interval = if webhooks { 3_600 } else { 1 };
        let mut settings = format!(
            "[edge]\nurl = \"{}\"\ntoken = {{ environment = \"TOKEN\" }}\n\
             [stripe]\nurl = \"{}\"\nsecret_key = {{ file = \"{}\" }}\n\
             [polling]\ninterval_seconds = {interval}\n",
            self.edge,
            self.stripe,
            self.write("key", SECRET_KEY).display(),
        );
        if webhooks {
            let secret = self.write("webhooks", WEBHOOK_SECRET);
            let secret = format!("secret = {{ file = \"{}\" }}", secret.display());
            settings += &format!("[webhooks]\nlisten = \"127.0.0.1:0\"\n{secret}\n");
        }
        let mut command = Command::new(bank::connector("stripe"));
        command.env_clear().env("TOKEN", &self.token).args(arguments);
        command.arg("--config").arg(self.write("connector.toml", &settings));
        Process::spawn(command)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// The address on which a connector listens for webhooks.
pub async fn webhooks_of(connector: &Process) -> String {
    format!("http://{}/", connector.prints("listening webhooks=").await)
}
