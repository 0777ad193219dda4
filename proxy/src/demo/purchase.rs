//! One purchase through public interfaces only, checking what comes back.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rampart_core::http::uri;
use rcgen::SigningKey as _;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Value, json};

use super::callback::Receiver;
use super::partner::Partner;
use super::steps::Steps;
use crate::partner_client::PartnerClient;
use crate::startup_error::{Context as _, StartupError};

/// A main-network address, as the sandbox wants it too (the genesis block's).
pub(crate) const WALLET: &str = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa";
/// The page that a shopper returns to.
pub(crate) const RETURN_URL: &str = "https://partner.example/thanks";
const REFERENCE: &str = "demo-order-1";
/// Longest wait for the sandbox to settle the order, and for the callback after it.
const SETTLED_MAX: Duration = Duration::from_secs(20);
/// Time between two reads of the order.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Makes the purchase. The receiver of its callback takes more of them as long as it is kept.
///
/// # Errors
/// The first deviation from the contract.
pub(super) async fn make(partner: &Partner, steps: &mut Steps) -> Result<Receiver, StartupError> {
    let receiver = Receiver::start(partner.credential("webhookSecret")).await?;
    let buyer = steps.run("authenticate", Buyer::authenticate(partner)).await?;
    let method = steps.run("list payment methods, in the policy's order", buyer.methods()).await?;
    let quote =
        steps.run("quote 250 EUR of BTC, check the fee identity", buyer.quote(&method)).await?;
    let callback_url = format!("http://{}/callback", receiver.address);
    let offer = buyer.offer(&method, &callback_url);
    let offer = steps.run("create an offer, signed with Ed25519", offer).await?;
    let confirm = buyer.confirm(&quote, &offer);
    let (order, payment_url) = steps.run("confirm the quote under the offer", confirm).await?;
    let again = async {
        expect("orderId of the repeated confirm", &buyer.confirm(&quote, &offer).await?.0, &order)
    };
    steps.run("confirm again: the same order", again).await?;
    steps.run("pay on the payment page", buyer.pay(&payment_url)).await?;
    steps.run("order completed", buyer.completed(&order)).await?;
    let callback = receive(&receiver, &order);
    steps.run("callback received, its signature verified", callback).await?;
    Ok(receiver)
}

async fn receive(receiver: &Receiver, order: &Value) -> Result<(), StartupError> {
    let received = tokio::time::timeout(SETTLED_MAX, receiver.first()).await;
    let received = received.ok().flatten().ok_or("no callback came")?;
    received.signature.context("the callback is not genuine")?;
    let body: Value = serde_json::from_slice(&received.body).context("the callback is not JSON")?;
    expect("type", &body["type"], &json!("order.completed"))?;
    expect("orderId", &body["data"]["orderId"], order)?;
    let wanted = format!("orderId={order}&status=success");
    if !received.target.ends_with(&wanted) {
        return Err(StartupError::from(format!("the callback's query is not {wanted}")));
    }
    Ok(())
}

/// The partner, signed in.
struct Buyer<'a> {
    partner: &'a Partner,
    client: PartnerClient,
}

impl<'a> Buyer<'a> {
    async fn authenticate(partner: &'a Partner) -> Result<Self, StartupError> {
        let (username, password) = (partner.credential("username"), partner.credential("password"));
        let (http, base) = (partner.http.clone(), partner.base.clone());
        let client = PartnerClient::authenticate(http, base, username, password).await?;
        Ok(Self { partner, client })
    }

    /// The method that the partner's policy puts first for the Netherlands.
    async fn methods(&self) -> Result<String, StartupError> {
        let answer = self.client.get("/api/v2/buy/payment-methods?countryCode=nl").await?;
        text(&answer["paymentMethods"][0], "code")
    }

    async fn quote(&self, method: &str) -> Result<Value, StartupError> {
        let body = json!({
            "currencyPair": "BTC-EUR", "paymentMethod": method, "fiatAmount": 250,
            "walletAddress": WALLET, "countryCode": "NL",
        });
        let quote = self.client.post("/api/v1/buy/quote", &body).await?;
        let fees =
            ["partnerFee", "providerFee", "paymentMethodCost", "networkFeeCost", "spreadFee"];
        let mut sum = decimal(&quote["cryptoAmount"])? * decimal(&quote["price"])?;
        sum = sum.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
        for fee in fees {
            sum += decimal(&quote[fee])?;
        }
        expect("sum of the quote's parts", &json!(sum.normalize().to_string()), &json!("250"))?;
        Ok(quote)
    }

    /// The signature covers what is set, percent-encoded and in alphabetical order, then the time
    /// and a nonce: the scheme of the partner's own policy.
    async fn offer(&self, method: &str, callback_url: &str) -> Result<String, StartupError> {
        let clock = &self.partner.clock;
        let nonce: [u8; 12] = clock.random_bytes().context("no nonce can be made")?;
        let nonce = URL_SAFE_NO_PAD.encode(nonce);
        let time = clock.unix_seconds();
        let signed = format!(
            "callbackUrl={}&returnUrl={}&walletAddress={}&t={time}&n={nonce}",
            uri::escape(callback_url),
            uri::escape(RETURN_URL),
            uri::escape(WALLET),
        );
        let signature = self.partner.signing_key.sign(signed.as_bytes());
        let tag = STANDARD.encode(signature.context("the offer cannot be signed")?);
        let body = json!({
            "baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": method,
            "quoteCurrencyAmount": 250, "fixedAmount": true, "fixedCurrency": true,
            "returnUrl": RETURN_URL, "callbackUrl": callback_url, "walletAddress": WALLET,
            "partnerOrderIdentifier": REFERENCE, "signature": format!("t={time},n={nonce},s={tag}"),
        });
        text(&self.client.post("/api/v2/buy/offer", &body).await?, "offerUuid")
    }

    async fn confirm(&self, quote: &Value, offer: &str) -> Result<(Value, String), StartupError> {
        let body = json!({
            "quote": quote["quote"], "offerId": offer, "walletAddress": WALLET,
        });
        let confirmed = self.client.post("/api/v2/buy/confirm", &body).await?;
        if !confirmed["orderId"].is_number() {
            return Err(StartupError::from("the confirmation has no orderId"));
        }
        Ok((confirmed["orderId"].clone(), text(&confirmed, "paymentUrl")?))
    }

    async fn pay(&self, payment_url: &str) -> Result<(), StartupError> {
        const PAGE: &str = "the payment page";
        let silent = |error| StartupError::unanswered(PAGE, error);
        let page = self.partner.http.get(payment_url).send().await.map_err(silent)?;
        if !page.status().is_success() {
            return Err(format!("{PAGE}: {}", page.status()).into());
        }
        let form = self
            .partner
            .http
            .post(payment_url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body("action=pay");
        let paid = form.send().await.map_err(silent)?;
        if paid.status().is_success() || paid.status().is_redirection() {
            return Ok(());
        }
        Err(format!("{PAGE}: {}", paid.status()).into())
    }

    async fn completed(&self, order: &Value) -> Result<(), StartupError> {
        let path = format!("/api/v2/buy/orders/{order}");
        let polling = async {
            let mut ticks = tokio::time::interval(POLL_INTERVAL);
            loop {
                ticks.tick().await;
                let order = self.client.get(&path).await?;
                if order["status"] == "completed" {
                    return Ok::<_, StartupError>(order);
                }
            }
        };
        let late = |_| StartupError::from("the order was not completed in time");
        let order: Value = tokio::time::timeout(SETTLED_MAX, polling).await.map_err(late)??;
        expect("partnerOrderIdentifier", &order["partnerOrderIdentifier"], &json!(REFERENCE))?;
        expect("fiatAmount", &order["fiatAmount"]["currencyCode"], &json!("EUR"))?;
        text(&order["blockchainInfo"], "transactionId").map(|_| ())
    }
}

fn text(value: &Value, member: &str) -> Result<String, StartupError> {
    let text = value[member].as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| StartupError::from(format!("the answer has no {member}")))
}

fn decimal(value: &Value) -> Result<Decimal, StartupError> {
    let number = value.as_number().map(serde_json::Number::as_str).unwrap_or_default();
    Decimal::from_str_exact(number).context(format_args!("{value} is not an exact decimal"))
}

fn expect(what: &str, found: &Value, wanted: &Value) -> Result<(), StartupError> {
    if found == wanted {
        return Ok(());
    }
    Err(StartupError::from(format!("{what} is {found}, not {wanted}")))
}
