//! Policies as partners meet them: in quotes and offers.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_a_lock_is_awaited;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use crate::policies::{SIGNATURE, set_key};

const FEE: &str = "/admin/v1/partners/acme/policies/fee";
/// Longer than a breaker stays open.
const PAUSE: TimeDelta = TimeDelta::seconds(11);
/// Failures of a kind that runs into a bound, after which an edge stops calling a policy.
const FAILURES: usize = 3;
/// Quotes of each of two partners at once, and how often.
const CROWD: usize = 16;
const ROUNDS: usize = 4;

async fn push(context: &TestContext, path: &str, guest: &str) {
    context.admin_bytes(Method::PUT, path, component(guest)).await.assert_status(200);
}

/// A quote for 100 EUR by a user of this country.
async fn quote(acme: &Partner, country: &str) -> Answer {
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100, "countryCode": country});
    acme.post("/api/v1/buy/quote", body).await
}

async fn partner_fee(acme: &Partner, country: &str) -> String {
    quote(acme, country).await.assert_status(200).json()["partnerFee"].to_string()
}

fn calls(context: &TestContext, kind: &str, outcome: &str) -> usize {
    let name = format!(
        r#"rampart_policy_calls_total{{kind="{kind}",outcome="{outcome}",partner="acme"}} "#
    );
    let text = context.core().metrics.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.parse().unwrap())
}

fn breaker_is(context: &TestContext, open: u8) -> bool {
    let line = format!(r#"rampart_policy_breaker_open{{kind="fee",partner="acme"}} {open}"#);
    context.core().metrics_text().lines().any(|shown| shown == line)
}

#[tokio::test]
async fn a_push_changes_the_fee_of_the_next_quote_on_every_edge() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let other = context.second_edge().await;
    let there = acme.at(&other);
    assert_eq!(partner_fee(&acme, "DE").await, "0");
    push(&context, FEE, "tiered-fee").await;
    assert_eq!(partner_fee(&acme, "DE").await, "1.5");
    other.core().refresh().await.unwrap();
    assert_eq!(partner_fee(&there, "DE").await, "1.5");
    let tenfold = json!({"config": {"tiers": ["0=100000"]}});
    context.admin(Method::PUT, &format!("{FEE}/config"), tenfold).await.assert_status(200);
    assert_eq!(partner_fee(&acme, "DE").await, "5", "held to the partner's cap of 5 %");
    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(204);
    assert_eq!(partner_fee(&acme, "DE").await, "0");
}

#[tokio::test]
async fn a_looping_policy_costs_little_and_then_is_not_called() {
    // Its fuel bounds a loop: a deadline of wall clock would end other calls on a busy machine too.
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    push(&context, &format!("{FEE}?config={{%22mode%22:%22loop@FR%22}}"), "hostile").await;
    assert_eq!(partner_fee(&acme, "DE").await, "1");
    for _ in 0..FAILURES {
        assert_eq!(partner_fee(&acme, "FR").await, "0", "the built-in fee");
    }
    assert_eq!(calls(&context, "fee", "fuel"), FAILURES);
    assert_eq!(partner_fee(&acme, "DE").await, "0", "the breaker is open");
    assert!(breaker_is(&context, 1), "an alert can see it");
    let change = json!({"walletAddressRequired": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", change).await.assert_status(200);
    assert_eq!(partner_fee(&acme, "DE").await, "0", "a reload does not close it");
    assert_eq!(calls(&context, "fee", "breaker"), 2);
    assert_eq!(calls(&context, "fee", "fuel"), FAILURES);
    context.clock().advance(PAUSE);
    assert_eq!(partner_fee(&acme, "DE").await, "1", "one try closes it");
    assert!(breaker_is(&context, 0));
    assert_eq!(calls(&context, "fee", "ok"), 2);
}

#[tokio::test]
async fn a_failure_refuses_where_the_partner_is_set_to_fail_closed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let path = format!("{FEE}?failClosed=true&config={{%22mode%22:%22panic@FR%22}}");
    push(&context, &path, "hostile").await;
    assert_eq!(partner_fee(&acme, "DE").await, "1");
    quote(&acme, "FR").await.assert_status(400).assert_codes(&["ER328"]);
    let open = json!({"failClosed": false});
    context.admin(Method::PUT, &format!("{FEE}/config"), open).await.assert_status(200);
    assert_eq!(partner_fee(&acme, "FR").await, "0");
}

#[tokio::test]
async fn a_signature_policy_accepts_what_its_partner_signed_once() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await;
    let (pair, _) = ed25519(7);
    let now = context.clock().unix_seconds();
    let sign = |nonce: &str, at: i64| {
        let line = format!("fee=1.5&returnUrl=https%3A%2F%2Facme.example%2Fback&t={at}&n={nonce}");
        let signature = STANDARD.encode(pair.sign(line.as_bytes()));
        Value::from(format!("t={at},n={nonce},s={signature}"))
    };
    let offer = async |signature: Value| {
        let mut body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "bankTransfer", "quoteCurrencyAmount": 100, "fee": 1.5,
            "returnUrl": "https://acme.example/back"});
        body["signature"] = signature;
        acme.post("/api/v2/buy/offer", body).await
    };
    let good = sign("nonce-0001", now);
    offer(good.clone()).await.assert_status(200);
    offer(good.clone()).await.assert_codes(&["ER336"]);
    offer(sign("nonce-0002", now - 400)).await.assert_codes(&["ER336"]);
    let forged = good.as_str().unwrap().replace("nonce-0001", "nonce-0003");
    offer(forged.into()).await.assert_codes(&["ER336"]);
    offer(Value::Null).await.assert_codes(&["ER339"]);
    offer(json!(1)).await.assert_codes(&["ER338"]);
    offer(sign("nonce-0004", now)).await.assert_status(200);
}

#[tokio::test]
async fn over_a_partners_fuel_of_a_second_the_built_in_fees_apply() {
    let context = TestContext::with(|settings| settings.policy.fuel_per_second_max = 1).await;
    let acme = context.partner("acme").await;
    push(&context, FEE, "hostile").await;
    // The first call of each second is within the budget and overdraws it.
    let mut fees = BTreeSet::new();
    for _ in 0..20 {
        fees.insert(partner_fee(&acme, "DE").await);
    }
    assert_eq!(fees.into_iter().collect::<Vec<_>>(), ["0", "1"]);
    assert!(calls(&context, "fee", "budget") > 0);
}

/// A fee policy that logs what it is told.
async fn mirror(context: &TestContext) {
    for name in ["one", "two"] {
        let path = format!("/admin/v1/partners/acme/verification-keys/{name}");
        let body = json!({"algorithm": "ed25519", "key": ed25519(7).1});
        context.admin(Method::PUT, &path, body).await.assert_status(200);
    }
    push(context, &format!("{FEE}?config={{%22integer%22:1}}"), "mirror-fee").await;
}

#[tokio::test]
async fn what_a_policy_logs_in_a_live_call_is_shown_to_operators() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    mirror(&context).await;
    for _ in 0..3 {
        quote(&acme, "DE").await;
    }
    context.core().run_policy_shadows().await.unwrap();
    let shown = context.admin(Method::GET, FEE, json!({})).await.assert_status(200).json();
    let log = shown["log"].as_array().unwrap();
    assert!((1..=3).contains(&log.len()), "{shown}");
    assert_eq!((&log[0]["version"], &log[0]["lines"][0]["level"]), (&json!(1), &json!("warn")));
    assert_eq!(log[0]["requestId"], "test-request", "the request's own, whatever the policy saw");
}

#[tokio::test]
async fn a_live_call_that_logs_is_stored_or_counted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let rates = json!({"rateLimits": {"client": "1000000/s burst 1000000",
        "quotes": "1000000/s burst 1000000"}});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", rates).await.assert_status(200);
    mirror(&context).await;
    // Shadow runs take all the room.
    let shadow = json!({"component": STANDARD.encode(component("tiered-fee")), "config": {}});
    context.admin(Method::POST, &format!("{FEE}/versions"), shadow).await.assert_status(201);
    let path = format!("{FEE}/versions/2/shadow");
    context.admin(Method::POST, &path, json!({})).await.assert_status(200);
    for _ in 0..520 {
        quote(&acme, "DE").await;
    }
    for _ in 0..2 {
        context.clock().advance(PAUSE);
        quote(&acme, "DE").await;
        context.core().run_policy_shadows().await.unwrap();
    }
    let made = i64::try_from(calls(&context, "fee", "ok")).unwrap();
    let told = "select count(*) + sum(calls_dropped)::bigint from policy_log";
    let told: i64 = sqlx::query_scalar(told).fetch_one(context.db()).await.unwrap();
    assert_eq!((told, made), (522, 522));
}

/// An edge with a byte of memory for components, and two partners with one each: the one that is
/// called last stays, and is dropped for the other.
async fn with_room_for_one() -> (TestContext, Partner, Partner) {
    let context = TestContext::with(|settings| settings.policy.memory_bytes = 1).await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    push(&context, FEE, "tiered-fee").await;
    push(&context, "/admin/v1/partners/other/policies/fee", "hostile").await;
    (context, acme, other)
}

#[tokio::test]
async fn components_are_loaded_at_their_first_call_within_the_bound_of_memory() {
    let (context, acme, other) = with_room_for_one().await;
    let edge = context.second_edge().await;
    assert_eq!(edge.core().policies.loaded_bytes(), 0, "a start compiles nothing");
    let (acme, other) = (acme.at(&edge), other.at(&edge));
    let mut loaded = Vec::new();
    for _ in 0..3 {
        assert_eq!(partner_fee(&acme, "DE").await, "1.5");
        loaded.push(edge.core().policies.loaded_bytes());
        assert_eq!(partner_fee(&other, "DE").await, "1");
        loaded.push(edge.core().policies.loaded_bytes());
    }
    assert!(loaded.iter().all(|bytes| (100_000..1_000_000).contains(bytes)), "{loaded:?}");
    assert_eq!((loaded[0], loaded[1]), (loaded[4], loaded[5]), "no more than one is kept");
}

/// Ten thousand partners with the fee policy that there is, each with a component of its own. Nothing has
/// compiled those, and nothing could: they are no Wasm.
const OWN_COMPONENTS: &str = "with many as ( \
        insert into client (client_id, slug, name, mode, username, revision, created_at) \
        select gen_random_uuid(), 'many' || n, '', 'test', 'many' || n, 1, now() \
        from generate_series(1, 10000) n \
        returning client_id, slug \
    ), own as ( \
        select client_id, slug::bytea as component, encode(sha256(slug::bytea), 'hex') as digest \
        from many \
    ), stored as ( \
        insert into policy_component (digest, component, created_at) \
        select digest, component, now() from own \
    ) \
    insert into policy_version (client_id, kind, version, digest, size, info, config, active, \
        activation, created_by, created_at) \
    select own.client_id, kind, 1, own.digest, length(component), info, config, true, 1, 'test', now() \
    from own cross join policy_version";

#[tokio::test]
async fn ten_thousand_partners_with_components_of_their_own_cost_a_start_no_compilation() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    push(&context, FEE, "tiered-fee").await;
    sqlx::query(OWN_COMPONENTS).execute(context.db()).await.unwrap();
    let edge = context.second_edge().await;
    let core = edge.core();
    // They, acme, and the house.
    assert_eq!(core.snapshots.current().tenants.len(), 10_002);
    assert_eq!((core.policies.loaded_bytes(), core.policies_pending()), (0, 0));
    assert_eq!(partner_fee(&acme.at(&edge), "DE").await, "1.5");
    let loaded = core.policies.loaded_bytes();
    assert!((100_000..1_000_000).contains(&loaded), "one is loaded once it is called: {loaded}");
}

/// A partner whose active version is loaded, with its bytes, and a second version that serves nobody.
async fn with_staged_version() -> (TestContext, Partner, usize) {
    let context = TestContext::with(|settings| settings.policy.memory_bytes = 1).await;
    let acme = context.partner("acme").await;
    push(&context, FEE, "tiered-fee").await;
    assert_eq!(partner_fee(&acme, "DE").await, "1.5");
    let of_active = context.core().policies.loaded_bytes();
    let staged = json!({"component": STANDARD.encode(component("hostile")), "config": {}});
    context.admin(Method::POST, &format!("{FEE}/versions"), staged).await.assert_status(201);
    (context, acme, of_active)
}

#[tokio::test]
async fn a_request_loads_no_code_of_a_shadow_or_of_others_canary() {
    let (context, acme, of_active) = with_staged_version().await;
    assert_eq!(context.core().policies.loaded_bytes(), of_active, "it serves nobody yet");

    // Requests without a user are one user, who is in the canary or not.
    for percentage in [1, 99] {
        let path = format!("{FEE}/versions/2/activate");
        let body = json!({ "percentage": percentage });
        context.admin(Method::POST, &path, body).await.assert_status(200);
        let fee = partner_fee(&acme, "DE").await;
        let loads_active = context.core().policies.loaded_bytes() == of_active;
        assert_eq!(loads_active, fee == "1.5", "{percentage} %: {fee}");
    }

    let path = format!("{FEE}/versions/2/shadow");
    context.admin(Method::POST, &path, json!({})).await.assert_status(200);
    assert_eq!(partner_fee(&acme, "DE").await, "1.5");
    assert_eq!(context.core().policies.loaded_bytes(), of_active);
    context.core().run_policy_shadows().await.unwrap();
    let trial = context.admin(Method::GET, &format!("{FEE}/trial"), json!({})).await;
    let trial = trial.assert_status(200).json();
    assert_eq!((&trial["different"], &trial["skipped"]), (&json!(1), &json!(0)), "{trial}");
}

#[tokio::test]
async fn a_dry_run_of_a_version_that_serves_nobody_drops_no_code() {
    let (context, _, of_active) = with_staged_version().await;
    let input = json!({"version": 2, "input": {}});
    let path = format!("{FEE}/dry-run");
    for _ in 0..2 {
        context.admin(Method::POST, &path, input.clone()).await.assert_status(200);
        assert_eq!(context.core().policies.loaded_bytes(), of_active);
    }
}

#[tokio::test]
async fn code_that_is_dropped_for_another_before_the_call_serves_it() {
    let (context, acme, other) = with_room_for_one().await;
    for _ in 0..ROUNDS {
        let quotes = [(&acme, "1.5"), (&other, "1")].into_iter().cycle().take(2 * CROWD);
        join_all(quotes.map(async |(partner, fee)| {
            assert_eq!(partner_fee(partner, "DE").await, fee);
        }))
        .await;
    }
    assert_eq!(calls(&context, "fee", "load"), 0);
    assert_eq!(calls(&context, "fee", "ok"), ROUNDS * CROWD);
}

#[tokio::test]
async fn a_component_is_loaded_although_the_dry_run_that_began_it_is_given_up() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    push(&context, FEE, "tiered-fee").await;
    let edge = context.second_edge().await;
    let mut locked = context.db().begin().await.unwrap();
    sqlx::query("lock table policy_component").execute(&mut *locked).await.unwrap();
    let path = format!("{FEE}/dry-run");
    tokio::select! {
        answer = edge.admin(Method::POST, &path, json!({"input": {}})) => {
            panic!("{}", answer.text())
        }
        () = until_a_lock_is_awaited(context.db()) => {}
    }
    locked.rollback().await.unwrap();
    let loaded = async || (edge.core().policies.loaded_bytes() > 0).then_some(());
    until("the code is kept", SOON, loaded).await;
}

#[tokio::test]
async fn a_component_that_cannot_be_read_holds_up_no_other_compilation() {
    let context = TestContext::start().await;
    let other = "/admin/v1/partners/other/policies/fee";
    for partner in ["acme", "other"] {
        context.partner(partner).await;
    }
    push(&context, FEE, "tiered-fee").await;
    push(&context, other, "hostile").await;
    let edge = context.second_edge().await;
    push(&context, FEE, "hostile").await;
    push(&context, other, "tiered-fee").await;
    let run = async |statement: &'static str| {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    };
    run("alter table policy_component drop constraint policy_component_pkey cascade").await;
    run("create table component_copy as table policy_component").await;
    run("delete from policy_component").await;
    edge.core().refresh().await.unwrap();
    assert_eq!(edge.core().policies_pending(), 2);
    run("insert into policy_component select kept.* from component_copy kept \
         join policy_version v using (digest) join client c on c.client_id = v.client_id \
         where c.slug = 'other' and v.version = 2")
    .await;
    edge.core().compile_replacing_policies().await.unwrap();
    assert_eq!(edge.core().policies_pending(), 1);
    let counted = "rampart_worker_rows_failed_total{worker=\"policies\"} 1";
    assert!(edge.core().metrics_text().contains(counted));
}
