//! A row for every endpoint: what it can name of somebody's, or that it names nothing.

use chrono::TimeDelta;
use rampart_core::endpoint::Route;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::resources::{Cast, Owner, Scope, Thing};

/// An endpoint's relation to resources that have an owner.
pub(crate) enum Row {
    /// It names one of these, in its path or its body.
    Names(&'static [(Thing, Scope)]),
    /// It names nothing that is anybody's. `body` is granted to every caller; the answer holds
    /// something of everybody whom the caller stands for, where the row says what.
    Shows { body: fn(&Cast) -> Value, of_each: Option<Thing> },
    /// It ends its user's sessions.
    Ends,
}

impl Row {
    pub(crate) fn body(&self, cast: &Cast) -> Value {
        match self {
            Self::Shows { body, .. } => body(cast),
            _ => Value::Null,
        }
    }

    /// Text of the owner's that the answer must contain.
    pub(super) fn shown(&self, cast: &Cast, owner: Owner) -> Option<String> {
        match self {
            Self::Shows { of_each: Some(thing), .. } => Some(cast.telltale(owner, *thing)),
            _ => None,
        }
    }

    /// The time after which its rates are as they were.
    pub(super) fn pause(&self) -> TimeDelta {
        match self {
            Self::Names(resources) if matches!(resources[0].0, Thing::Login | Thing::Email) => {
                TimeDelta::seconds(5)
            }
            Self::Ends => TimeDelta::seconds(5),
            _ => TimeDelta::zero(),
        }
    }
}

/// The path of a route that names nothing, with what its query must have.
pub(crate) fn target(route: &Route) -> String {
    match route.path {
        path @ "/api/v2/quotes/matrix" => {
            format!("{path}?fiatAmount=100&currency=EUR&currencyPair=XRP-EUR")
        }
        path => path.to_owned(),
    }
}

const fn reads(of_each: Thing) -> Row {
    Row::Shows { body: |_| Value::Null, of_each: Some(of_each) }
}

const fn sends(body: fn(&Cast) -> Value) -> Row {
    Row::Shows { body, of_each: None }
}

const PUBLIC: Row = Row::Shows { body: |_| Value::Null, of_each: None };

fn purchase(_: &Cast) -> Value {
    json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100})
}

fn sale(_: &Cast) -> Value {
    json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01})
}

fn wallet(_: &Cast) -> Value {
    json!({"currencyPair": "BTC-EUR",
        "walletAddress": rampart_tests::buyer::WALLET})
}

fn person(cast: &Cast) -> Value {
    registration(&format!("somebody{}", cast.next()))
}

fn card(cast: &Cast) -> Value {
    json!({"sessionIdentifier": format!("shared-{}", cast.next() % 8),
        "cardHolderName": "Holder", "currencyCode": "EUR"})
}

fn address(cast: &Cast) -> Value {
    json!({"emailAddress": format!("nobody{}@mail.example.com", cast.next())})
}

fn identifier(cast: &Cast) -> Value {
    json!({"identifier": format!("linked{:x<34}", cast.next())})
}

fn invitation(_: &Cast) -> Value {
    json!({"identifier": "a".repeat(40), "returnUrl": "app:x"})
}

/// The same account for all: that others have it too tells nobody anything.
fn photo(_: &Cast) -> Value {
    json!({"name": "Holder", "iban": "FR1420041010050500013M02606", "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="})
}

fn answers(_: &Cast) -> Value {
    json!([{"key": "kyc-amld5-annual-net-income", "answer": "€ 0 - € 10.000"}])
}

/// The row of an endpoint. Panics when it has none: whoever adds one says here whose resources it can
/// name.
pub(crate) fn row(route: &Route) -> Row {
    use Scope::{Client, Oneself, User};
    match (route.method.as_str(), route.path) {
        ("GET", "/api/v1/user/verify/amld5" | "/api/v2/user/verification-status") => PUBLIC,
        ("POST", "/api/v1/user/verify/amld5") => sends(answers),
        ("POST", "/api/v1/user/verify/card") => Row::Names(&[(Thing::Card, User)]),
        ("POST", "/api/v1/user/verify/payprovider") => {
            sends(|cast| json!({"access_token": format!("token-{}", cast.next() % 8)}))
        }
        ("POST", "/api/v1/user/verify/iban/photo") => sends(photo),
        ("POST", "/api/v2/user/accounts/cards/processor") => sends(card),
        ("GET", "/api/v2/user/limit") => reads(Thing::Card),
        ("GET", "/api/v1/system/currency-pairs" | "/api/v1/system/info") => PUBLIC,
        ("GET", "/api/v1/prices" | "/api/v2/prices" | "/api/v2/client/info") => PUBLIC,
        ("GET", "/api/v2/buy/payment-methods" | "/api/v2/system/errors") => PUBLIC,
        ("POST", "/api/v1/buy/quote") => sends(purchase),
        ("POST", "/api/v1/sell/quote") => sends(sale),
        ("POST", "/api/v2/buy/offer" | "/api/v2/buy/checkout") => {
            Row::Names(&[(Thing::LoginToken, Client)])
        }
        ("POST", "/api/v1/buy/confirm") => {
            Row::Names(&[(Thing::BuyQuote, User), (Thing::Payer, Oneself)])
        }
        ("POST", "/api/v2/buy/confirm") => {
            Row::Names(&[(Thing::QuoteUnderOffer, User), (Thing::Offer, Client)])
        }
        ("POST", "/api/v1/sell/confirm") => {
            Row::Names(&[(Thing::SellQuote, User), (Thing::Payee, Oneself)])
        }
        ("GET", "/api/v1/user/buy/orders/{id}")
        | ("GET", "/api/v2/buy/orders/{id}" | "/api/v2/buy/orders/{id}/timeline") => {
            Row::Names(&[(Thing::Order, User), (Thing::OrderReference, User)])
        }
        ("GET", "/api/v2/buy/orders/{id}/receipt") => Row::Names(&[(Thing::CompletedOrder, User)]),
        ("GET", "/api/v2/quotes/matrix" | "/.well-known/jwks.json") => PUBLIC,
        ("POST", "/api/v2/buy/orders/{id}/wallet-proof") => Row::Names(&[(Thing::Wallet, User)]),
        ("POST", "/api/v2/wallets/check") => sends(wallet),
        ("GET", "/api/v2/buy/orders") => reads(Thing::Order),
        ("GET", "/api/v1/user/sell/orders") => reads(Thing::Sale),
        ("GET", "/api/v1/user/sell/orders/{id}") | ("GET", "/api/v2/sell/orders/{id}/timeline") => {
            Row::Names(&[(Thing::Sale, User), (Thing::SaleReference, User)])
        }
        ("POST", "/api/v2/user") => sends(person),
        ("PATCH", "/api/v2/user") => sends(|_| json!({"newsletterSubscription": true})),
        ("POST", "/api/v1/user/login") => Row::Names(&[(Thing::Login, Client)]),
        ("POST", "/api/v1/user/logout") => Row::Ends,
        ("GET", "/api/v1/user/login-token" | "/api/v2/sandbox/scenarios") => PUBLIC,
        ("GET", "/api/v1/user/exists") => Row::Names(&[(Thing::Email, Client)]),
        ("POST", "/api/v1/user/reset-password") => sends(address),
        ("GET", "/api/v1/user/info") => reads(Thing::Email),
        ("POST", "/api/v1/user/register-identifier") => sends(invitation),
        ("POST", "/api/v2/user/link-identifier") => sends(identifier),
        ("GET", "/api/v2/user/dca-codes") => reads(Thing::Plan),
        ("PATCH", "/api/v2/user/dca-codes/{code}") => Row::Names(&[(Thing::Plan, User)]),
        ("POST", "/api/v2/sell/onboarding") => sends(|_| json!({"returnUrl": "app:x"})),
        ("POST", "/api/v2/sell/onboarding/verify") => Row::Names(&[(Thing::OnboardingUrl, Client)]),
        ("GET", "/api/v2/events") => reads(Thing::Event),
        ("POST", "/api/v2/events/{id}/redeliver") => Row::Names(&[(Thing::Event, Client)]),
        ("POST", "/api/v2/webhooks") => sends(|_| json!({"url": "https://shop.example/spare"})),
        ("GET", "/api/v2/webhooks") => reads(Thing::Webhook),
        ("DELETE", "/api/v2/webhooks/{id}") => Row::Names(&[(Thing::Webhook, Client)]),
        ("POST", "/api/v2/sandbox/orders/{id}/{event}") => {
            Row::Names(&[(Thing::Order, Client), (Thing::OrderReference, Client)])
        }
        ("POST", "/api/v2/sandbox/sell/orders/{id}/{event}") => {
            Row::Names(&[(Thing::Sale, Client), (Thing::SaleReference, Client)])
        }
        ("POST", "/api/v2/sandbox/user/events") => sends(|_| json!({"event": "enable"})),
        ("POST", "/api/v2/sandbox/signature") => sends(|_| json!({"returnUrl": "app:x"})),
        _ => panic!("{route:?} has no row: say in tenants/rows.rs whose resources it can name"),
    }
}
