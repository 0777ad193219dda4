//! Codes of conditions that no client can bring about: they are asked for by header.

use serde_json::json;

use super::ListedScenario;
use super::confirms::confirm_under;
use super::offers::{checkout, offer, onboarding};
use super::recipe::{
    BUY_QUOTE, ScenarioRequest, WALLET, confirm, purchase, quote, sell_quote, user,
};
use crate::platform::error::Code;

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = market();
    scenarios.extend(times());
    scenarios.extend(partners());
    scenarios.extend(failures());
    scenarios
}

/// Asks for the code in the last of these requests.
fn fault<const N: usize>(
    code: Code,
    description: &'static str,
    mut requests: [ScenarioRequest; N],
) -> ListedScenario {
    if let Some(last) = requests.last_mut() {
        *last = last.clone().fault(code.as_str());
    }
    ListedScenario::error(code, description, requests)
}

fn market() -> Vec<ListedScenario> {
    let buy = || ScenarioRequest::post(BUY_QUOTE, &purchase());
    vec![
        fault(Code::CurrencyInMaintenance, "A quote for a pair in maintenance.", [buy()]),
        fault(Code::PaymentMethodUnavailable, "A method that is switched off.", [buy()]),
        fault(Code::SellingInMaintenance, "A pair that is not sold now.", [sell_quote()]),
        fault(Code::FeePolicyFailed, "A fee policy that breaks.", [buy()]),
    ]
}

/// Credentials, quotes and offers whose time is over.
fn times() -> Vec<ListedScenario> {
    let read = |path: &str| ScenarioRequest::get(path);
    let under = || confirm_under("{{offer}}", WALLET);
    vec![
        fault(
            Code::ClientTokenExpired,
            "A token of an hour that is over.",
            [read("/api/v1/prices")],
        ),
        fault(
            Code::UserTokenExpired,
            "A user's token of an hour that is over.",
            [user(), read("/api/v1/user/info").for_user()],
        ),
        fault(
            Code::QuoteExpired,
            "A quote whose time is over.",
            [user(), quote(json!({})), confirm(json!({}))],
        ),
        fault(
            Code::OfferExpired,
            "An offer whose time is over.",
            [user(), offer(json!({})), quote(json!({})), under()],
        ),
        fault(
            Code::OfferFeeFixed,
            "A quote with another fee than a signed offer's.",
            [user(), offer(json!({})), quote(json!({})), under()],
        ),
        fault(
            Code::LoginTokenExpired,
            "A checkout with a login token whose time is over.",
            [checkout(json!({}))],
        ),
    ]
}

/// Settings of the partner that stand against a request.
fn partners() -> Vec<ListedScenario> {
    vec![
        fault(Code::SignaturePolicyFailed, "A signature policy that breaks.", [offer(json!({}))]),
        fault(
            Code::WalletAddressRequired,
            "An offer of a partner that has to name wallets.",
            [offer(json!({}))],
        ),
        fault(
            Code::SigningSecretMissing,
            "A partner without a signing secret.",
            [onboarding(json!({}))],
        ),
        fault(Code::ApiKeyNotFound, "A partner without an API key.", [onboarding(json!({}))]),
    ]
}

fn failures() -> Vec<ListedScenario> {
    let prices = || ScenarioRequest::get("/api/v1/prices");
    let reset = json!({"emailAddress": "{{random}}@example.com"});
    let reset = ScenarioRequest::post("/api/v1/user/reset-password", &reset);
    let unavailable = prices().fault("ER999 503");
    vec![
        fault(Code::PasswordResetFailed, "More mails than an address gets in an hour.", [reset]),
        fault(Code::GeneralError, "A fault of ours.", [prices()]),
        ListedScenario::error(Code::GeneralError, "A dependency that is down.", [unavailable])
            .with_http_status(503),
    ]
}
