//! Paths d, d2 and d3: a quote becomes an order, durable before it is answered.

mod peer;

use std::time::Duration;

use bytes::Bytes;
use rampart_core::platform::clock::Clock;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::rounds::quantile;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::Run;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::generators::Pgbench;
use crate::load_client::{each, request};
use crate::side::Side;

/// Clients that confirm at once.
pub(super) const CLIENTS: usize = 64;
/// Clients that ask for the quotes before.
const QUOTERS: usize = 16;
/// Confirms before the first round; rounds take as many as fit into their time.
const FIRST: usize = 2_000;
/// Most of a round, within the lifetime of their quotes.
const ROUND_MAX: f64 = 60_000.0;
/// Confirms of one client in a round, for each second of its time.
const ALONE: usize = 200;
/// Users that take turns, of each side.
const USERS: usize = 128;

/// The confirm that production sends: of a user, with an idempotency key, a callback and a webhook.
const MANY: Row = Row {
    path: "d",
    what: "confirm of users, 64 clients",
    peer: "pgbench, same statements, one order a commit",
    unit: "rate",
    better: Better::Higher,
    combine: Combine::Ratio,
    reach: 2.0,
    aim: 5.0,
    left_out: false,
    rounds_max: usize::MAX,
};
const ONE: Row = Row {
    what: "confirm of a user, 1 client",
    peer: "pgbench, one connection",
    unit: "median latency",
    better: Better::Lower,
    reach: 1.5,
    aim: 1.2,
    ..MANY
};
/// The shortest one: of nobody, with nothing but the order.
const GUESTS: Row = Row {
    path: "d2",
    what: "confirm of guests, 64 clients",
    peer: "pgbench, same statement, one order a commit",
    reach: 1.5,
    ..MANY
};

/// The same as the first, of a live partner: a connector is commanded to ask for the payment, and what
/// holds coins back is for real.
const LIVE: Row = Row {
    path: "d3",
    what: "confirm of a live partner's users, 64 clients",
    peer: "d",
    reach: 0.9,
    aim: 1.0,
    ..MANY
};

/// The rows.
pub(super) const ROWS: [Row; 4] = [MANY, ONE, GUESTS, LIVE];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    if run.wants(&[MANY, ONE, LIVE]) {
        compare_users(run, side);
    }
    let pgbench = pgbench(side, peer::of_guests(side));
    run.compare(Comparison {
        row: GUESTS,
        ours: many(side, Buyers::guests(side)),
        peer: Box::new(move |time| pgbench.rate(CLIENTS, time)),
    });
    keep_pending(side);
}

/// Keeps orders from expiring while later rows are measured.
pub(super) fn keep_pending(side: &Side<'_>) {
    execute(side, "update buy_order set expires_at = null where status = 'pending'");
}

fn compare_users(run: &mut Run<'_>, side: &Side<'_>) {
    let partner = Caller::new(side.address(), Protocol::Http1, side.database.plain.clone());
    let identifiers = side.environment.runtime.block_on(prepare(side, &partner));
    let buyers = Buyers { token: &side.token, users: &identifiers };
    peer::prepare(side);
    let pgbench = pgbench(side, peer::of_users(side));
    run.compare(Comparison {
        row: MANY,
        ours: many(side, buyers),
        peer: Box::new(|time| {
            let rate = pgbench.rate(CLIENTS, time);
            age(side);
            rate
        }),
    });
    run.compare(Comparison {
        row: ONE,
        ours: Box::new(|time| {
            let count = ALONE * usize::try_from(time.as_secs().max(1)).unwrap();
            let confirms = confirms(side, buyers, count);
            let (answers, _) = side.environment.runtime.block_on(each(side.address(), 1, confirms));
            age(side);
            median(answers.into_iter().map(|answer| answer.ok().seconds).collect())
        }),
        peer: Box::new(|time| {
            let latencies = pgbench.latencies(time.max(Duration::from_secs(1)));
            age(side);
            median(latencies)
        }),
    });
    if run.wants(&[LIVE]) {
        compare_live(run, side, buyers);
    }
    execute(side, "update webhook_endpoint set disabled_at = now()");
    execute(side, "alter table delivery alter column state set default 'pending'");
}

fn compare_live(run: &mut Run<'_>, side: &Side<'_>, of_test_client: Buyers<'_>) {
    let live = side.live_partner("live-buyers");
    let identifiers = side.environment.runtime.block_on(prepare(side, &live.caller));
    run.compare(Comparison {
        row: LIVE,
        ours: many(side, Buyers { token: &live.token, users: &identifiers }),
        peer: many(side, of_test_client),
    });
    side.delete_routes();
}

/// The rate of many clients.
fn many<'a>(side: &'a Side<'_>, buyers: Buyers<'a>) -> Box<dyn FnMut(Duration) -> f64 + 'a> {
    let mut expected = first_rate(side, buyers);
    Box::new(move |time| {
        expected = rate(side, buyers, fitting(expected, time));
        expected
    })
}

/// The rate of the first ones, which is no round: until there have been some, Postgres plans for empty
/// tables.
pub(super) fn first_rate(side: &Side<'_>, buyers: Buyers<'_>) -> f64 {
    rate(side, buyers, FIRST)
}

/// The rate of so many confirms.
pub(super) fn rate(side: &Side<'_>, buyers: Buyers<'_>, count: usize) -> f64 {
    let confirming = each(side.address(), CLIENTS, confirms(side, buyers, count));
    let (answers, seconds) = side.environment.runtime.block_on(confirming);
    let count = f64::from(u32::try_from(answers.len()).unwrap());
    answers.into_iter().for_each(|answer| drop(answer.ok()));
    age(side);
    count / seconds
}

fn pgbench(side: &Side<'_>, script: std::path::PathBuf) -> Pgbench {
    let (database, folder) = (side.database.url.clone(), side.environment.folder.clone());
    Pgbench { database, script, folder }
}

/// Registers users and a webhook, as a partner would.
async fn prepare(side: &Side<'_>, partner: &Caller) -> Vec<String> {
    let hook = json!({"url": "https://shop.example/hook", "events": ["order.created"]});
    partner.post("/api/v2/webhooks", hook).await.assert_status(200);
    let mut identifiers = Vec::new();
    for number in 0..USERS {
        let user = registration(&format!("buyer{number}"));
        partner.post("/api/v2/user", user.clone()).await.assert_status(200);
        identifiers.push(user["identifier"].as_str().expect("it has one").to_owned());
    }
    for statement in [
        "update end_user set limit_overrides = '{\"user_day_limit\": 1000000000000}'",
        // Deliveries are written and not made: path h measures that.
        "alter table delivery alter column state set default 'delivered'",
    ] {
        sqlx::query(statement).execute(&side.database.pool).await.unwrap();
    }
    identifiers
}

/// Moves what users have bought out of the day that limits are for: none buys so much in one. What
/// that leaves dead goes too: whoever confirmed more would have more of it in the next round.
fn age(side: &Side<'_>) {
    execute(
        side,
        "update buy_order set created_at = created_at - interval '2 days' \
         where user_id is not null and created_at > now() - interval '1 day'",
    );
    execute(side, "vacuum buy_order, idempotency_key");
    // As autovacuum does a minute after tables have grown.
    execute(side, "analyze");
}

fn execute(side: &Side<'_>, statement: &'static str) {
    side.environment.runtime.block_on(sqlx::query(statement).execute(&side.database.pool)).unwrap();
}

/// Confirms that fit into a time at this rate.
#[expect(clippy::cast_possible_truncation, reason = "a count of at most ROUND_MAX")]
fn fitting(rate: f64, time: Duration) -> usize {
    (rate * time.as_secs_f64()).clamp(1.0, ROUND_MAX) as usize
}

fn median(seconds: Vec<f64>) -> f64 {
    quantile(&seconds, 1, 2).expect("somebody was answered")
}

/// The buyers who confirm the quotes.
#[derive(Clone, Copy)]
pub(super) struct Buyers<'a> {
    /// Header with a token of their partner.
    token: &'a str,
    /// Identifiers of the users that take turns; none for guests.
    users: &'a [String],
}

impl<'a> Buyers<'a> {
    /// Nobody in particular, of the partner without policies.
    pub(super) fn guests(side: &'a Side<'_>) -> Self {
        Self { token: &side.token, users: &[] }
    }
}

/// Confirms of quotes that were made for them.
pub(super) fn confirms(side: &Side<'_>, buyers: Buyers<'_>, count: usize) -> Vec<Bytes> {
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250});
    let ask = request("POST /api/v1/buy/quote", &[buyers.token], &asked.to_string());
    let quoting = each(side.address(), QUOTERS, vec![ask; count]);
    let (quotes, _) = side.environment.runtime.block_on(quoting);
    let clock = Clock::system();
    let confirm = |(number, body): (usize, Vec<u8>)| {
        let quote: Value = serde_json::from_slice(&body).unwrap();
        let mut body = json!({
            "quote": quote["quote"],
            "walletAddress": rampart_tests::buyer::WALLET,
            "returnUrl": "https://shop.example/back",
        });
        let mut headers = vec![buyers.token.to_owned()];
        if !buyers.users.is_empty() {
            body["callbackUrl"] = json!("https://shop.example/callback");
            let user = &buyers.users[number % buyers.users.len()];
            headers.push(format!("user-identifier: {user}"));
            headers.push(format!("idempotency-key: {}", clock.uuid().unwrap()));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        request("POST /api/v1/buy/confirm", &headers, &body.to_string())
    };
    quotes.into_iter().map(|answer| answer.ok().body).enumerate().map(confirm).collect()
}
