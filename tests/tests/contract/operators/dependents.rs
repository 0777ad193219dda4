//! Numbers of what depends on something, for a look before it is taken away.

use rampart_tests::order_fixture::OrderFixture;

use super::*;

async fn ask(context: &TestContext, query: &str) -> Answer {
    let path = format!("/admin/v1/dependents?{query}");
    context.admin(Method::GET, &path, Value::Null).await
}

async fn counted(context: &TestContext, query: &str) -> Value {
    ask(context, query).await.assert_status(200).json()
}

#[tokio::test]
async fn what_a_partner_and_its_parts_hold_is_counted() {
    let context = TestContext::start().await;
    let (acme, beta) = (context.partner("acme").await, context.partner("beta").await);
    acme.user("ada").await;
    beta.user("eve").await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    let hook = acme.post("/api/v2/webhooks", hook).await.assert_status(200).json();
    for _ in 0..2 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let ended = OrderFixture::order(&context, &acme, None, None).await;
    ended.event(&context, "cancel").await.assert_status(200);
    OrderFixture::order(&context, &beta, None, None).await;

    let wanted = json!({"openOrders": 2, "apiKeys": 1, "users": 1, "webhookEndpoints": 1,
        "staff": 0});
    assert_eq!(counted(&context, "partner=acme").await, wanted);
    let hook = format!("partner=acme&webhook={}", hook["id"].as_str().unwrap());
    assert_eq!(counted(&context, &hook).await, json!({"pendingDeliveries": 1}));
    let path = "/admin/v1/partners/acme/api-keys";
    let key = context.admin(Method::POST, path, json!({"name": "office"})).await;
    let key = key.assert_status(201).json()["id"].as_str().unwrap().to_owned();
    let key = format!("partner=acme&apiKey={key}");
    assert_eq!(counted(&context, &key).await, json!({"apiKeys": 1}), "the other one");
    let policy = counted(&context, "partner=acme&policy=fee").await;
    assert_eq!(policy, json!({"versions": 0, "users": 1}));
    let path = "/admin/v1/partners/acme/staff";
    let invited = json!({"email": "ada@acme.example", "role": "support"});
    context.admin(Method::POST, path, invited).await.assert_status(201);
    let staff = context.admin(Method::GET, path, Value::Null).await.json();
    let staff = format!("partner=acme&staff={}", staff[0]["id"].as_str().unwrap());
    assert_eq!(counted(&context, &staff).await, json!({"sessions": 0}));
    // Of another partner.
    for part in [&hook, &key, &staff] {
        ask(&context, &part.replace("acme", "beta")).await.assert_status(404);
    }
    // Counting stops.
    sqlx::query(
        "insert into api_key (client_id, api_key_id, public_id, secret_digest, created_at) \
         select $1, gen_random_uuid(), n::text, ''::bytea, now() from generate_series(1, 1001) n",
    )
    .bind(acme.id.parse::<uuid::Uuid>().unwrap())
    .execute(context.db())
    .await
    .unwrap();
    assert_eq!(counted(&context, "partner=acme").await["apiKeys"], 1000);
    assert_eq!(counted(&context, &key).await["apiKeys"], 1000, "of the other ones too");
}

#[tokio::test]
async fn what_users_operators_and_the_market_hold_is_counted() {
    let context = TestContext::start().await;
    let (acme, beta) = (context.partner("acme").await, context.partner("beta").await);
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let order = OrderFixture::order(&context, &acme, None, None).await;
    OrderFixture::order(&context, &beta, None, None).await;
    sqlx::query("update buy_order set user_id = $1 where order_id = $2")
        .bind(user.parse::<uuid::Uuid>().unwrap())
        .bind(order.id)
        .execute(context.db())
        .await
        .unwrap();
    let of_user = counted(&context, &format!("user={user}")).await;
    assert_eq!((&of_user["orders"], &of_user["openOrders"]), (&json!(1), &json!(1)));
    order.event(&context, "cancel").await.assert_status(200);
    let of_user = counted(&context, &format!("user={user}")).await;
    assert_eq!((&of_user["orders"], &of_user["openOrders"]), (&json!(1), &json!(0)));
    assert!(of_user["accounts"].is_i64() && of_user["documents"].is_i64(), "{of_user}");
    for rows in [
        "insert into payment_account \
             (client_id, user_id, account_id, type, sealed, last_used_at, created_at) \
         select $1, $2, gen_random_uuid(), 'bankTransfer', ''::bytea, now(), now() \
         from generate_series(1, 1001)",
        "insert into user_document \
             (client_id, user_id, type, side, document_id, status, media_type, created_at) \
         select $1, $2, n::text, 'front', gen_random_uuid(), 'pending', 'image/png', now() \
         from generate_series(1, 1001) n",
    ] {
        sqlx::query(rows)
            .bind(acme.id.parse::<uuid::Uuid>().unwrap())
            .bind(user.parse::<uuid::Uuid>().unwrap())
            .execute(context.db())
            .await
            .unwrap();
    }
    let of_user = counted(&context, &format!("user={user}")).await;
    assert_eq!((&of_user["accounts"], &of_user["documents"]), (&json!(1000), &json!(1000)));

    OrderFixture::order(&context, &acme, None, None).await;
    let open = json!({"openOrders": 2, "partners": 2});
    assert_eq!(counted(&context, "pair=BTC-EUR").await, open);
    assert_eq!(counted(&context, "paymentMethod=creditCard").await, open);
    let none = json!({"openOrders": 0, "partners": 0});
    assert_eq!(counted(&context, "paymentMethod=bankTransfer").await, none);
    let eve = Operator::new(&context, "eve", &["viewer"]).await;
    let of_eve = eve.get("/admin/v1/dependents?operator=eve").await.assert_status(200).json();
    assert_eq!(of_eve, json!({"tokens": 1, "sessions": 0}));
    assert_eq!(counted(&context, "").await["routes"], 0);
}

#[tokio::test]
async fn sessions_that_end_with_an_operator_are_counted() {
    let context = TestContext::start().await;
    for name in ["eve", "bob"] {
        Operator::new(&context, name, &["viewer"]).await;
    }
    for statement in [
        "insert into operator_identity (identity, name) \
         values ('of eve', 'eve'), ('of both', 'eve'), ('of both', 'bob')",
        // One is of a person who has come under her name before, and one of no living token.
        "insert into operator_session \
             (session_id, digest, name, roles, token_digest, identity, expires_at, created_at) \
         select gen_random_uuid(), sha256(n::text::bytea), name, '{viewer}', token, identity, \
             now() + interval '1 hour', now() \
         from (values (1, 'eve', null::bytea, null), (2, 'mia', null, 'of eve'), \
             (3, 'bob', null, 'of both'), (4, 'eve', 'gone', null), (5, 'mia', null, 'other')) \
             s (n, name, token, identity)",
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let sessions = async |name: &str| {
        let counted = counted(&context, &format!("operator={name}")).await;
        counted["sessions"].as_i64().unwrap()
    };
    assert_eq!((sessions("eve").await, sessions("bob").await), (3, 1));
    let disabled = json!({"disabled": true});
    context.admin(Method::PATCH, "/admin/v1/operators/eve", disabled).await.assert_status(204);
    assert_eq!((sessions("eve").await, sessions("bob").await), (0, 0));
}

#[tokio::test]
async fn a_subject_is_one_and_exists() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    for (query, status) in [
        ("partner=nobody", 404),
        ("user=x", 404),
        ("user=00000000-0000-7000-8000-000000000000", 404),
        ("pair=AAA-BBB", 404),
        ("paymentMethod=barter", 404),
        ("operator=nobody", 404),
        ("partner=acme&apiKey=x", 404),
        ("partner=acme&webhook=00000000-0000-7000-8000-000000000000", 404),
        ("partner=acme&policy=colour", 404),
        ("apiKey=00000000-0000-7000-8000-000000000000", 422),
        ("partner=acme&user=00000000-0000-7000-8000-000000000000", 422),
        ("pair=BTC-EUR&operator=ada", 422),
    ] {
        let answer = ask(&context, query).await;
        assert_eq!(answer.status(), status, "{query}: {}", answer.text());
    }
}
