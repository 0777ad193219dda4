//! Codes: what the API document names for an endpoint, the endpoint declares.

use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::Value;

/// First and last number of codes.
type Range = (u16, u16);

/// Codes of the client's authorization.
const CLIENT: &[Range] = &[(800, 803), (805, 806), (999, 999)];
/// Codes of the user's authorization.
const USER: Range = (700, 709);

/// The API document's endpoints for clients, with their codes besides [`CLIENT`].
const DOCUMENTED: &[(&str, &[Range])] = &[
    ("POST /api/v1/user/login", &[(1, 1), (3, 5), USER]),
    ("POST /api/v1/user/logout", &[(700, 702)]),
    ("POST /api/v1/user/register-identifier", &[(53, 53)]),
    ("POST /api/v2/user/link-identifier", &[(53, 53), (102, 102), USER]),
    ("GET /api/v1/user/login-token", &[USER]),
    ("POST /api/v1/user/reset-password", &[(1, 1), (3, 3), (354, 354)]),
    ("GET /api/v1/user/exists", &[(1, 1), (3, 3)]),
    (
        "POST /api/v2/user",
        &[
            (1, 3),
            (53, 53),
            (59, 64),
            (81, 85),
            (90, 90),
            (102, 102),
            (121, 123),
            (125, 127),
            (181, 184),
        ],
    ),
    ("GET /api/v2/user/verification-status", &[(404, 404), USER]),
    ("GET /api/v1/user/verify/amld5", &[(99, 99)]),
    ("POST /api/v1/user/verify/amld5", &[(100, 101)]),
    ("POST /api/v1/user/verify/payprovider", &[(393, 393), USER]),
    (
        "POST /api/v1/user/verify/iban/photo",
        &[(56, 57), (77, 78), (86, 88), (113, 113), (185, 186), USER],
    ),
    ("POST /api/v1/user/verify/card", &[(48, 48), (380, 380), (396, 400), USER]),
    (
        "POST /api/v2/user/accounts/cards/processor",
        &[(109, 109), (114, 114), (188, 188), (393, 393), (399, 399), (401, 401), USER],
    ),
    ("GET /api/v2/user/limit", &[(38, 38), (700, 707), (709, 709)]),
    ("GET /api/v2/buy/payment-methods", &[]),
    ("POST /api/v2/buy/offer", &[(300, 339), (402, 403)]),
    ("POST /api/v2/buy/confirm", &[(6, 9), (14, 15), (44, 48), (124, 124), (131, 139)]),
    ("POST /api/v1/buy/confirm", &[(6, 9), (14, 15), (44, 48), (124, 124)]),
    ("POST /api/v2/buy/checkout", &[(300, 301), (303, 339), (359, 359), (366, 367), (402, 403)]),
    ("GET /api/v1/user/buy/orders/{id}", &[(33, 35), USER]),
    ("GET /api/v2/buy/orders/{id}", &[(33, 35), USER]),
    ("GET /api/v2/user/dca-codes", &[]),
    ("PATCH /api/v2/user/dca-codes/{code}", &[(142, 144)]),
    (
        "POST /api/v2/sell/onboarding",
        &[
            (47, 47),
            (53, 53),
            (99, 99),
            (102, 102),
            (308, 308),
            (331, 331),
            (340, 340),
            (367, 367),
            (417, 417),
        ],
    ),
    ("POST /api/v2/sell/onboarding/verify", &[(331, 331), (336, 336)]),
];

/// The catalogue's entry of a code; `None` if there is no such code.
fn entry(catalogue: &Value, number: u16) -> Option<&Value> {
    let code = format!("ER{number:03}");
    catalogue.as_array().unwrap().iter().find(|entry| entry["code"] == *code)
}

#[tokio::test]
async fn an_endpoint_declares_the_codes_that_the_document_names_for_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let catalogue = acme.get("/api/v2/system/errors").await.json();
    for (endpoint, own) in DOCUMENTED {
        for (first, last) in own.iter().chain(CLIENT) {
            assert!(entry(&catalogue, *first).is_some() && entry(&catalogue, *last).is_some());
            for known in (*first..=*last).filter_map(|number| entry(&catalogue, number)) {
                let (endpoints, code) = (known["endpoints"].as_array().unwrap(), &known["code"]);
                assert!(endpoints.contains(&Value::from(*endpoint)), "{endpoint}: {code}");
            }
        }
    }
}

#[tokio::test]
async fn a_documented_code_of_users_is_answered_on_demand() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    for number in USER.0..=USER.1 {
        let code = format!("ER{number}");
        let request = ada.request(Method::GET, "/api/v1/user/login-token");
        let answer = request.header("x-rampart-scenario", &code).send().await;
        answer.assert_status(400).assert_codes(&[&code]);
    }
}
