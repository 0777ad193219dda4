//! The fate of a key whose request dies: between claim and effect, between effect and answer,
//! with Postgres, or only as others see it.

use std::time::Duration;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::connector::Connector;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::partner::{Partner, Request};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

use crate::orders::{Shop, confirm_of};

const KEY: &str = "the-key";

/// A POST with the key, to be sent any number of times.
#[derive(Clone)]
struct Post {
    partner: Partner,
    /// The user's credential: header and value.
    user: Option<(&'static str, String)>,
    path: &'static str,
    body: Value,
    /// The table that its effect is a row of.
    table: &'static str,
}

impl Post {
    fn request(&self) -> Request {
        let request = self.partner.request(Method::POST, self.path).json(&self.body);
        let request = request.header("idempotency-key", KEY);
        match &self.user {
            Some((header, value)) => request.header(header, value),
            None => request,
        }
    }

    async fn send(&self) -> Answer {
        self.request().send().await
    }

    /// Sends it again until it is answered with 200.
    async fn send_until_done(&self, within: Duration) -> Answer {
        until(self.path, within, async || {
            let answer = self.send().await;
            match answer.status() {
                200 => Some(answer),
                409 | 503 => None,
                other => panic!("{}: {other} {}", self.path, answer.text()),
            }
        })
        .await
    }

    async fn effects(&self, db: &PgPool) -> i64 {
        let statement = format!("select count(*) from {}", self.table);
        sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(db).await.unwrap()
    }

    /// Lets nobody write the table until the transaction ends.
    async fn hold_table(&self, db: &PgPool) -> Transaction<'static, Postgres> {
        let mut tx = db.begin().await.unwrap();
        let statement = format!("lock table {} in share mode", self.table);
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *tx).await.unwrap();
        tx
    }
}

/// POSTs of one partner whose effects are not protected by anything else than their key.
fn creations(partner: &Partner) -> Vec<Post> {
    let offer =
        json!({"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"});
    let mut checkout = offer.clone();
    checkout["returnUrl"] = json!("https://shop.example/back");
    let hook = json!({"url": "https://shop.example/hook"});
    let posts = [
        ("/api/v2/buy/offer", offer, "offer"),
        ("/api/v2/buy/checkout", checkout, "checkout"),
        ("/api/v2/webhooks", hook, "webhook_endpoint"),
    ];
    let posts = posts.map(|(path, body, table)| {
        let partner = partner.clone();
        Post { partner, user: None, path, body, table }
    });
    posts.into()
}

/// A pool with room for the locks of a test.
pub(super) async fn pool(context: &TestContext) -> PgPool {
    PgPool::connect_with((*context.db().connect_options()).clone()).await.unwrap()
}

/// The claim of the key on this path, once there is one that is not `other`.
async fn claim_of(db: &PgPool, path: &str, other: Option<Uuid>) -> Uuid {
    until("the key is claimed", SOON, async || {
        let claim: Option<Uuid> =
            sqlx::query_scalar("select claim_id from idempotency_key where route = $1")
                .bind(path)
                .fetch_optional(db)
                .await
                .unwrap();
        claim.filter(|claim| other != Some(*claim))
    })
    .await
}

#[tokio::test]
async fn every_answer_is_saved_by_the_transaction_of_its_effect() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ann = acme.user("ann").await;
    let token = format!("Bearer {}", ann.log_in().await["token"].as_str().unwrap());
    let quote = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"});
    let quote = ann.post("/api/v1/sell/quote", &quote).await.assert_status(200).json();
    let registration = rampart_tests::user::registration("bob");
    let proof = json!({"name": "Ada Lovelace", "iban": "NL91ABNA0417164300",
        "proof": "iVBORw0KGgoAAAANSUhEUgAAAAE="});
    let card = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    let mut posts = creations(&acme);
    for (path, body, table) in [
        ("/api/v1/sell/confirm", json!({"quote": quote["quote"]}), "sell_order"),
        ("/api/v2/user", registration, "end_user"),
        ("/api/v2/user/link-identifier", json!({"identifier": "y".repeat(40)}), "user_identifier"),
        ("/api/v2/user/accounts/cards/processor", card, "payment_account"),
        ("/api/v1/user/verify/iban/photo", proof, "ownership_proof"),
    ] {
        let user = match path {
            "/api/v2/user" => None,
            "/api/v2/user/link-identifier" => Some(("user-authorization", token.clone())),
            _ => Some(("user-identifier", ann.identifier.clone())),
        };
        posts.push(Post { partner: acme.clone(), user, path, body, table });
    }
    for post in posts {
        let first = post.send().await;
        first.assert_status(200);
        let statement = format!(
            "select count(*) from {} e join idempotency_key k on k.client_id = e.client_id \
             where k.route = $1 and k.status = 200 and k.xmin = e.xmin",
            post.table
        );
        let together: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
            .bind(post.path)
            .fetch_one(context.db())
            .await
            .unwrap();
        assert_eq!(together, 1, "{}: in a transaction of its own", post.path);
        let again = post.send().await;
        assert_eq!(again.assert_status(200).text(), first.text(), "{}", post.path);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    }
}

#[tokio::test]
async fn a_request_that_dies_before_its_answer_is_saved_has_made_nothing() {
    let context = TestContext::start().await;
    let db = pool(&context).await;
    for post in creations(&context.partner("acme").await) {
        let table = post.hold_table(&db).await;
        let dying = tokio::spawn({
            let post = post.clone();
            async move { post.send().await.status() }
        });
        let claim = claim_of(&db, post.path, None).await;
        let mut row = db.begin().await.unwrap();
        sqlx::query("select from idempotency_key where claim_id = $1 for update")
            .bind(claim)
            .execute(&mut *row)
            .await
            .unwrap();
        table.rollback().await.unwrap();
        let backend: i32 = until("it is about to save its answer", SOON, async || {
            sqlx::query_scalar(
                "select pid from pg_stat_activity where datname = current_database() \
                 and wait_event_type = 'Lock' and query like 'update idempotency_key%'",
            )
            .fetch_optional(&db)
            .await
            .unwrap()
        })
        .await;
        assert_eq!(post.effects(&db).await, 0, "{}: an effect without an answer", post.path);
        let ended = sqlx::query("select pg_terminate_backend($1)").bind(backend);
        ended.execute(&db).await.unwrap();
        row.rollback().await.unwrap();
        assert_eq!(dying.await.unwrap(), 503);
        let answer = post.send_until_done(SOON).await;
        assert_eq!(post.effects(&db).await, 1, "{}", post.path);
        let again = post.send().await;
        assert_eq!(again.assert_status(200).text(), answer.text(), "{}", post.path);
    }
}

#[tokio::test]
async fn a_request_that_was_taken_for_dead_has_no_effect_any_more() {
    let context = TestContext::start().await;
    let db = pool(&context).await;
    let shop = Shop::of(&context, "acme").await;
    let mut posts = creations(shop.partner());
    posts.push(Post {
        partner: shop.partner().clone(),
        user: Some(("user-identifier", shop.identifier().to_owned())),
        path: "/api/v1/buy/confirm",
        body: confirm_of(&shop.quote(&context, |_| ())),
        table: "buy_order",
    });
    for post in posts {
        let table = post.hold_table(&db).await;
        let send = || {
            let post = post.clone();
            tokio::spawn(async move { post.send().await })
        };
        let slow = send();
        let claim = claim_of(&db, post.path, None).await;
        let age = "update idempotency_key set claimed_at = claimed_at - interval '1 minute'";
        sqlx::query(age).execute(&db).await.unwrap();
        let next = send();
        claim_of(&db, post.path, Some(claim)).await;
        table.rollback().await.unwrap();
        let next = next.await.unwrap();
        next.assert_status(200);
        let slow = slow.await.unwrap();
        match slow.status() {
            200 => assert_eq!(slow.text(), next.text(), "{}", post.path),
            409 => drop(slow.assert_codes(&["ER999"])),
            other => panic!("{}: {other} {}", post.path, slow.text()),
        }
        assert_eq!(post.effects(&db).await, 1, "{}", post.path);
        let again = post.send().await;
        assert_eq!(again.assert_status(200).text(), next.text(), "{}", post.path);
    }
}

#[tokio::test]
async fn a_request_that_lives_keeps_its_key() {
    let context = TestContext::with(|settings| settings.connectors.answer_seconds = 60).await;
    let connector = Connector::of_live(&context).await;
    let live = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let ada = context.partner_of(live).await.user("ada").await;
    let post = Post {
        partner: ada.partner.clone(),
        user: Some(("user-identifier", ada.identifier.clone())),
        path: "/api/v2/user/accounts/cards/processor",
        body: json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
            "currencyCode": "EUR"}),
        table: "payment_account",
    };
    let slow = tokio::spawn({
        let post = post.clone();
        async move { post.send().await }
    });
    let claim = claim_of(context.db(), post.path, None).await;
    until("it has lived longer than a dead one is waited for", SOON, async || {
        let lives = "select claimed_at > expires_at - interval '23:59:56' \
                     from idempotency_key where claim_id = $1";
        let lives: bool =
            sqlx::query_scalar(lives).bind(claim).fetch_one(context.db()).await.unwrap();
        lives.then_some(())
    })
    .await;
    post.send().await.assert_status(409).assert_codes(&["ER999"]);
    assert_eq!(claim_of(context.db(), post.path, None).await, claim);
    let wait = json!({"max": 1, "waitSeconds": 30, "leaseSeconds": 60, "kinds": ["card.verify"]});
    let leased = connector.call(Method::POST, "/connectors/v1/commands/lease", wait).await;
    let command = leased.assert_status(200).json()[0].take();
    let card = json!({"accountIdentifier": "411111******1234", "token": "tok"});
    connector.report(&command, "done", card).await.assert_status(200);
    let first = slow.await.unwrap();
    first.assert_status(200);
    let again = post.send().await;
    assert_eq!(again.assert_status(200).text(), first.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(post.effects(context.db()).await, 1);
}

#[tokio::test]
async fn a_key_that_an_outage_has_kept_is_free_five_seconds_later() {
    let context = TestContext::with(|settings| settings.database.acquire_timeout_ms = 500).await;
    let acme = context.partner("acme").await;
    let post = creations(&acme).remove(0);
    let db = pool(&context).await;
    let table = post.hold_table(&db).await;
    let dying = tokio::spawn({
        let post = post.clone();
        async move { post.send().await.status() }
    });
    let claim = claim_of(&db, post.path, None).await;
    let options = (*context.db().connect_options()).clone();
    let name = options.get_database().unwrap().to_owned();
    let mut server = PgConnection::connect_with(&options.database("postgres")).await.unwrap();
    let mut run = async |statement: String| {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut server).await.unwrap();
    };
    run(format!("alter database {name} with allow_connections false")).await;
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname";
    run(format!("{end} = '{name}'")).await;
    assert_eq!(dying.await.unwrap(), 503);
    // So is one that begins while the database takes no connections.
    assert_eq!(post.send().await.status(), 503);
    drop(table);
    run(format!("alter database {name} with allow_connections true")).await;
    let db = pool(&context).await;
    let later = "update idempotency_key set claimed_at = claimed_at - interval '5 seconds'";
    sqlx::query(later).execute(&db).await.unwrap();
    until("the request is made", SOON, async || {
        let status = post.send().await.status();
        if status == 409 {
            // Another one of these may have it, which ended while the pool was not well yet.
            let claims = "select claim_id from idempotency_key";
            let claims: Vec<Uuid> = sqlx::query_scalar(claims).fetch_all(&db).await.unwrap();
            assert!(!claims.contains(&claim), "the key is kept");
        }
        assert!([200, 409, 503].contains(&status), "{status}");
        (status == 200).then_some(())
    })
    .await;
    assert_eq!(post.effects(&db).await, 1);
}
