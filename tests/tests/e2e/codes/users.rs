//! Registration, sessions and user credentials.

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::Row;
use super::fixtures::{Fixtures, with};

const USER: &str = "/api/v2/user";
const LOGIN: &str = "/api/v1/user/login";
const RESET: &str = "/api/v1/user/reset-password";
const INFO: &str = "/api/v1/user/info";
/// Mails that one address gets in an hour.
const MAILS_MAX: usize = 5;
/// The smallest image.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAE=";

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = registrations(fixtures);
    rows.extend(documents(fixtures).await);
    rows.extend(sessions(fixtures).await);
    rows.extend(credentials(fixtures).await);
    rows
}

fn registrations(fixtures: &Fixtures) -> Vec<Row> {
    let minor = Clock::system().now() - TimeDelta::days(17 * 365);
    let minor = minor.format("%Y-%m-%d").to_string();
    let no_image =
        json!([{"documentType": "passport", "documentSide": "front", "data": "bm9uZQ=="}]);
    let wrong: [(&str, &str, Value); 31] = [
        ("ER001", "an address that is none", json!({"email": "nobody"})),
        ("ER002", "an address that is taken", json!({"email": fixtures.ada.email})),
        ("ER003", "no address", json!({"email": null})),
        ("ER053", "an empty identifier", json!({"identifier": ""})),
        ("ER059", "a national number", json!({"phoneNumber": "0612345678"})),
        ("ER061", "a country of three letters", json!({"country": "NLD"})),
        ("ER062", "an empty country", json!({"country": ""})),
        ("ER062", "no country", json!({"country": null})),
        ("ER063", "a country that there is not", json!({"country": "XX"})),
        ("ER064", "a business's country in words", json!({"businessCountry": "Holland"})),
        ("ER078", "a document that is no image", json!({"identityDocument": no_image})),
        ("ER081", "a language of no region", json!({"websiteLanguage": "it"})),
        ("ER083", "a country of no region", json!({"websiteCountry": "US"})),
        ("ER084", "Spanish in the Netherlands", json!({"websiteLanguage": "es"})),
        ("ER085", "a minor", json!({"dateOfBirth": minor})),
        ("ER090", "a code that was not mailed", json!({"emailCode": "123456"})),
        ("ER102", "a short identifier", json!({"identifier": "short"})),
        ("ER121", "a number of no register", json!({"chamberOfCommerce": "1234567"})),
        ("ER122", "a short password", json!({"password": "1234567"})),
        ("ER123", "a long password", json!({"password": "x".repeat(65)})),
        ("ER125", "a business with markup", json!({"businessName": "<b>Shop</b>"})),
        ("ER126", "a first name with markup", json!({"firstName": "<Ada>"})),
        ("ER127", "a last name with an emoji", json!({"lastName": "Lovelace \u{1f600}"})),
        ("ER181", "an empty street", json!({"address": ""})),
        ("ER182", "an empty house number", json!({"addressNo": ""})),
        ("ER183", "an empty city", json!({"city": ""})),
        ("ER184", "an empty postal code", json!({"postalCode": ""})),
        ("ER706", "an identifier that is taken", json!({"identifier": fixtures.ada.identifier})),
        ("ER048", "a flag in words", json!({"isBusiness": "no"})),
        ("ER061", "a nationality of three letters", json!({"nationality": "NLD"})),
        ("ER083", "half a region", json!({"websiteCountry": null})),
    ];
    let row = |(code, wrong, changes)| {
        Row::new(code, wrong, fixtures.post(USER, &with(registration("row"), changes)))
    };
    wrong.into_iter().map(row).collect()
}

async fn documents(fixtures: &Fixtures) -> Vec<Row> {
    let side = json!({"identityDocument":
        [{"documentType": "passport", "documentSide": "front", "data": PNG}]});
    let send = || fixtures.ada(Method::PATCH, USER).json(&side);
    send().send().await.assert_status(200);
    vec![Row::new("ER708", "a side that waits for its review", send())]
}

async fn sessions(fixtures: &Fixtures) -> Vec<Row> {
    let known = json!({"emailAddress": fixtures.ada.email, "password": "a guess"});
    let nameless = json!({"emailAddress": fixtures.ada.email});
    let mail = json!({"emailAddress": "nobody@mail.example.com"});
    for _ in 0..MAILS_MAX {
        fixtures.post(RESET, &mail).send().await.assert_status(200);
    }
    vec![
        Row::new(
            "ER001",
            "no address",
            fixtures.post(LOGIN, &json!({"emailAddress": 7, "password": "a"})),
        ),
        Row::new("ER003", "nobody in particular", fixtures.post(RESET, &json!({}))),
        Row::new("ER004", "no password", fixtures.post(LOGIN, &nameless)),
        Row::new("ER005", "a wrong password", fixtures.post(LOGIN, &known)),
        Row::new("ER354", "one mail too many", fixtures.post(RESET, &mail)),
    ]
}

async fn credentials(fixtures: &Fixtures) -> Vec<Row> {
    let read = || fixtures.key.request(Method::GET, INFO);
    let bearer = |token: &str| read().header("user-authorization", token);
    let named = |identifier: &str| read().header("user-identifier", identifier);

    let login = json!({"emailAddress": fixtures.ada.email, "password": fixtures.ada.password});
    let earlier = fixtures.earlier().await.post(LOGIN, login).await;
    let expired = earlier.assert_status(200).json()["token"].as_str().unwrap().to_owned();

    let gone = fixtures.person("gone").await;
    let path = format!("/admin/v1/users/{}", gone.uuid);
    fixtures.operator(Method::PATCH, &path, json!({"deleted": true})).await;
    let both = bearer(&fixtures.ada.token).header("user-identifier", &fixtures.eve.identifier);
    vec![
        Row::new("ER700", "no user", read()),
        Row::new("ER701", "a token of an hour that is over", bearer(&format!("Bearer {expired}"))),
        Row::new("ER702", "a token that is none", bearer("Bearer a.b.c")),
        Row::new("ER703", "two users", both),
        Row::new("ER704", "an empty identifier", named("")),
        Row::new("ER705", "an identifier of nobody", named(&"nobody".repeat(6))),
        Row::new("ER709", "an identifier of somebody who is gone", named(&gone.identifier)),
        Row::new("ER707", "an identifier with dashes", named(&fixtures.ada.uuid)),
        Row::new("ER709", "a token of somebody who is gone", bearer(&gone.token)),
    ]
}
