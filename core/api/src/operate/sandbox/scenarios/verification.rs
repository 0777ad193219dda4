//! Verification of users, their accounts, and their savings plans.

use serde_json::{Value, json};

use super::ListedScenario;
use super::recipe::{PNG, ScenarioRequest, user, with};
use crate::platform::error::Code;

const AMLD5: &str = "/api/v1/user/verify/amld5";
const PHOTO: &str = "/api/v1/user/verify/iban/photo";
const CARDS: &str = "/api/v2/user/accounts/cards/processor";
const VERIFY_CARD: &str = "/api/v1/user/verify/card";
const PLAN: &str = "/api/v2/user/dca-codes/none";
/// The longest name of a plan, in characters.
const NAME_CHARS_MAX: usize = 255;

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = questions();
    scenarios.extend(photos());
    scenarios.extend(sessions());
    scenarios.extend(cards());
    scenarios.extend(plans());
    scenarios
}

fn questions() -> Vec<ListedScenario> {
    let get = |path: &str| ScenarioRequest::get(path).for_user();
    let answer = |body: &Value| ScenarioRequest::post(AMLD5, body).for_user();
    let none = json!([{"key": "{{question}}", "answer": "none of these"}]);
    vec![
        ListedScenario::error(
            Code::LocaleInvalid,
            "A language of no question.",
            [user(), get(&format!("{AMLD5}?locale=it"))],
        ),
        ListedScenario::error(
            Code::AnswersMalformed,
            "No list of answers.",
            [user(), answer(&json!({}))],
        ),
        ListedScenario::error(
            Code::AnswerInvalid,
            "An answer that is no option.",
            [user(), get(AMLD5).save("question", "/questions/0/key"), answer(&none)],
        ),
        ListedScenario::error(
            Code::VerificationLevelInvalid,
            "A level that there is not.",
            [user(), get("/api/v2/user/verification-status?level=platinum")],
        ),
    ]
}

/// A bank account that can be verified by a photo.
pub(super) fn photo(changes: Value) -> ScenarioRequest {
    let valid = json!({"name": "Ada Lovelace", "iban": "NL58ABNA0000000001", "proof": PNG});
    ScenarioRequest::post(PHOTO, &with(valid, changes)).for_user()
}

fn photos() -> Vec<ListedScenario> {
    let rows = [
        (Code::IbanInvalid, "A wrong check digit.", json!({"iban": "NL91ABNA0417164301"})),
        (Code::AccountHolderMissing, "No holder.", json!({"name": null})),
        (Code::ImageMissing, "No image.", json!({"proof": null})),
        (
            Code::IbanAccountDisabled,
            "An account that is disabled, by the end of its number.",
            json!({"iban": "NL91ABNA0000000086"}),
        ),
        (
            Code::IbanAccountUnknown,
            "An account that its bank does not know, by the end of its number.",
            json!({"iban": "NL64ABNA0000000087"}),
        ),
        (Code::IbanMissing, "No IBAN.", json!({"iban": null})),
        (Code::IbanEmpty, "An empty IBAN.", json!({"iban": ""})),
        (Code::AccountHolderEmpty, "An empty holder.", json!({"name": ""})),
    ];
    let row = |(code, wrong, changes)| ListedScenario::error(code, wrong, [user(), photo(changes)]);
    let mut scenarios: Vec<_> = rows.into_iter().map(row).collect();
    let unproven = json!({"name": "Ada Lovelace", "iban": "NL58ABNA0000000001"});
    let unproven = ScenarioRequest::post(PHOTO, &unproven).for_user();
    scenarios.push(ListedScenario::error(
        Code::OwnershipProofMissing,
        "The image is left out.",
        [user(), unproven],
    ));
    scenarios
}

/// Adds the card of a session: `{{card}}`.
pub(super) fn card(changes: Value) -> ScenarioRequest {
    let valid = json!({"sessionIdentifier": "{{random}}", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    ScenarioRequest::post(CARDS, &with(valid, changes)).for_user()
}

fn sessions() -> Vec<ListedScenario> {
    let session = |name: &str| json!({ "sessionIdentifier": name });
    let rows = [
        (Code::CurrencyMissing, "No currency.", json!({"currencyCode": null})),
        (Code::CurrencyUnsupported, "A currency that is none.", json!({"currencyCode": "JPY"})),
        (
            Code::InstantVerificationUnsupported,
            "A session of a card that is verified slowly.",
            session("sandbox-not-instant"),
        ),
        (Code::TokenEmpty, "No session.", session("")),
        (Code::CardHolderMissing, "No name on the card.", json!({"cardHolderName": ""})),
        (
            Code::PaymentAccountFailed,
            "A session of a card that is refused.",
            session("sandbox-refused"),
        ),
    ];
    let row = |(code, wrong, changes)| ListedScenario::error(code, wrong, [user(), card(changes)]);
    rows.into_iter().map(row).collect()
}

fn cards() -> Vec<ListedScenario> {
    let verify = |identifier: &str| {
        let body = json!({ "accountIdentifier": identifier });
        ScenarioRequest::post(VERIFY_CARD, &body).for_user()
    };
    let known = || verify("{{card}}");
    let added = |session: &str| {
        card(json!({"sessionIdentifier": session})).save("card", "/accountIdentifier")
    };
    vec![
        ListedScenario::error(Code::AccountIdentifierInvalid, "No card.", [user(), verify("")]),
        ListedScenario::error(
            Code::AccountNotFound,
            "A card of nobody.",
            [user(), verify("555555******0009")],
        ),
        ListedScenario::error(
            Code::AccountDisabled,
            "A card of a session that the sandbox disables.",
            [user(), added("sandbox-disabled"), known()],
        ),
        ListedScenario::error(
            Code::AccountAlreadyVerified,
            "A card that is verified.",
            [user(), added("{{random}}"), known(), known()],
        ),
        ListedScenario::error(
            Code::CardVerificationFailed,
            "A card of a session that cannot be verified.",
            [user(), added("sandbox-unverifiable"), known()],
        ),
    ]
}

fn plans() -> Vec<ListedScenario> {
    let rows = [
        (Code::FrequencyInvalid, "A plan for every day.", json!({"frequency": "daily"})),
        (Code::IntendedAmountInvalid, "A plan for nothing.", json!({"intendedAmount": 0})),
        (Code::NameTooLong, "A long name.", json!({"name": "x".repeat(NAME_CHARS_MAX + 1)})),
    ];
    let row = |(code, wrong, changes)| {
        let change = ScenarioRequest::patch(PLAN, &changes).for_user();
        ListedScenario::error(code, wrong, [user(), change])
    };
    rows.into_iter().map(row).collect()
}
