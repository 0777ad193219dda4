//! Confirms that are refused, and orders that cannot be read or moved.

use serde_json::json;

use super::ListedScenario;
use super::offers::offer;
use super::recipe::{
    SELL_CONFIRM, ScenarioRequest, WALLET, confirm, quote, sell_quote, user, user_event,
};
use super::verification::{card, photo};
use crate::platform::error::Code;

const UNDER_OFFER: &str = "/api/v2/buy/confirm";
const ETH_WALLET: &str = "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe";
/// The longest name of an order, in characters.
const NAME_CHARS_MAX: usize = 255;

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = quotes();
    scenarios.extend(payers());
    scenarios.extend(offers());
    scenarios.extend(orders());
    scenarios
}

fn quotes() -> Vec<ListedScenario> {
    let sale = ScenarioRequest::post(SELL_CONFIRM, &json!({"quote": "{{quote}}"})).for_user();
    vec![
        ListedScenario::error(
            Code::QuoteInvalid,
            "A quote that was altered.",
            [user(), quote(json!({})), confirm(json!({"quote": "{{quote}}A"}))],
        ),
        ListedScenario::error(
            Code::NotBuyQuote,
            "A sell quote.",
            [user(), sell_quote(), confirm(json!({}))],
        ),
        ListedScenario::error(Code::NotSellQuote, "A buy quote.", [user(), quote(json!({})), sale]),
        ListedScenario::error(
            Code::QuoteMissing,
            "No quote.",
            [user(), confirm(json!({"quote": null}))],
        ),
        ListedScenario::error(
            Code::CallbackUrlInvalid,
            "A callback in clear.",
            [user(), quote(json!({})), confirm(json!({"callbackUrl": "http://shop.example/hook"}))],
        ),
    ]
}

/// Users and accounts that may not pay.
fn payers() -> Vec<ListedScenario> {
    let by_account = |account: &str| confirm(json!({ "accountIdentifier": account }));
    vec![
        ListedScenario::error(
            Code::UserDisabled,
            "A user who is disabled.",
            [user(), user_event("disable"), quote(json!({})), confirm(json!({}))],
        ),
        ListedScenario::error(
            Code::AccountTypeUnsupported,
            "A bank account for a card's quote.",
            [user(), photo(json!({})), quote(json!({})), by_account("NL58ABNA0000000001")],
        ),
        ListedScenario::error(
            Code::AccountNotVerified,
            "A card that is not verified.",
            [
                user(),
                card(json!({})).save("card", "/accountIdentifier"),
                quote(json!({})),
                by_account("{{card}}"),
            ],
        ),
    ]
}

/// A confirm under an offer by the scenario's user.
pub(super) fn confirm_under(offer: &str, wallet: &str) -> ScenarioRequest {
    let body = json!({"quote": "{{quote}}", "offerId": offer, "walletAddress": wallet,
        "returnUrl": "https://shop.example/back"});
    ScenarioRequest::post(UNDER_OFFER, &body).for_user()
}

fn offers() -> Vec<ListedScenario> {
    let under = || confirm_under("{{offer}}", WALLET);
    let nobodys = confirm_under("019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70", WALLET);
    let amount = json!({"fixedAmount": true, "quoteCurrencyAmount": 50});
    let ether = quote(json!({"currencyPair": "ETH-EUR"}));
    let transfer = quote(json!({"paymentMethod": "bankTransfer"}));
    let fixed = |name: &str| offer(json!({ name: true }));
    let plain = || quote(json!({}));
    let once = [user(), offer(json!({})), plain(), under(), plain(), under()];
    vec![
        ListedScenario::error(Code::OfferAlreadyConfirmed, "An offer that is confirmed.", once),
        ListedScenario::error(
            Code::OfferNotFound,
            "An offer of nobody.",
            [user(), plain(), nobodys],
        ),
        ListedScenario::error(
            Code::OfferAmountFixed,
            "A quote over another amount.",
            [user(), offer(amount), plain(), under()],
        ),
        ListedScenario::error(
            Code::OfferCurrencyFixed,
            "A quote over another currency.",
            [user(), fixed("fixedCurrency"), ether, confirm_under("{{offer}}", ETH_WALLET)],
        ),
        ListedScenario::error(
            Code::OfferPaymentMethodFixed,
            "A quote with another method.",
            [user(), fixed("fixedPaymentMethod"), transfer, under()],
        ),
    ]
}

fn orders() -> Vec<ListedScenario> {
    let read = |id: &str| {
        let path = format!("/api/v2/buy/orders/{id}");
        [user(), ScenarioRequest::get(&path).for_user()]
    };
    let release = ScenarioRequest::post_nothing("/api/v2/sandbox/orders/{{order}}/release");
    vec![
        ListedScenario::error(Code::OrderIdMissing, "No order.", read("")),
        ListedScenario::error(
            Code::OrderIdMalformed,
            "A long name.",
            read(&"x".repeat(NAME_CHARS_MAX + 1)),
        ),
        ListedScenario::error(Code::OrderNotFound, "An order of nobody.", read("1742980455013377")),
        ListedScenario::error(
            Code::GeneralError,
            "An event that the order's state forbids.",
            [user(), quote(json!({})), confirm(json!({})).save("order", "/orderId"), release],
        )
        .with_http_status(409),
    ]
}
