//! pgbench with the edge's own statements of a confirm.

use std::path::PathBuf;

use sqlx::AssertSqlSafe;

use super::USERS;
use crate::paths::statement::{filled, raw, with_arguments};
use crate::side::Side;

const INSERT: &str = include_str!("../../../../core/src/trading/orders/insert/statement.rs");
const TYPE: &str = include_str!("../../../../migrations/0561_new_priced_order.sql");
const CLAIM: &str = include_str!("../../../../core/src/endpoint/idempotency/claims.rs");
const LOCK: &str = include_str!("../../../../core/src/trading/limits.rs");

/// A user by the number that pgbench draws.
const USER: &str = "lpad(to_hex(:user::bigint), 32, '0')::uuid";

/// The script of guests' confirms.
pub(super) fn of_guests(side: &Side<'_>) -> PathBuf {
    let insert = insert(side, &[]);
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
            &format!("array[{USER}]"),
            "86400",
            "3",
        ],
    );
    let (select, rest) = LOCK.split_once("fn hold_traders").expect("it is there");
    let rest = rest.split('"').nth(1).expect("the end of the statement is a text");
    let lock = raw(select) + &rest.replace("\\\n", " ");
    let lock = with_arguments(&lock, &[&format!("array['{client}']"), &format!("array[{USER}]")]);
    let answer = format!("'\\x{}'", "5a".repeat(180));
    let own = [
        ("user_id", USER),
        ("side_max", "1000000000000"),
        ("day_max", "1000000000000"),
        ("callback_url", "'https://shop.example/callback'"),
        ("key_route", "'/api/v1/buy/confirm'"),
        ("key", ":number::bigint::text"),
        ("key_claim", "md5(:number::bigint::text)::uuid"),
        ("answer_status", "200"),
        ("answer_body", &answer),
    ];
    let values = [
        ("users", &*USERS.to_string()),
        ("claim", &claim),
        ("lock", &lock),
        ("insert", &insert(side, &own)),
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

/// The statement that makes an order, with the value of one: attributes of its own, and those that
/// every order has, as Postgres reads and computes them.
fn insert(side: &Side<'_>, own: &[(&str, &str)]) -> String {
    let client = format!("'{}'", side.database.client());
    let digest = format!("'\\x{}'", "5a".repeat(32));
    let rules = format!("'\\x{}'", "5a".repeat(24));
    let common = [
        ("client_id", &*client),
        ("order_id", ":number::bigint"),
        ("created_at", "now()"),
        ("quote_id", "gen_random_uuid()"),
        ("status", "'pending'"),
        ("status_cause", "'confirmed'"),
        ("pair", "'BTC-EUR'"),
        ("payment_method", "'creditCard'"),
        ("wallet_address", "'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'"),
        ("wallet_type", "'unhosted'"),
        ("fiat_amount", "250"),
        ("fiat_currency", "'EUR'"),
        ("limit_amount", "250"),
        ("crypto_amount", "0.00262011"),
        ("crypto_currency", "'BTC'"),
        ("price", "90000"),
        ("partner_fee", "2.5"),
        ("partner_fee_percentage", "1"),
        ("provider_fee", "2.5"),
        ("payment_method_fee", "6.5"),
        ("network_fee", "1.5"),
        ("spread_fee", "1.19"),
        ("affiliate_fee", "0"),
        ("fee_rules", &*rules),
        ("is_estimated_quote", "false"),
        ("is_dca_order", "false"),
        ("return_url", "'https://shop.example/back'"),
        ("terms_digest", &*digest),
        ("policy_decisions", "'[]'"),
        ("expires_at", "now() + interval '15 minutes'"),
        ("transition_id", "gen_random_uuid()"),
        ("event_id", "gen_random_uuid()"),
        ("event_type", "'order.created'"),
        (
            "payload",
            "jsonb_build_object('orderId', :number::bigint, 'partnerOrderIdentifier', null, \
             'status', 'pending')",
        ),
        ("command_id", "gen_random_uuid()"),
        ("command_kind", "'payment.create'"),
        ("command_key", "'payment/' || :number::bigint::text"),
        ("command_connector", "'sandbox'"),
        ("command_state", "'done'"),
        ("command_delay_ms", "0"),
    ];
    let value = |attribute: &str| {
        let name = attribute.split(' ').next().expect("it has a name");
        let mut all = own.iter().chain(&common);
        all.find(|(given, _)| *given == name).map_or("null", |(_, value)| value)
    };
    let attributes = TYPE.lines().filter_map(|line| line.strip_prefix("  "));
    let values: Vec<_> = attributes.map(value).collect();
    let given = values.iter().filter(|value| **value != "null").count();
    assert_eq!(given, own.len() + common.len(), "each value is of an attribute of its own");
    let order = format!("array[row({})::new_priced_order]", values.join(", "));
    filled(INSERT, &[&order, "array[]::new_wallet_screening[]"])
}
