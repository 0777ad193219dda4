//! pgbench with the edge's own statements of a confirm.

use std::path::PathBuf;

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::USERS;
use crate::paths::statement::{filled, raw, with_arguments};
use crate::side::Side;

const INSERT: &str = include_str!("../../../../core/src/trading/orders/insert/statement.rs");
const CLAIM: &str = include_str!("../../../../core/src/endpoint/idempotency/claims.rs");
const LOCK: &str = include_str!("../../../../core/src/trading/limits.rs");

/// A user by the number that pgbench draws.
const USER: &str = "lpad(to_hex(:user::bigint), 32, '0')::uuid";

/// The script of guests' confirms.
pub(super) fn of_guests(side: &Side<'_>) -> PathBuf {
    let insert = insert(side, &json!({}), "", "null");
    side.environment.write(
        "confirm.sql",
        include_str!("../../peers/confirm.sql"),
        &[("statement", &insert)],
    )
}

/// The script of users' confirms with an idempotency key: one transaction for each.
pub(super) fn of_users(side: &Side<'_>) -> PathBuf {
    let client = side.database.client();
    let claim = filled(
        CLAIM,
        &[
            &format!("array['{client}']"),
            "array['/api/v1/buy/confirm']",
            "array[:number::bigint::text]",
            "array[sha256(:number::bigint::text::bytea)]",
            "array[md5(:number::bigint::text)::uuid]",
            "86400",
            "3",
        ],
    );
    let (select, rest) = LOCK.split_once("fn hold_traders").expect("it is there");
    let rest = rest.split('"').nth(1).expect("the end of the statement is a text");
    let lock = raw(select) + &rest.replace("\\\n", " ");
    let lock = with_arguments(&lock, &[&format!("array['{client}']"), &format!("array[{USER}]")]);
    let own = json!({
        "callback_url": "https://shop.example/callback",
        "key_route": "/api/v1/buy/confirm",
        "answer_status": 200,
        "side_max": 1_000_000_000_000_u64,
        "day_max": 1_000_000_000_000_u64,
    });
    let drawn = format!(
        "'user_id', {USER}, 'key', :number::bigint::text, \
         'key_claim', md5(:number::bigint::text)::uuid,"
    );
    let values = [
        ("users", &*USERS.to_string()),
        ("claim", &claim),
        ("lock", &lock),
        ("insert", &insert(side, &own, &drawn, &format!("'\\x{}'", "5a".repeat(180)))),
    ];
    side.environment.write(
        "confirm_user.sql",
        include_str!("../../peers/confirm_user.sql"),
        &values,
    )
}

/// Makes the users that pgbench draws.
pub(super) fn prepare(side: &Side<'_>) {
    let statement = format!(
        "insert into end_user (client_id, user_id, limit_overrides, created_at) \
         select '{}', lpad(to_hex(n), 32, '0')::uuid, '{{\"user_day_limit\": 1000000000000}}', \
             now() \
         from generate_series(1, {USERS}) n on conflict do nothing",
        side.database.client(),
    );
    let making = sqlx::raw_sql(AssertSqlSafe(statement));
    side.environment.runtime.block_on(making.execute(&side.database.pool)).unwrap();
}

/// The statement that makes an order, with the row of one: members of its own, and what differs
/// from order to order, as Postgres computes it; and its answer, as a literal.
fn insert(side: &Side<'_>, own: &Value, drawn: &str, answer: &str) -> String {
    let mut order = json!({
        "client_id": side.database.client(),
        "status": "pending",
        "status_cause": "confirmed",
        "pair": "BTC-EUR",
        "payment_method": "creditCard",
        "wallet_address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "wallet_type": "unhosted",
        "fiat_amount": "250",
        "limit_amount": "250",
        "fiat_currency": "EUR",
        "crypto_amount": "0.00262011",
        "crypto_currency": "BTC",
        "price": "90000",
        "partner_fee": "2.5",
        "partner_fee_percentage": "1",
        "provider_fee": "2.5",
        "payment_method_fee": "6.5",
        "network_fee": "1.5",
        "spread_fee": "1.19",
        "affiliate_fee": "0",
        "is_estimated_quote": false,
        "is_dca_order": false,
        "return_url": "https://shop.example/back",
        "terms_digest": format!("\\x{}", "5a".repeat(32)),
        "policy_decisions": [],
        "event_type": "order.created",
        "command_kind": "payment.create",
        "command_connector": "sandbox",
        "command_state": "done",
        "command_delay_ms": 0,
    });
    for (name, value) in own.as_object().expect("members") {
        order[name] = value.clone();
    }
    // With spaces behind its colons: pgbench takes a colon with a letter for a variable.
    let order = serde_json::to_string_pretty(&order).unwrap();
    let row = format!(
        "jsonb_build_array('{order}'::jsonb || jsonb_build_object({drawn} \
         'order_id', :number::bigint, 'created_at', now(), \
         'expires_at', now() + interval '15 minutes', 'quote_id', gen_random_uuid(), \
         'transition_id', gen_random_uuid(), 'event_id', gen_random_uuid(), \
         'command_id', gen_random_uuid(), 'command_key', 'payment/' || :number::bigint::text, \
         'payload', jsonb_build_object('orderId', :number::bigint, \
             'partnerOrderIdentifier', null, 'status', 'pending')))"
    );
    filled(INSERT, &[&row, "array[null]", &format!("array[{answer}]")])
}
