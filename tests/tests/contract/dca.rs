//! Savings plans: opened by operators, changed by users, filled by deposits.

mod deposits;
mod late_reports;

use chrono::TimeDelta;
use futures::join;
use http::Method;
use rampart_core::platform::settings::Deposits;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_locks_are_awaited;
use rampart_tests::partner::{Partner, Request};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::orders::{BTC, count, user};

const PLANS: &str = "/api/v2/user/dca-codes";

/// A user who saves, and the partner.
struct Saver {
    partner: Partner,
    user: Uuid,
    identifier: String,
}

impl Saver {
    async fn of(context: &TestContext, partner: &Partner, name: &str) -> Self {
        let identifier = format!("{name:x<36}");
        let user = user(context, partner, &identifier).await;
        Self { partner: partner.clone(), user, identifier }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        self.partner.request(method, path).header("user-identifier", &self.identifier)
    }

    async fn plans(&self) -> Value {
        let answer = self.request(Method::GET, PLANS).send().await;
        answer.assert_status(200);
        answer.json()
    }

    async fn patch(&self, code: &str, body: &Value) -> Answer {
        self.request(Method::PATCH, &format!("{PLANS}/{code}")).json(body).send().await
    }

    async fn try_open(&self, context: &TestContext, body: Value) -> Answer {
        let path = format!("/admin/v1/users/{}/dca-codes", self.user);
        context.admin(Method::POST, &path, body).await
    }

    async fn open(&self, context: &TestContext) -> Value {
        let body = json!({"cryptoCurrency": "BTC", "walletAddress": BTC});
        self.try_open(context, body).await.assert_status(201).json()
    }

    /// The code of a new plan.
    async fn code(&self, context: &TestContext) -> String {
        self.open(context).await["code"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_plan_is_opened_and_shown() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let body = json!({"cryptoCurrency": "XRP", "destinationTag": 7, "partner": "acme",
        "walletAddress": "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh", "name": "For later",
        "intendedAmount": 5000, "frequency": "monthly"});
    let opened = ann.try_open(&context, body).await.assert_status(201).json();
    let code = opened["code"].as_str().unwrap();
    assert!(code.len() == 12 && code.bytes().all(|b| b.is_ascii_alphanumeric()), "{code}");
    let expected = json!({
        "code": code, "apiClientName": "acme", "cryptoCurrency": "XRP",
        "walletAddress": "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh", "destinationTag": 7,
        "bankName": "Sandbox Bank", "bankIban": "NL77SAND0000000001", "bankBic": "SANDNL2A",
        "name": "For later", "intendedAmount": 5000, "frequency": "monthly", "hidden": false,
        "createdAt": opened["createdAt"],
        "targetCurrency":
            {"code": "XRP", "ticker": "XRP", "name": "XRP", "caip19": "xrpl:0/slip44:144"},
    });
    assert_eq!(opened, expected);
    assert!(opened["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(ann.plans().await, json!([opened]));
    let audited = "select count(*) from audit where action = 'dca.open'";
    assert_eq!(count(&context, audited).await, 1);
}

#[tokio::test]
async fn plans_are_seen_by_their_user_and_by_a_client_token() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, bob) =
        (Saver::of(&context, &acme, "ann").await, Saver::of(&context, &acme, "bob").await);
    let eve = Saver::of(&context, &rival, "eve").await;
    let mut opened = Vec::new();
    for saver in [&ann, &bob, &ann] {
        opened.push(saver.open(&context).await);
        context.clock().advance(TimeDelta::seconds(1));
    }
    assert_eq!(opened[0]["apiClientName"], Value::Null);
    assert_eq!(ann.plans().await, json!([opened[2], opened[0]]));
    assert_eq!(bob.plans().await, json!([opened[1]]));
    assert_eq!(eve.plans().await, json!([]));
    acme.get(PLANS).await.assert_status(400).assert_codes(&["ER700"]);
    for (partner, seen) in [(&acme, json!([opened[2], opened[1], opened[0]])), (&rival, json!([]))]
    {
        let bearer = format!("Bearer {}", partner.token().await);
        let request = partner.anonymous(Method::GET, PLANS).header("authorization", &bearer);
        let answer = request.send().await;
        assert_eq!(answer.assert_status(200).json(), seen);
        let narrowed = partner.anonymous(Method::GET, PLANS).header("authorization", &bearer);
        let narrowed = narrowed.header("user-identifier", &ann.identifier).send().await;
        match seen.as_array().unwrap().len() {
            0 => narrowed.assert_codes(&["ER705"]),
            _ => narrowed.assert_status(200),
        };
    }
}

#[tokio::test]
async fn what_is_absent_stays_what_is_null_goes_what_is_sent_comes() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let mut plan = ann.open(&context).await;
    let code = plan["code"].as_str().unwrap().to_owned();
    let long = "é".repeat(255);
    for patch in [
        json!({"name": long, "intendedAmount": 5000, "frequency": "biweekly", "hidden": true}),
        json!({}),
        json!({"name": "Car"}),
        json!({"intendedAmount": null}),
        json!({"frequency": "half_yearly", "name": null}),
        json!({"frequency": null, "intendedAmount": 9_007_199_254_740_991_i64}),
        json!({"hidden": null, "unknown": 1}),
    ] {
        for (name, value) in patch.as_object().unwrap() {
            if plan.get(name).is_some() {
                plan[name] = value.clone();
            }
        }
        if patch.get("hidden") == Some(&Value::Null) {
            plan["hidden"] = json!(false);
        }
        let answer = ann.patch(&code, &patch).await;
        assert_eq!(answer.assert_status(200).json(), plan, "{patch}");
        assert_eq!(ann.plans().await, json!([plan]), "{patch}");
    }
}

#[tokio::test]
async fn every_wrong_member_has_its_code_and_changes_nothing() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let plan = ann.open(&context).await;
    let code = plan["code"].as_str().unwrap();
    for (member, value, refused) in [
        ("frequency", json!("daily"), "ER142"),
        ("frequency", json!("Weekly"), "ER142"),
        ("frequency", json!(""), "ER142"),
        ("frequency", json!(7), "ER142"),
        ("intendedAmount", json!(0), "ER143"),
        ("intendedAmount", json!(-1), "ER143"),
        ("intendedAmount", json!(12.5), "ER143"),
        ("intendedAmount", json!("5000"), "ER143"),
        ("intendedAmount", json!(9_007_199_254_740_992_i64), "ER143"),
        ("name", json!("x".repeat(256)), "ER144"),
        ("name", json!("a\u{0}b"), "ER144"),
        ("name", json!(7), "ER144"),
        ("hidden", json!("true"), "ER048"),
    ] {
        let body = json!({member: value, "unknown": 1});
        ann.patch(code, &body).await.assert_status(400).assert_codes(&[refused]);
    }
    let all = json!({"frequency": "daily", "intendedAmount": 0, "name": 7, "hidden": true});
    ann.patch(code, &all).await.assert_codes(&["ER142", "ER143", "ER144"]);
    ann.patch(code, &json!([])).await.assert_codes(&["ER048"]);
    assert_eq!(ann.plans().await, json!([plan]));
}

#[tokio::test]
async fn another_users_plan_is_as_absent_as_none() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (ann, bob) =
        (Saver::of(&context, &acme, "ann").await, Saver::of(&context, &acme, "bob").await);
    let eve = Saver::of(&context, &rival, "eve").await;
    let code = ann.code(&context).await;
    let body = json!({"name": "mine"});
    let absent = bob.patch("0123456789AB", &body).await;
    absent.assert_status(404).assert_codes(&["ER999"]);
    let others = [
        bob.patch(&code, &body).await,
        eve.patch(&code, &body).await,
        ann.patch(&code.to_lowercase(), &body).await,
        ann.patch("a%00b", &body).await,
        ann.patch("", &body).await,
    ];
    for answer in others {
        assert_eq!((answer.status(), answer.text()), (404, absent.text()));
    }
    ann.partner.patch(&format!("{PLANS}/{code}"), body.clone()).await.assert_codes(&["ER700"]);
    assert_eq!(ann.plans().await[0]["name"], Value::Null);

    let bearer = format!("Bearer {}", acme.token().await);
    let request = acme.anonymous(Method::PATCH, &format!("{PLANS}/{code}"));
    let request = request.header("authorization", &bearer);
    request.json(&json!({"name": "partner's"})).send().await.assert_status(200);
    assert_eq!(ann.plans().await[0]["name"], "partner's");
}

#[tokio::test]
async fn no_plan_is_opened_or_named_for_a_user_whose_erasure_is_under_way() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    let path = format!("{PLANS}/{}", ann.code(&context).await);
    let bearer = format!("Bearer {}", acme.token().await);
    let named = acme.anonymous(Method::PATCH, &path).header("authorization", &bearer);
    let named = named.json(&json!({"name": "Ann's"}));
    let opened = json!({"cryptoCurrency": "BTC", "walletAddress": BTC, "name": "Ann's"});
    let mut erasure = context.db().begin().await.unwrap();
    let erase = sqlx::query("update end_user set deleted_at = now()");
    erase.execute(&mut *erasure).await.unwrap();
    let commit = async {
        until_locks_are_awaited(context.db(), 2).await;
        erasure.commit().await.unwrap();
    };
    let (named, opened, ()) = join!(named.send(), ann.try_open(&context, opened), commit);
    assert_eq!((named.status(), opened.status()), (404, 404));
    assert_eq!(count(&context, "select count(*) from dca_plan where name is null").await, 1);
    assert_eq!(count(&context, "select count(*) from dca_plan").await, 1);
}

#[tokio::test]
async fn a_plan_is_opened_for_what_exists_alone() {
    let bank = Deposits {
        bank_name: "Real Bank".to_owned(),
        iban: "NL02REAL0123456789".to_owned(),
        bic: "REALNL2A".to_owned(),
    };
    let context = TestContext::start().await;
    let banked = TestContext::with(|settings| settings.deposits = Some(bank)).await;
    let acme = context.partner("acme").await;
    let ann = Saver::of(&context, &acme, "ann").await;
    for (member, value) in [
        ("cryptoCurrency", json!("EUR")),
        ("cryptoCurrency", json!("NOPE")),
        ("cryptoCurrency", json!(null)),
        ("walletAddress", json!("nowhere")),
        ("destinationTag", json!(7)),
        ("partner", json!("rival")),
        ("name", json!("x".repeat(256))),
        ("intendedAmount", json!(0)),
        ("frequency", json!("biweekly")),
        ("unknown", json!(1)),
    ] {
        let mut body = json!({"cryptoCurrency": "BTC", "walletAddress": BTC});
        body[member] = value;
        let answer = ann.try_open(&context, body).await;
        assert_eq!(answer.status(), 422, "{member} {}", answer.text());
    }
    let body = json!({"cryptoCurrency": "BTC", "walletAddress": BTC});
    let nobody = format!("/admin/v1/users/{}/dca-codes", Uuid::nil());
    context.admin(Method::POST, &nobody, body.clone()).await.assert_status(404);
    for (edge, status, name) in [(&context, 409, Value::Null), (&banked, 201, json!("Real Bank"))] {
        let live = edge.partner_of(json!({"slug": "live", "name": "L", "mode": "live"})).await;
        let lou = Saver::of(edge, &live, "lou").await;
        let answer = lou.try_open(edge, body.clone()).await;
        assert_eq!(answer.assert_status(status).json()["bankName"], name);
    }
}
