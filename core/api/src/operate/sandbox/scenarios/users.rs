//! Registration, sessions and user credentials.

use serde_json::{Value, json};

use super::ListedScenario;
use super::recipe::{
    PNG, REGISTER, ScenarioRequest, logged_in, registration, user, user_event, with,
};
use crate::platform::error::Code;

const LOGIN: &str = "/api/v1/user/login";
const INFO: &str = "/api/v1/user/info";
/// Longest password and one character more.
const LONG_PASSWORD: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
/// The birth date of a minor, for the years to come.
const MINOR: &str = "2025-01-01";

pub(super) fn scenarios() -> Vec<ListedScenario> {
    let mut scenarios = registrations();
    scenarios.extend(persons());
    scenarios.extend(taken());
    scenarios.extend(sessions());
    scenarios.extend(credentials());
    scenarios
}

/// A registration that is wrong in one member.
fn wrong(code: Code, description: &'static str, changes: Value) -> ListedScenario {
    let body = with(registration(), changes);
    ListedScenario::error(code, description, [ScenarioRequest::post(REGISTER, &body)])
}

fn registrations() -> Vec<ListedScenario> {
    let text = json!([{"documentType": "passport", "documentSide": "front", "data": "bm9uZQ=="}]);
    let region = |language: &str, country: &str| json!({"websiteLanguage": language, "websiteCountry": country});
    let rows = [
        (Code::EmailInvalid, "No e-mail address.", json!({"email": "nobody"})),
        (Code::EmailMissing, "The address is left out.", json!({"email": null})),
        (Code::UserIdentifierMissing, "An empty identifier.", json!({"identifier": ""})),
        (Code::CountryCodeInvalid, "A country of three letters.", json!({"country": "NLD"})),
        (Code::CountryMissing, "No country.", json!({"country": null})),
        (Code::CountryUnknown, "A country that there is not.", json!({"country": "XX"})),
        (Code::ImageInvalid, "A document that is no image.", json!({"identityDocument": text})),
        (Code::WebsiteLanguageInvalid, "A language of no region.", region("it", "NL")),
        (Code::WebsiteCountryInvalid, "A country of no region.", region("nl", "US")),
        (Code::WebsiteRegionInvalid, "Spanish in the Netherlands.", region("es", "NL")),
        (Code::EmailCodeInvalid, "A code that was not mailed.", json!({"emailCode": "123456"})),
        (Code::UserIdentifierLengthInvalid, "A short identifier.", json!({"identifier": "short"})),
        (Code::PasswordTooShort, "7 characters.", json!({"password": "1234567"})),
        (Code::PasswordTooLong, "65 characters.", json!({"password": LONG_PASSWORD})),
    ];
    rows.into_iter().map(|(code, text, changes)| wrong(code, text, changes)).collect()
}

fn persons() -> Vec<ListedScenario> {
    let rows = [
        (Code::PhoneNumberInvalid, "A national number.", json!({"phoneNumber": "0612345678"})),
        (
            Code::BusinessCountryInvalid,
            "A country in words.",
            json!({"businessCountry": "Holland"}),
        ),
        (Code::UserUnderage, "A minor.", json!({"dateOfBirth": MINOR})),
        (
            Code::ChamberOfCommerceInvalid,
            "A number of no register.",
            json!({"chamberOfCommerce": "1234567"}),
        ),
        (Code::BusinessNameInvalid, "A name with markup.", json!({"businessName": "<b>Shop</b>"})),
        (Code::FirstNameInvalid, "A name with markup.", json!({"firstName": "<Ada>"})),
        (Code::LastNameInvalid, "A name with an emoji.", json!({"lastName": "Lovelace \u{1f600}"})),
        (Code::StreetInvalid, "An empty street.", json!({"address": ""})),
        (Code::HouseNumberInvalid, "An empty house number.", json!({"addressNo": ""})),
        (Code::CityInvalid, "An empty city.", json!({"city": ""})),
        (Code::PostalCodeInvalid, "An empty postal code.", json!({"postalCode": ""})),
    ];
    rows.into_iter().map(|(code, text, changes)| wrong(code, text, changes)).collect()
}

/// Registrations that collide with an earlier one.
fn taken() -> Vec<ListedScenario> {
    let again = |changes| ScenarioRequest::post(REGISTER, &with(registration(), changes));
    let passport = json!([{"documentType": "passport", "documentSide": "front", "data": PNG}]);
    let document =
        ScenarioRequest::patch(REGISTER, &json!({ "identityDocument": passport })).for_user();
    vec![
        ListedScenario::error(
            Code::EmailTaken,
            "The e-mail address of another user.",
            [user(), again(json!({"identifier": "other{{random}}"}))],
        ),
        ListedScenario::error(
            Code::UserIdentifierTaken,
            "The identifier of another user.",
            [user(), again(json!({"email": "other.{{random}}@example.com"}))],
        ),
        ListedScenario::error(
            Code::DocumentPendingReview,
            "A side of a document that waits for its review.",
            [user(), document.clone(), document],
        ),
    ]
}

fn sessions() -> Vec<ListedScenario> {
    let login = |changes| {
        let body = with(json!({"emailAddress": "{{random}}@example.com"}), changes);
        [ScenarioRequest::post(LOGIN, &body)]
    };
    vec![
        ListedScenario::error(Code::PasswordMissing, "A login without password.", login(json!({}))),
        ListedScenario::error(
            Code::LoginInvalid,
            "A login of nobody.",
            login(json!({"password": "a guess"})),
        ),
    ]
}

fn credentials() -> Vec<ListedScenario> {
    let read = || ScenarioRequest::get(INFO);
    let named = |identifier: &str| [read().header("User-Identifier", identifier)];
    let by_token = || read().header("User-Authorization", "Bearer {{userToken}}");
    let [register, login] = logged_in();
    let other = json!({"identifier": "other{{random}}", "email": "other.{{random}}@example.com"});
    let other = ScenarioRequest::post(REGISTER, &with(registration(), other));
    let both = by_token().header("User-Identifier", "other{{random}}");
    vec![
        ListedScenario::error(Code::UserCredentialMissing, "No user.", [read()]),
        ListedScenario::error(
            Code::UserTokenInvalid,
            "A token that nobody issued.",
            [read().header("User-Authorization", "Bearer a.b.c")],
        ),
        ListedScenario::error(
            Code::UserIdentifierMismatch,
            "The token of one user and the identifier of another.",
            [register.clone(), login.clone(), other, both],
        ),
        ListedScenario::error(Code::UserIdentifierEmpty, "An empty identifier.", named("")),
        ListedScenario::error(
            Code::UserIdentifierNotLinked,
            "An identifier of nobody.",
            named("{{random}}"),
        ),
        ListedScenario::error(
            Code::UserIdentifierMalformed,
            "An identifier with dashes.",
            named("019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70"),
        ),
        ListedScenario::error(
            Code::UserNotFound,
            "The token of a user who is erased.",
            [register, login, user_event("delete"), by_token()],
        ),
    ]
}
