//! The demo's partner: made through the admin API, with a policy of each kind.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use http::Method;
use rampart_core::platform::clock::Clock;
use rcgen::{KeyPair, PKCS_ED25519};
use reqwest::Client;
use reqwest::redirect::Policy;
use serde_json::{Value, json};

use super::environment::Environment;
use super::steps::Steps;
use crate::admin_client::{AdminClient, Body, http_client};
use crate::server::Serving;
use crate::startup_error::{Context as _, StartupError};

const SLUG: &str = "demo";
/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The name by which the signature policy asks for the partner's key.
const KEY_NAME: &str = "partner-ed25519";

/// The mid price of every pair.
const PRICES: [(&str, &str); 9] = [
    ("BTC-EUR", "90000"),
    ("ETH-EUR", "3000"),
    ("LTC-EUR", "85"),
    ("XRP-EUR", "2"),
    ("XLM-EUR", "0.25"),
    ("ADA-EUR", "0.5"),
    ("SOL-EUR", "150"),
    ("DOGE-EUR", "0.15"),
    ("USDC-EUR", "0.92"),
];

/// A partner of the demo's edge, and its HTTP client.
pub(super) struct Partner {
    /// Client that trusts the demo's certificate.
    pub(super) http: Client,
    /// `https://127.0.0.1:8443`
    pub(super) base: String,
    /// Response of the admin API to its creation.
    pub(super) credentials: Value,
    /// The key that signs its offers.
    pub(super) signing_key: KeyPair,
    /// Time for signatures.
    pub(super) clock: Clock,
}

impl Partner {
    /// Makes the partner, gives it policies, and the demo prices.
    pub(super) async fn seed(
        environment: &Environment,
        serving: &Serving,
        guests: &Path,
        steps: &mut Steps,
    ) -> Result<Self, StartupError> {
        let url = format!("http://{}", serving.sockets.admin.address);
        let admin = AdminClient::new(url, &environment.config)?;
        steps.run("set a price for every pair", set_prices(&admin)).await?;
        let body = Body::Json(json!({"slug": SLUG, "name": "Demo partner", "mode": "test"}));
        let made = admin.call(Method::POST, "partners", body);
        let credentials = steps.run("make a test partner", made).await?;
        let signing_key =
            KeyPair::generate_for(&PKCS_ED25519).context("no Ed25519 key can be made")?;
        steps.run("store its Ed25519 key", bind_key(&admin, &signing_key)).await?;
        for (kind, guest) in [
            ("fee", "tiered-fee"),
            ("method-order", "country-order"),
            ("signature", "ed25519-offer"),
        ] {
            let file = guests.join(format!("{guest}.wasm"));
            let step = format!("push its {kind} policy, a Wasm component");
            steps.run(&step, push(&admin, kind, &file)).await?;
        }
        let http = Client::builder().redirect(Policy::none()).timeout(ANSWER_MAX);
        Ok(Self {
            http: http_client(http, Some(&environment.certificate))?,
            base: serving.sockets.public_url(),
            credentials,
            signing_key,
            clock: serving.core.clock.clone(),
        })
    }

    /// A credential by its name in the admin API's answer.
    pub(super) fn credential(&self, name: &str) -> &str {
        self.credentials[name].as_str().unwrap_or_default()
    }

    /// Shell variables that describe this edge, for the guide to policies.
    pub(super) fn shell_variables(&self, environment: &Environment) -> String {
        let variables = [
            ("EDGE", self.base.clone()),
            ("CERTIFICATE", environment.certificate.display().to_string()),
            ("API_KEY", self.credential("apiKey").to_owned()),
            ("CONFIG", environment.settings.display().to_string()),
        ];
        let line =
            |(name, value): (&str, String)| format!("{name}='{}'\n", value.replace('\'', "'\\''"));
        variables.map(line).concat()
    }

    /// Requests to try next, ready to paste: first of all the credentials, as the README's page wants
    /// them.
    pub(super) fn try_it(
        &self,
        environment: &Environment,
        serving: &Serving,
        receiver: SocketAddr,
    ) -> String {
        let (base, key) = (&self.base, self.credential("apiKey"));
        let (user, password) = (self.credential("username"), self.credential("password"));
        let ca = environment.certificate.display();
        let settings = environment.settings.display();
        let token = environment.config.admin.token.as_ref().map_or("", |token| token.expose());
        let token = token.replace('\'', "'\\''");
        let binary = std::env::current_exe().unwrap_or_else(|_| "rampart".into());
        let binary = binary.display();
        let (admin, ops) = (serving.sockets.admin.address, serving.sockets.ops.address);
        let quote = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
            "fiatAmount": 250});
        format!(
            "\nServing. Ctrl-C stops everything. For another shell:\n\n\
             export BASE='{base}' CURL_CA_BUNDLE='{ca}'\n\
             export API_KEY='{key}'\n\
             export USERNAME='{user}' PASSWORD='{password}'\n\
             export ADMIN='http://{admin}' ADMIN_TOKEN='{token}'\n\
             export RECEIVER='http://{receiver}'\n\n\
             Read {base}/docs, follow the README's page, or try:\n\n\
             curl --cacert {ca} -H 'X-Api-Key: {key}' {base}/api/v2/prices\n\n\
             curl --http2 --cacert {ca} -H 'X-Api-Key: {key}' \
             '{base}/api/v2/buy/payment-methods?countryCode=nl'\n\n\
             curl --cacert {ca} -H 'X-Api-Key: {key}' -H 'Content-Type: application/json' \
             -d '{quote}' {base}/api/v1/buy/quote\n\n\
             curl http://{ops}/metrics\n\n\
             {binary} partner show {SLUG} --config {settings}\n"
        )
    }
}

/// Prices as on a day like any other. Nobody observes them: they are for test clients.
async fn set_prices(admin: &AdminClient) -> Result<(), StartupError> {
    for (pair, price) in PRICES {
        let number =
            serde_json::Number::from_str(price).context("a price of the demo is no number")?;
        let body = Body::Json(json!({ "price": number }));
        admin.call(Method::PUT, &format!("prices/{pair}"), body).await?;
    }
    Ok(())
}

async fn bind_key(admin: &AdminClient, key: &KeyPair) -> Result<(), StartupError> {
    let path = format!("partners/{SLUG}/verification-keys/{KEY_NAME}");
    let body = Body::Json(json!({"algorithm": "ed25519", "key": key.public_key_pem()}));
    admin.call(Method::PUT, &path, body).await.map(|_| ())
}

async fn push(admin: &AdminClient, kind: &str, file: &Path) -> Result<(), StartupError> {
    let wasm = std::fs::read(file)
        .context(format_args!("'{}' cannot be read (run plugins/build)", file.display()))?;
    let path = format!("partners/{SLUG}/policies/{kind}");
    admin.call(Method::PUT, &path, Body::File("application/wasm", wasm)).await.map(|_| ())
}
