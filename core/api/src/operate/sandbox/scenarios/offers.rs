//! Offers, checkouts and onboarding.

use serde_json::{Value, json};

use super::ListedScenario;
use super::recipe::{ScenarioRequest, user, user_event, with};
use crate::platform::error::Code;

const OFFER: &str = "/api/v2/buy/offer";
const CHECKOUT: &str = "/api/v2/buy/checkout";
const ONBOARDING: &str = "/api/v2/sell/onboarding";

/// An offer that can be made: `{{offer}}`.
pub(super) fn offer(changes: Value) -> ScenarioRequest {
    post(OFFER, changes).save("offer", "/offerUuid")
}

/// A checkout that can be made.
pub(super) fn checkout(changes: Value) -> ScenarioRequest {
    post(CHECKOUT, changes)
}

/// An onboarding that can begin.
pub(super) fn onboarding(changes: Value) -> ScenarioRequest {
    let valid = json!({"returnUrl": "https://shop.example/back"});
    ScenarioRequest::post(ONBOARDING, &with(valid, changes))
}

fn post(path: &str, changes: Value) -> ScenarioRequest {
    let valid =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    ScenarioRequest::post(path, &with(valid, changes))
}

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = terms();
    scenarios.extend(flags());
    scenarios.extend(covered());
    scenarios.extend(checkouts());
    scenarios.extend(onboardings());
    scenarios
}

fn refused(code: Code, description: &'static str, changes: Value) -> ListedScenario {
    ListedScenario::error(code, description, [post(OFFER, changes)])
}

fn terms() -> Vec<ListedScenario> {
    let two = json!({"baseCurrencyAmount": 1, "quoteCurrencyAmount": 100});
    let rows = [
        (Code::BaseCurrencyNotString, "A number for a currency.", json!({"baseCurrency": 7})),
        (Code::BaseCurrencyBlank, "A blank currency.", json!({"baseCurrency": ""})),
        (Code::QuoteCurrencyBlank, "A blank quote currency.", json!({"quoteCurrency": ""})),
        (Code::QuoteCurrencyNotString, "A number for a currency.", json!({"quoteCurrency": 7})),
        (Code::BaseAmountInvalid, "Text for an amount.", json!({"baseCurrencyAmount": "1"})),
        (Code::QuoteAmountInvalid, "Text for an amount.", json!({"quoteCurrencyAmount": "100"})),
        (Code::OfferAmountAmbiguous, "Two amounts.", two),
        (Code::PaymentMethodNotString, "A number for a method.", json!({"paymentMethod": 7})),
        (Code::PaymentMethodNull, "No method.", json!({"paymentMethod": null})),
        (
            Code::PaymentMethodInvalid,
            "A method that is not listed.",
            json!({"paymentMethod": "cash"}),
        ),
        (Code::CurrencyPairInvalid, "A pair that is not listed.", json!({"quoteCurrency": "JPY"})),
        (Code::PartnerOrderIdInvalid, "A number for it.", json!({"partnerOrderIdentifier": 7})),
        (Code::WalletAddressTagInvalid, "A number for a tag.", json!({"walletAddressTag": 7})),
        (Code::ExpireTimeNotInteger, "A time in words.", json!({"expireTime": "soon"})),
        (Code::ExpireTimeBlank, "A blank time.", json!({"expireTime": ""})),
        (Code::ExpireTimeOutOfBounds, "A minute.", json!({"expireTime": 60})),
    ];
    rows.into_iter().map(|(code, text, changes)| refused(code, text, changes)).collect()
}

fn flags() -> Vec<ListedScenario> {
    let no_currency = json!({"fixedCurrency": true, "baseCurrency": ""});
    let no_method = json!({"fixedPaymentMethod": true, "paymentMethod": ""});
    let rows = [
        (Code::FixedBaseCurrencyBlank, "No currency to fix.", no_currency),
        (Code::FixedPaymentMethodBlank, "No method to fix.", no_method),
        (Code::FixedAmountAmbiguous, "No amount to fix.", json!({"fixedAmount": true})),
        (Code::FixedAmountNotBool, "A flag in words.", json!({"fixedAmount": "yes"})),
        (Code::FixedCurrencyNotBool, "A flag in words.", json!({"fixedCurrency": "yes"})),
        (Code::FixedPaymentMethodNotBool, "A flag in words.", json!({"fixedPaymentMethod": "yes"})),
        (Code::ShowWalletNotBool, "A flag in words.", json!({"showWalletAddress": "yes"})),
    ];
    rows.into_iter().map(|(code, text, changes)| refused(code, text, changes)).collect()
}

/// Members that a signature covers. Their form is looked at before the signature is.
fn covered() -> Vec<ListedScenario> {
    let signed = |signature: Value| json!({"returnUrl": "https://shop.example/back", "signature": signature});
    let rows = [
        (Code::ReturnUrlNotString, "A number for a URL.", json!({"returnUrl": 7})),
        (Code::OfferCallbackInvalid, "A number for a URL.", json!({"callbackUrl": 7})),
        (Code::CallbackUrlBlank, "A blank callback URL.", json!({"callbackUrl": ""})),
        (Code::OfferWalletInvalid, "A number for an address.", json!({"walletAddress": 7})),
        (Code::FeeInvalid, "Text for a fee.", json!({"fee": "1"})),
        (Code::FeeBlank, "A blank fee.", json!({"fee": ""})),
        (Code::SignatureInvalid, "A signature of nothing.", signed("00".repeat(32).into())),
        (Code::SignatureNotString, "A number for a signature.", signed(7.into())),
        (Code::SignatureRequired, "No signature of a URL.", signed(Value::Null)),
    ];
    let row = |(code, description, changes): (_, _, Value)| {
        let changes = match changes.get("signature") {
            Some(_) => changes,
            None => with(changes, json!({"signature": "00"})),
        };
        refused(code, description, changes)
    };
    rows.into_iter().map(row).collect()
}

fn checkouts() -> Vec<ListedScenario> {
    let rows = [
        (Code::CheckoutWalletInvalid, "An address of nowhere.", json!({"walletAddress": "bc1q"})),
        (Code::ShareTokenInvalid, "A number for a token.", json!({"kycShareToken": 7})),
        (Code::ShareTokenBlank, "A blank token.", json!({"kycShareToken": ""})),
        (Code::LoginTokenNotFound, "A token of nobody.", json!({"loginToken": "dW5rbm93bg"})),
    ];
    let row = |(code, wrong, changes)| ListedScenario::error(code, wrong, [checkout(changes)]);
    let mut scenarios: Vec<_> = rows.into_iter().map(row).collect();
    let token = ScenarioRequest::get("/api/v1/user/login-token").for_user();
    scenarios.push(ListedScenario::error(
        Code::LoginTokenWithoutUser,
        "A token of a user who is erased.",
        [
            user(),
            token.save("loginToken", "/token"),
            user_event("delete"),
            checkout(json!({"loginToken": "{{loginToken}}"})),
        ],
    ));
    scenarios
}

fn onboardings() -> Vec<ListedScenario> {
    let rows = [
        (Code::ReturnUrlInvalid, "A return URL that is none.", json!({"returnUrl": "shop"})),
        (Code::ReturnUrlBlank, "No return URL.", json!({"returnUrl": null})),
        (Code::PayoutMethodInvalid, "No payout method.", json!({"payoutMethods": []})),
    ];
    let row = |(code, wrong, changes)| ListedScenario::error(code, wrong, [onboarding(changes)]);
    rows.into_iter().map(row).collect()
}
