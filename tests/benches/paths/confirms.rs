//! Path d: a quote becomes an order, durable before it is answered.

use std::time::Duration;

use bytes::Bytes;
use rampart_tests::rounds::quantile;
use serde_json::{Value, json};

use super::Run;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::driver::{each, request};
use crate::generators::Pgbench;
use crate::side::Side;

/// Clients that confirm at once.
const CLIENTS: usize = 64;
/// Clients that ask for the quotes before.
const QUOTERS: usize = 16;
/// Confirms of the first round; later ones take as many as fit into their time.
const FIRST: f64 = 2_000.0;
/// Most of a round, within the lifetime of their quotes.
const ROUND_MAX: f64 = 60_000.0;
/// Confirms of one client in a round, for each second of its time.
const ALONE: usize = 200;

const MANY: Row = Row {
    path: "d",
    what: "confirm, 64 clients",
    peer: "pgbench, same statement, one order a commit",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 1.5,
    aim: 5.0,
    left_out: false,
    rounds_max: usize::MAX,
};
const ONE: Row = Row {
    what: "confirm, 1 client",
    peer: "pgbench, one connection",
    unit: "median latency",
    better: Better::Lower,
    reach: 1.5,
    aim: 1.2,
    ..MANY
};

/// The rows.
pub(super) const ROWS: [Row; 2] = [MANY, ONE];

/// The source of the edge's statement, so that pgbench has the same one.
const PLACING: &str = include_str!("../../../core/src/trading/orders/confirm/placing.rs");
/// Its arguments, in their order, for an order that needs neither user nor offer. Postgres knows
/// them when it plans: if anything, that saves it work.
const ARGUMENTS: [&str; 43] = [
    "'@client@'",
    ":number::bigint",
    "now()",
    "null",
    "gen_random_uuid()",
    "null",
    "null",
    "'pending'",
    "'confirmed'",
    "'BTC-EUR'",
    "'creditCard'",
    "'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'",
    "null",
    "'unhosted'",
    "250",
    "'EUR'",
    "0.00262011",
    "'BTC'",
    "95000.12",
    "2.5",
    "1",
    "2.5",
    "6.5",
    "1.5",
    "1.19",
    "0",
    "false",
    "'https://shop.example/back'",
    "null",
    "sha256(:number::bigint::text::bytea)",
    "'[]'",
    "now() + interval '15 minutes'",
    "gen_random_uuid()",
    "gen_random_uuid()",
    "'order.created'",
    "jsonb_build_object('orderId', :number::bigint, 'partnerOrderIdentifier', null, 'status', 'pending')",
    "'{}'",
    "null",
    "null",
    "null",
    "null",
    "null",
    "null",
];

/// The statement with its arguments in their places.
fn statement() -> String {
    let (_, rest) = PLACING.split_once("r#\"").expect("the statement is raw text");
    let (statement, _) = rest.split_once("\"#").expect("it ends");
    let statement = statement.replace(" as \"allowed!\"", "").replace(" as \"placed!\"", "");
    // The last ones first: `$4` begins `$43` too.
    let numbered = ARGUMENTS.iter().enumerate().rev();
    let filled = numbered.fold(statement, |statement, (index, value)| {
        statement.replace(&format!("${}", index + 1), value)
    });
    assert!(!filled.contains('$'), "the statement has other arguments: {filled}");
    filled
}

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    let values = [("statement", &*statement()), ("client", side.database.client())];
    let pgbench = Pgbench {
        database: side.database.url.clone(),
        script: side.ground.write("confirm.sql", include_str!("../peers/confirm.sql"), &values),
        folder: side.ground.folder.clone(),
    };
    let mut expected = FIRST;
    run.compare(Comparison {
        row: MANY,
        ours: Box::new(|time| {
            let confirms = confirms(side, fitting(expected, time));
            let count = f64::from(u32::try_from(confirms.len()).unwrap());
            let (answers, seconds) =
                side.ground.runtime.block_on(each(side.address(), CLIENTS, confirms));
            answers.into_iter().for_each(|answer| drop(answer.ok()));
            expected = count / seconds;
            expected
        }),
        peer: Box::new(|time| pgbench.rate(CLIENTS, time)),
    });
    run.compare(Comparison {
        row: ONE,
        ours: Box::new(|time| {
            let count = ALONE * usize::try_from(time.as_secs().max(1)).unwrap();
            let confirms = confirms(side, count);
            let (answers, _) = side.ground.runtime.block_on(each(side.address(), 1, confirms));
            median(answers.into_iter().map(|answer| answer.ok().seconds).collect())
        }),
        peer: Box::new(|time| median(pgbench.latencies(time.max(Duration::from_secs(1))))),
    });
    // They would expire while later rows are measured.
    let kept = "update buy_order set expires_at = null where status = 'pending'";
    side.ground.runtime.block_on(sqlx::query(kept).execute(&side.database.pool)).unwrap();
}

/// Confirms that fit into a time at this rate.
#[expect(clippy::cast_possible_truncation, reason = "a count of at most ROUND_MAX")]
fn fitting(rate: f64, time: Duration) -> usize {
    (rate * time.as_secs_f64()).clamp(1.0, ROUND_MAX) as usize
}

fn median(seconds: Vec<f64>) -> f64 {
    quantile(&seconds, 1, 2).expect("somebody was answered")
}

/// Confirms of quotes that were made for them.
fn confirms(side: &Side<'_>, count: usize) -> Vec<Bytes> {
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250});
    let ask = request("POST /api/v1/buy/quote", &[&side.token], &asked.to_string());
    let quoting = each(side.address(), QUOTERS, vec![ask; count]);
    let (quotes, _) = side.ground.runtime.block_on(quoting);
    let confirm = |body: Vec<u8>| {
        let quote: Value = serde_json::from_slice(&body).unwrap();
        let body = json!({
            "quote": quote["quote"],
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "returnUrl": "https://shop.example/back",
        });
        request("POST /api/v1/buy/confirm", &[&side.token], &body.to_string())
    };
    quotes.into_iter().map(|answer| confirm(answer.ok().body)).collect()
}
