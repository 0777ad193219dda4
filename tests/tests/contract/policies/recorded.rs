//! Records of live calls: samples, and lines that policies log.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::cluster::commit_once_awaited;
use serde_json::{Value, json};

use super::replayed::offer;
use super::trials::fee;
use super::{FEE, SIGNATURE, context, push, set_key, stage, with_acme};

#[tokio::test]
async fn edges_that_record_in_the_same_instant_take_slots_of_their_own() {
    let (context, acme) = with_acme().await;
    let chatty = format!("{FEE}?config={{%22mode%22:%22chatter@FR%22}}");
    push(&context, &chatty, "hostile").await.assert_status(200);
    // What another edge has written and not committed yet, in the slot that is the next.
    let others = [
        "insert into policy_sample (client_id, kind, slot, input, at) \
         select client_id, 'fee', $1, '{}', now() from client where slug = 'acme'",
        "insert into policy_log (client_id, kind, slot, version, request_id, lines, at) \
         select client_id, 'fee', $1, 1, 'there', '[]', now() from client where slug = 'acme'",
    ];
    for (slot, other) in (0_i16..).zip(others) {
        let question = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
            "fiatAmount": 100, "countryCode": "FR"});
        acme.post("/api/v1/buy/quote", question).await.assert_status(200);
        let mut there = context.db().begin().await.unwrap();
        sqlx::query(other).bind(slot).execute(&mut *there).await.unwrap();
        let here = context.core().run_policy_shadows();
        let (stored, ()) = futures::join!(here, commit_once_awaited(context.db(), there));
        stored.unwrap();
        context.clock().advance(TimeDelta::seconds(1));
    }
    for count in ["select count(*) from policy_sample", "select count(*) from policy_log"] {
        let kept: i64 = sqlx::query_scalar(count).fetch_one(context.db()).await.unwrap();
        assert_eq!(kept, 3, "{count}: one of the other edge, and two of this one");
    }
}

#[tokio::test]
async fn a_recorded_request_that_cannot_be_stored_holds_up_none_behind_it() {
    let context = context().await;
    let shop = context.partner("shop").await;
    let path = "/admin/v1/partners/shop/policies/fee";
    push(&context, path, "tiered-fee").await.assert_status(200);
    sqlx::query(
        "alter table policy_sample add constraint frozen check (input->>'country' <> 'FR')",
    )
    .execute(context.db())
    .await
    .unwrap();
    for country in ["FR", "DE"] {
        fee(&shop, country).await;
        context.clock().advance(TimeDelta::seconds(1));
    }
    context.core().run_policy_shadows().await.unwrap();
    let kept: Vec<String> = sqlx::query_scalar("select input->>'country' from policy_sample")
        .fetch_all(context.db())
        .await
        .unwrap();
    assert_eq!(kept, ["DE"]);
    let counted = "rampart_worker_rows_failed_total{worker=\"policy shadows\"} 1";
    assert!(context.core().metrics_text().contains(counted));
}

#[tokio::test]
async fn a_difference_is_stored_without_what_was_signed() {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let refusing = json!({"config": {}});
    stage(&context, SIGNATURE, "told-signature", refusing).await.assert_status(201);
    let shadow = format!("{SIGNATURE}/versions/2/shadow");
    context.admin(Method::POST, &shadow, json!({})).await.assert_status(200);
    offer(&context, &acme, "nonce-0001").await;
    context.core().run_policy_shadows().await.unwrap();
    let stored: Value = sqlx::query_scalar("select detail from policy_difference")
        .fetch_one(context.db())
        .await
        .unwrap();
    let bounded = json!({"input": null, "active": {"verdict": "authentic"},
        "candidate": {"verdict": "rejected", "reason": "bad-signature"}});
    assert_eq!(stored, bounded, "payloads are stored sealed alone");
}
