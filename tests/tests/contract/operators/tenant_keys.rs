//! Keys of single tenants below the master key.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use rampart_api::operate::key_rotation::rotate_keys;
use rampart_core::platform::crypto::Secret;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::outbox;
use rampart_tests::partner::Partner;
use rampart_tests::staff::Staff;
use rampart_tests::user::User;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::*;

/// The master key of every context.
const MASTER: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const ROTATION: &str = "/admin/v1/keys/rotation";
/// Marks of values that the master key, a tenant's key, or that and then the master key has sealed, in
/// hex.
const BY_MASTER: &str = "524b01";
const BY_TENANT: &str = "525401";
const BY_BOTH: &str = "524c01";
/// Columns of tenants' tables whose values each of these tests leaves behind.
const COLUMNS: [&str; 7] = [
    "client_secret.sealed",
    "mail_outbox.sealed",
    "payment_report.sealed",
    "personal_key.sealed",
    "staff_member.sealed_email",
    "verification_key.sealed",
    "webhook_endpoint_secret.sealed",
];
/// Columns whose values the master key seals once more.
const TWICE: [&str; 3] =
    ["checkout.sealed_share_token", "mail_outbox.sealed", "personal_key.sealed"];

fn new() -> String {
    STANDARD.encode([9; 32])
}

/// A tenant with something of everything that is sealed for it.
struct Tenant {
    partner: Partner,
    user: User,
}

async fn tenant(context: &TestContext, slug: &str) -> Tenant {
    let partner = context.partner(slug).await;
    let user = partner.user(&format!("{slug}ada")).await;
    let verification = json!({"algorithm": "hmac-sha256", "key": STANDARD.encode([1; 32])});
    let path = format!("/admin/v1/partners/{slug}/verification-keys/main");
    context.admin(Method::PUT, &path, verification).await.assert_status(200);
    let mut staff = Staff::signed_in(context, &partner, "developer").await;
    let hook = [("url", "https://shop.example/hook")];
    staff.submit("/portal/webhooks", &hook).await.assert_status(200);
    let order = OrderFixture::order(context, &partner, None, None).await;
    let statement = format!(
        "date,amount,currency,reference,providerReference,name,iban\n\
         2026-03-02,100.00,EUR,order {},{slug},Ada,\n",
        order.id
    );
    let path = "/admin/v1/reconciliations?connector=manual";
    let read = context.admin_bytes(Method::POST, path, Bytes::from(statement)).await;
    assert_eq!(read.assert_status(201).json()["recorded"], 1);
    Tenant { partner, user }
}

/// Sealed values of tenants' tables, by column and mark.
async fn sealed(context: &TestContext) -> BTreeMap<(String, String), i64> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select c.table_name::text, c.column_name::text from information_schema.columns c \
         join information_schema.columns t using (table_schema, table_name) \
         where table_schema = 'public' and t.column_name = 'client_id' \
             and c.data_type = 'bytea' and c.column_name like 'sealed%'",
    )
    .fetch_all(context.db())
    .await
    .unwrap();
    let mut counts = BTreeMap::new();
    for (table, column) in columns {
        let rows: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(format!(
            "select encode(substring({column} from 1 for 3), 'hex'), count(*) from {table} \
             where {column} is not null group by 1"
        )))
        .fetch_all(context.db())
        .await
        .unwrap();
        for (mark, count) in rows.into_iter().filter(|(mark, _)| mark.starts_with("52")) {
            counts.insert((format!("{table}.{column}"), mark), count);
        }
    }
    counts
}

/// The columns that have values with this mark.
async fn columns(context: &TestContext, mark: &str) -> Vec<String> {
    let sealed = sealed(context).await.into_keys();
    sealed.filter(|(_, found)| found == mark).map(|(column, _)| column).collect()
}

/// The number of values with this mark.
async fn count(context: &TestContext, mark: &str) -> i64 {
    let sealed = sealed(context).await.into_iter();
    sealed.filter(|((_, found), _)| found == mark).map(|(_, count)| count).sum()
}

/// Users' keys by their marks.
async fn users_keys(context: &TestContext) -> Vec<(String, i64)> {
    let sealed = sealed(context).await.into_iter();
    let keys = sealed.filter(|((column, _), _)| column == "personal_key.sealed");
    keys.map(|((_, mark), count)| (mark, count)).collect()
}

/// Logs the user in, and reads what is sealed for the user and its partner.
async fn reads_everything(edge: &TestContext, tenant: &Tenant) {
    let Tenant { partner, user } = tenant;
    let there = partner.at(edge);
    let login = json!({"emailAddress": user.email, "password": user.password});
    let session = there.post("/api/v1/user/login", login).await.assert_status(200).json();
    let token = format!("Bearer {}", session["token"].as_str().unwrap());
    let info = there.request(Method::GET, "/api/v1/user/info");
    let info = info.header("user-authorization", &token).send().await;
    assert_eq!(info.assert_status(200).json()["firstName"], "Ada");
    assert!(outbox::newest(edge, &user.email).await.text.contains("code"));
    let rows = edge.core().readiness().await.checks;
    let rows = rows.iter().find(|check| check.name == "rows").unwrap();
    assert_eq!(rows.detail, "", "a row was left out");
}

async fn ring(edge: &TestContext) -> Value {
    edge.admin(Method::GET, ROTATION, Value::Null).await.assert_status(200).json()
}

/// Changes tenants' keys, as nobody but the database's owner can, and has the edge load them.
async fn change_keys(context: &TestContext, statement: &'static str) {
    sqlx::query(statement).execute(context.db()).await.unwrap();
    let next = "with next as (update change_counter set revision = revision + 1 \
        where scope = 'clients' returning revision) \
        update client set revision = next.revision from next";
    sqlx::query(next).execute(context.db()).await.unwrap();
    context.core().refresh().await.unwrap();
}

/// True if the key of the tenant's user opens.
async fn opens_users_key(context: &TestContext, partner: &Partner) -> bool {
    let client: Uuid = partner.id.parse().unwrap();
    let (user, sealed): (Uuid, Vec<u8>) =
        sqlx::query_as("select user_id, sealed from personal_key where client_id = $1")
            .bind(client)
            .fetch_one(context.db())
            .await
            .unwrap();
    let place = format!("end_user/key/{client}/{user}");
    context.core().cipher(client.into()).open(&place, &sealed).is_ok()
}

#[tokio::test]
async fn every_value_of_a_tenant_is_sealed_under_its_key_which_alone_is_wrapped_again() {
    let context = TestContext::start().await;
    // The house, which money of no partner is booked to, has one too.
    context.core().make_tenant_keys().await.unwrap();
    context.clock().advance(TimeDelta::seconds(61));
    let (acme, globex) = (tenant(&context, "acme").await, tenant(&context, "globex").await);
    assert_eq!(columns(&context, BY_MASTER).await, ["tenant_key.sealed"]);
    let by_both = columns(&context, BY_BOTH).await;
    assert_eq!(by_both, ["mail_outbox.sealed", "personal_key.sealed"]);
    let by_tenant = [columns(&context, BY_TENANT).await, by_both].concat();
    assert!(COLUMNS.iter().all(|column| by_tenant.iter().any(|c| c == column)), "{by_tenant:?}");
    let before = sealed(&context).await;
    let twice = count(&context, BY_BOTH).await;

    let with = |keys: String| {
        context.edge_with(move |settings| settings.keys.master = Some(Secret::new(keys)))
    };
    let rotated = with(format!("{}\n{MASTER}", new())).await;
    let keys = |status: &Value| status["partnerKeys"].clone();
    assert_eq!(keys(&ring(&rotated).await), json!({"total": 3, "current": 0, "missing": 0}));
    rotated.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200);
    rotate_keys(rotated.core()).await.unwrap();
    let status = ring(&rotated).await;
    assert_eq!(keys(&status), json!({"total": 3, "current": 3, "missing": 0}));
    assert!(status["rotation"]["finishedAt"].is_string(), "{status}");
    // Three tenants' keys, four keys that outlive rotations, and what the master key seals besides.
    assert_eq!(status["rotation"]["resealed"], 7 + twice);
    assert_eq!(sealed(&context).await, before);
    let alone = with(new()).await;
    for edge in [&rotated, &alone] {
        reads_everything(edge, &acme).await;
        reads_everything(edge, &globex).await;
    }
    // The first edge was not restarted with the new key, and says so.
    assert!(!context.core().readiness().await.ready);
    for edge in [&rotated, &alone] {
        assert!(edge.core().readiness().await.ready);
    }
}

#[tokio::test]
async fn values_of_before_open_and_move_under_the_tenants_key() {
    let context = TestContext::with(|settings| settings.keys.per_tenant = Some(false)).await;
    let acme = tenant(&context, "acme").await;
    let by_master = columns(&context, BY_MASTER).await;
    assert!(COLUMNS.iter().all(|column| by_master.iter().any(|c| c == column)), "{by_master:?}");
    assert_eq!(columns(&context, BY_TENANT).await, [""; 0]);
    // An edge of this database makes no keys until it is told.
    let by_default = context.edge_with(|settings| settings.keys.per_tenant = None).await;
    by_default.core().make_tenant_keys().await.unwrap();
    assert_eq!(ring(&by_default).await["partnerKeys"]["missing"], 2);

    let edge = context.edge_with(|settings| settings.keys.per_tenant = Some(true)).await;
    let begun = edge.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200).json();
    assert_eq!(begun["partnerKeys"], json!({"total": 2, "current": 2, "missing": 0}));
    edge.core().refresh().await.unwrap();
    // Not every edge has loaded the key: nothing may be sealed under it yet.
    rotate_keys(edge.core()).await.unwrap();
    acme.partner.at(&edge).user("early").await;
    assert_eq!(ring(&edge).await["rotation"]["resealed"], 0);
    assert_eq!(columns(&context, BY_TENANT).await, [""; 0]);

    context.clock().advance(TimeDelta::seconds(61));
    context.core().refresh().await.unwrap();
    rotate_keys(edge.core()).await.unwrap();
    let status = ring(&edge).await;
    assert!(status["rotation"]["finishedAt"].is_string(), "{status}");
    assert_eq!(columns(&context, BY_MASTER).await, ["tenant_key.sealed"]);
    // The setting makes keys; one that is there is used by every edge.
    acme.partner.at(&context).user("late").await;
    assert_eq!(columns(&context, BY_MASTER).await, ["tenant_key.sealed"]);
    for edge in [&context, &edge] {
        reads_everything(edge, &acme).await;
    }
    let later = context.edge_with(|settings| settings.keys.per_tenant = None).await;
    later.partner("globex").await;
    assert_eq!(ring(&later).await["partnerKeys"]["total"], 3);
}

#[tokio::test]
async fn users_keys_of_an_earlier_version_are_sealed_twice_by_the_first_rotation_of_this_one() {
    let context = TestContext::start().await;
    context.core().make_tenant_keys().await.unwrap();
    context.clock().advance(TimeDelta::seconds(61));
    // A rotation that an edge of the version before has begun leaves what that one reads.
    context.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200);
    sqlx::query("delete from user_key_master_seal").execute(context.db()).await.unwrap();
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    rotate_keys(context.core()).await.unwrap();
    let is_finished = async || ring(&context).await["rotation"]["finishedAt"].is_string();
    assert!(is_finished().await);
    let found = |mark: &str, count: i64| (mark.to_owned(), count);
    assert_eq!(users_keys(&context).await, [found(BY_TENANT, 1)]);

    context.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200);
    let bob = acme.user("bob").await;
    // What was being stored meanwhile may not be committed yet.
    rotate_keys(context.core()).await.unwrap();
    assert!(!is_finished().await);
    assert_eq!(users_keys(&context).await, [found(BY_BOTH, 1), found(BY_TENANT, 1)]);
    for user in [&ada, &bob] {
        user.get("/api/v1/user/info").await.assert_status(200);
    }
    context.clock().advance(TimeDelta::seconds(61));
    rotate_keys(context.core()).await.unwrap();
    assert!(is_finished().await);
    assert_eq!(users_keys(&context).await, [found(BY_BOTH, 2)]);
    for user in [&ada, &bob] {
        let info = user.get("/api/v1/user/info").await.assert_status(200).json();
        assert_eq!(info["firstName"], "Ada");
    }
}

#[tokio::test]
async fn mail_and_share_tokens_are_sealed_twice_as_users_keys_are() {
    let context = TestContext::start().await;
    context.core().make_tenant_keys().await.unwrap();
    context.clock().advance(TimeDelta::seconds(61));
    sqlx::query("delete from user_key_master_seal").execute(context.db()).await.unwrap();
    let acme = context.partner("acme").await;
    let visits = async |name: &str| {
        let checkout = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": 250,
            "returnUrl": "https://shop.example/back", "kycShareToken": "share-token-1"});
        acme.post("/api/v2/buy/checkout", checkout).await.assert_status(200);
        acme.user(name).await
    };
    let by = async |mark: &str| {
        let mut columns = columns(&context, mark).await;
        columns.retain(|column| TWICE.contains(&&**column));
        columns
    };
    // An edge of an earlier version could not open the later form.
    let ada = visits("ada").await;
    assert_eq!(by(BY_TENANT).await, TWICE);
    assert_eq!(by(BY_BOTH).await, [""; 0]);
    context.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200);
    visits("bob").await;
    assert_eq!(by(BY_BOTH).await, TWICE);
    context.clock().advance(TimeDelta::seconds(61));
    rotate_keys(context.core()).await.unwrap();
    assert_eq!(by(BY_TENANT).await, [""; 0]);
    assert_eq!(by(BY_BOTH).await, TWICE);

    assert!(outbox::newest(&context, &ada.email).await.text.contains("code"));
    let tokens: Vec<(Uuid, Uuid, Vec<u8>)> =
        sqlx::query_as("select client_id, offer_id, sealed_share_token from checkout")
            .fetch_all(context.db())
            .await
            .unwrap();
    assert_eq!(tokens.len(), 2);
    for (client, offer, sealed) in tokens {
        let place = format!("checkout share token/{client}/{offer}");
        let opened = context.core().cipher(client.into()).open(&place, &sealed).unwrap();
        assert_eq!(opened, b"share-token-1");
    }
}

#[tokio::test]
async fn a_lost_key_costs_its_tenant_alone_and_gets_no_successor() {
    let context = TestContext::start().await;
    let (acme, globex) = (tenant(&context, "acme").await, tenant(&context, "globex").await);
    let restored = "update tenant_key t set sealed = k.sealed from kept k \
        where k.client_id = t.client_id";
    let served = async |status| {
        acme.partner.get("/api/v1/prices").await.assert_status(status);
        globex.partner.get("/api/v1/prices").await.assert_status(200);
        assert!(context.core().readiness().await.ready);
    };
    sqlx::query("create table kept as select client_id, sealed from tenant_key")
        .execute(context.db())
        .await
        .unwrap();
    // Another tenant's key does not fit.
    change_keys(
        &context,
        "update tenant_key t set sealed = k.sealed from kept k \
         where k.client_id <> t.client_id \
             and t.client_id = (select client_id from client where slug = 'acme')",
    )
    .await;
    served(400).await;
    change_keys(&context, restored).await;
    served(200).await;
    reads_everything(&context, &acme).await;

    // Without its key a tenant keeps what was never sealed; nothing else opens any more.
    change_keys(
        &context,
        "delete from tenant_key where client_id = (select client_id from client where slug = 'acme')",
    )
    .await;
    served(200).await;
    assert!(
        !opens_users_key(&context, &acme.partner).await
            && opens_users_key(&context, &globex.partner).await
    );
    context.core().make_tenant_keys().await.unwrap();
    assert_eq!(ring(&context).await["partnerKeys"]["missing"], 1, "it gets no other");
    change_keys(
        &context,
        "insert into tenant_key (client_id, sealed, created_at) \
         select client_id, sealed, now() from kept on conflict do nothing",
    )
    .await;
    reads_everything(&context, &acme).await;
    reads_everything(&context, &globex).await;
}
