//! Operators' search for users: by keyed digests, masked for those who may not see persons, audited.

use bytes::Bytes;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::registration;
use serde_json::{Value, json};
use url::form_urlencoded;

async fn search(context: &TestContext, query: &str) -> Answer {
    context.admin(Method::GET, &format!("/admin/v1/users?{query}"), Value::Null).await
}

fn query(name: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

/// The addresses that a search finds, sorted.
async fn emails(context: &TestContext, query: &str) -> Vec<String> {
    let found = search(context, query).await.assert_status(200).json();
    let rows = found.as_array().unwrap().iter();
    let mut found: Vec<_> = rows.map(|row| row["email"].as_str().unwrap().to_owned()).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_user_is_found_by_everything_that_is_asked_about() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let ada = acme.user("ada").await;
    let mut zoe = registration("zoe");
    zoe["firstName"] = json!("Zoë");
    zoe["lastName"] = json!("van der Berg");
    zoe["phoneNumber"] = json!("+31687654321");
    other.post("/api/v2/user", zoe).await.assert_status(200);
    other.user("ada").await;
    let both = ["ada@mail.example.com", "ada@mail.example.com"];
    let one = &both[..1];
    assert_eq!(emails(&context, &query("email", "Ada@mail.example.com")).await, both);
    assert_eq!(emails(&context, "email=ada@mail.example.com&partner=acme").await, one);
    assert_eq!(
        emails(&context, &query("phone", "+31 6 8765-4321")).await,
        ["zoe@mail.example.com"]
    );
    assert_eq!(
        emails(&context, &query("name", "VAN DER BERG, zoe")).await,
        ["zoe@mail.example.com"]
    );
    assert_eq!(emails(&context, &query("name", "lovelace ada")).await, both);
    assert_eq!(emails(&context, &query("identifier", &ada.identifier)).await, both);
    assert_eq!(emails(&context, "name=Ada+Lovelace&partner=other").await, one);
    let none = [""; 0];
    assert_eq!(emails(&context, "email=zoe@mail.example.com&name=Ada+Lovelace").await, none);
    assert_eq!(emails(&context, "name=Ada").await, none);
    assert_eq!(emails(&context, "partner=nobody").await, none);
    assert_eq!(emails(&context, "").await.len(), 3);
}

#[tokio::test]
async fn the_index_follows_a_change_and_an_erasure() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let renamed = json!({"lastName": "King", "phoneNumber": "+31699999999"});
    ada.patch("/api/v2/user", &renamed).await.assert_status(200);
    for gone in ["name=Ada+Lovelace", "phone=%2B31612345678"] {
        assert_eq!(emails(&context, gone).await, [""; 0], "{gone}");
    }
    for now in ["name=Ada+King", "phone=%2B31699999999"] {
        assert_eq!(emails(&context, now).await, ["ada@mail.example.com"], "{now}");
    }
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    assert_eq!(emails(&context, "name=Ada+King").await, [""; 0]);
    let kept: i64 = sqlx::query_scalar("select count(*) from user_search")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn users_of_before_are_indexed_by_a_worker_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for name in ["ada", "bob", "eve"] {
        acme.user(name).await;
    }
    sqlx::query("delete from user_search").execute(context.db()).await.unwrap();
    assert_eq!(emails(&context, "name=Ada+Lovelace").await, [""; 0]);
    let edge = context.second_edge().await;
    tokio::try_join!(context.core().index_users(), edge.core().index_users()).unwrap();
    assert_eq!(emails(&context, "name=Ada+Lovelace").await.len(), 3);
    sqlx::query("delete from user_search").execute(context.db()).await.unwrap();
    context.core().index_users().await.unwrap();
    assert_eq!(emails(&context, "name=Ada+Lovelace").await, [""; 0], "it has finished");
}

#[tokio::test]
async fn who_may_not_see_persons_sees_them_masked_and_every_look_is_audited() {
    let context = TestContext::start().await;
    let uuid = context.partner("acme").await.user("ada").await.log_in().await["uuid"].clone();
    let as_role = async |role: &str| {
        let token = context.operator(role, &[role]).await;
        let path = "/admin/v1/users?email=ada@mail.example.com&partner=acme";
        let answer = context.admin_as(Some(&token), Method::GET, path, Bytes::new()).await;
        answer.assert_status(200).json()[0].clone()
    };
    let masked = as_role("treasury").await;
    assert_eq!(
        (&masked["masked"], &masked["email"], &masked["firstName"], &masked["phoneNumber"]),
        (&json!(true), &json!("a***@mail.example.com"), &json!("A***"), &json!("***78"))
    );
    let clear = as_role("support").await;
    assert_eq!(
        (&clear["masked"], &clear["email"], &clear["lastName"]),
        (&json!(false), &json!("ada@mail.example.com"), &json!("Lovelace"))
    );
    assert_eq!(emails(&context, "partner=ada@mail.example.com").await, [""; 0]);
    let audit = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let rows: Vec<_> = audit.as_array().unwrap().iter().collect();
    let looks: Vec<_> = rows.into_iter().filter(|row| row["action"] == "user.search").collect();
    let actors: Vec<_> = looks.iter().map(|row| row["actor"].as_str().unwrap()).collect();
    assert_eq!(actors, ["admin", "support", "treasury"]);
    assert_eq!(looks[0]["target"], "", "there is no such partner");
    let detail = json!({"by": ["email"], "masked": false, "users": [uuid]});
    assert_eq!((&looks[1]["target"], &looks[1]["detail"]), (&json!("acme"), &detail));
    assert!(!audit.to_string().contains("mail.example.com"));
}

#[tokio::test]
async fn users_whom_no_key_opens_are_found_without_their_data() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    acme.user("ada").await;
    other.user("ada").await;
    let altered = "update end_user set personal = personal || 'x'::bytea \
         where client_id = (select client_id from client where slug = 'acme')";
    sqlx::query(altered).execute(context.db()).await.unwrap();
    for by in ["", "email=ada@mail.example.com"] {
        let found = search(&context, by).await.assert_status(200).json();
        let rows = found.as_array().unwrap().iter();
        let mut shown: Vec<_> =
            rows.map(|row| (row["partner"].clone(), row["email"].clone())).collect();
        shown.sort_by_key(|(partner, _)| partner.to_string());
        let expected = [("acme", Value::Null), ("other", json!("ada@mail.example.com"))];
        assert_eq!(shown, expected.map(|(partner, email)| (json!(partner), email)), "{by}");
    }
    // A name that nobody can compare is nobody's.
    assert_eq!(emails(&context, "name=Ada+Lovelace").await, ["ada@mail.example.com"]);
}

#[tokio::test]
async fn pages_lead_to_the_next_and_mistakes_are_named_without_their_values() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for name in ["ada", "bob", "eve"] {
        acme.user(name).await;
    }
    let mut seen = Vec::new();
    let mut path = Some("/admin/v1/users?limit=2&name=Ada+Lovelace".to_owned());
    while let Some(this) = path.take() {
        let answer = context.admin(Method::GET, &this, Value::Null).await;
        let rows = answer.assert_status(200).json();
        seen.extend(rows.as_array().unwrap().iter().map(|row| row["email"].clone()));
        let link = answer.header("link").map(str::to_owned);
        path = link.map(|link| link.split(['<', '>']).nth(1).unwrap().to_owned());
    }
    let newest_first = ["eve", "bob", "ada"].map(|name| json!(format!("{name}@mail.example.com")));
    assert_eq!(seen, newest_first);
    for wrong in [
        "email=secret",
        "phone=secret",
        "name=-",
        "identifier=secret",
        "after=x",
        "limit=51",
        "limit=0",
    ] {
        let refused = search(&context, wrong).await;
        assert_eq!(refused.status(), 422, "{wrong}");
        assert!(!refused.text().contains("secret"), "{}", refused.text());
    }
}
