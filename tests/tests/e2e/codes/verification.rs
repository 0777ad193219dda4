//! Verification of users, their accounts, and their savings plans.

use http::Method;
use rampart_tests::buyer::WALLET as WALLET_ADDRESS;
use serde_json::{Value, json};

use super::Row;
use super::fixtures::{Fixtures, with};
use super::users::PNG;

const AMLD5: &str = "/api/v1/user/verify/amld5";
const PHOTO: &str = "/api/v1/user/verify/iban/photo";
const VERIFY_CARD: &str = "/api/v1/user/verify/card";
const CARDS: &str = "/api/v2/user/accounts/cards/processor";
const WALLET: &str = "/api/v1/user/verify/payprovider";
const STATUS: &str = "/api/v2/user/verification-status";
const PLANS: &str = "/api/v2/user/dca-codes";

pub(super) async fn rows(fixtures: &Fixtures) -> Vec<Row> {
    let mut rows = questions(fixtures).await;
    rows.extend(photos(fixtures).await);
    rows.extend(sessions(fixtures));
    rows.extend(cards(fixtures).await);
    rows.extend(plans(fixtures).await);
    rows
}

async fn questions(fixtures: &Fixtures) -> Vec<Row> {
    let get = |path: &str| fixtures.ada(Method::GET, path);
    let asked = get(AMLD5).send().await.assert_status(200).json();
    let answer = json!([{"key": asked["questions"][0]["key"], "answer": "none of these"}]);
    vec![
        Row::new("ER099", "a language of no question", get(&format!("{AMLD5}?locale=it"))),
        Row::new("ER100", "no list of answers", fixtures.ada_post(AMLD5, &json!({}))),
        Row::new("ER101", "an answer that was no option", fixtures.ada_post(AMLD5, &answer)),
        Row::new("ER404", "a level that there is not", get(&format!("{STATUS}?level=platinum"))),
    ]
}

/// An account that an operator opens for Ada.
async fn open(fixtures: &Fixtures, account: Value) {
    let path = format!("/admin/v1/users/{}/accounts", fixtures.ada.uuid);
    fixtures.operator(Method::POST, &path, account).await;
}

async fn photos(fixtures: &Fixtures) -> Vec<Row> {
    let disabled = "NL91ABNA0417164300";
    open(
        fixtures,
        json!({"type": "bankTransfer", "identifier": disabled, "name": "Ada", "disabled": true}),
    )
    .await;
    let valid = json!({"name": "Ada Lovelace", "iban": disabled, "proof": PNG});
    let mut unproven = valid.clone();
    unproven.as_object_mut().unwrap().remove("proof");
    let wrong = [
        ("ER056", "a wrong check digit", json!({"iban": "NL91ABNA0417164301"})),
        ("ER057", "no holder", json!({"name": null})),
        ("ER077", "no image", json!({"proof": null})),
        ("ER078", "text for an image", json!({"proof": "bm8gaW1hZ2U="})),
        ("ER086", "an account that is disabled", json!({})),
        ("ER087", "an account that its bank does not know", json!({"iban": "NL64ABNA0000000087"})),
        ("ER088", "no IBAN", json!({"iban": null})),
        ("ER113", "an empty IBAN", json!({"iban": ""})),
        ("ER185", "an empty holder", json!({"name": ""})),
    ];
    let row = |(code, wrong, changes)| {
        Row::new(code, wrong, fixtures.ada_post(PHOTO, &with(valid.clone(), changes)))
    };
    let mut rows: Vec<_> = wrong.into_iter().map(row).collect();
    rows.push(Row::new("ER186", "no proof at all", fixtures.ada_post(PHOTO, &unproven)));
    rows
}

fn session(changes: Value) -> Value {
    let valid = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    with(valid, changes)
}

fn sessions(fixtures: &Fixtures) -> Vec<Row> {
    let wrong = [
        ("ER109", "no currency", json!({"currencyCode": null})),
        ("ER114", "a currency that is none", json!({"currencyCode": "JPY"})),
        ("ER188", "a slow card", json!({"sessionIdentifier": "sandbox-not-instant"})),
        ("ER393", "no session", json!({"sessionIdentifier": ""})),
        ("ER399", "no name on the card", json!({"cardHolderName": ""})),
        ("ER401", "a card that is refused", json!({"sessionIdentifier": "sandbox-refused"})),
    ];
    let row =
        |(code, wrong, changes)| Row::new(code, wrong, fixtures.ada_post(CARDS, &session(changes)));
    let token = json!({"access_token": ""});
    let mut rows: Vec<_> = wrong.into_iter().map(row).collect();
    rows.push(Row::new("ER393", "an empty token", fixtures.ada_post(WALLET, &token)));
    rows
}

async fn cards(fixtures: &Fixtures) -> Vec<Row> {
    let verify = |identifier: &str| {
        fixtures.ada_post(VERIFY_CARD, &json!({"accountIdentifier": identifier}))
    };
    let session = session(json!({"sessionIdentifier": "sandbox-unverifiable"}));
    let unverifiable = fixtures.ada_post(CARDS, &session).send().await.assert_status(200).json();
    let unverifiable = unverifiable["accountIdentifier"].as_str().unwrap();
    let (nameless, disabled, verified) =
        ("555555******0001", "555555******0002", "555555******0003");
    for (identifier, name, changes) in [
        (nameless, "", json!({})),
        (disabled, "Ada", json!({"disabled": true})),
        (verified, "Ada", json!({"verified": true})),
    ] {
        let card = json!({"type": "creditCard", "identifier": identifier, "name": name});
        open(fixtures, with(card, changes)).await;
    }
    vec![
        Row::new("ER380", "no card", verify("")),
        Row::new("ER396", "a card of nobody", verify("555555******0009")),
        Row::new("ER397", "a card that is disabled", verify(disabled)),
        Row::new("ER398", "a card that is verified", verify(verified)),
        Row::new("ER399", "a card without a name", verify(nameless)),
        Row::new("ER400", "a card that cannot be verified", verify(unverifiable)),
    ]
}

async fn plans(fixtures: &Fixtures) -> Vec<Row> {
    let mut codes = Vec::new();
    for person in [&fixtures.ada, &fixtures.eve] {
        let path = format!("/admin/v1/users/{}/dca-codes", person.uuid);
        let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET_ADDRESS});
        let plan = fixtures.operator(Method::POST, &path, plan).await;
        codes.push(format!("{PLANS}/{}", plan["code"].as_str().unwrap()));
    }
    let change = |path: &str, body: Value| fixtures.ada(Method::PATCH, path).json(&body);
    vec![
        Row::new("ER142", "a plan for every day", change(&codes[0], json!({"frequency": "daily"}))),
        Row::new("ER143", "a plan for nothing", change(&codes[0], json!({"intendedAmount": 0}))),
        Row::new("ER144", "a long name", change(&codes[0], json!({"name": "x".repeat(256)}))),
        Row::new("ER999", "somebody else's plan", change(&codes[1], json!({}))).with_status(404),
    ]
}
