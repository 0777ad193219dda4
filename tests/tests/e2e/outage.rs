//! An edge whose Postgres is away: every request is answered soon, what needs no database is served,
//! `/readyz` says why not, and everything is well soon after the return.

use std::time::Duration;

use futures::future::join_all;
use http::Method;
use nix::sys::signal::Signal;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::link::Weather;
use rampart_tests::postgres_server::PostgresServer;
use rampart_tests::user::registration;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::watch;
use tokio::time::timeout;

/// Time until everything is well again, however busy the machine.
const RECOVERY: Duration = Duration::from_secs(60);
/// Answers that each partner's client counts while Postgres is away.
const ANSWERS: usize = 100;
/// Time for all of them, however busy the machine: half of what they take if each waits for the two
/// seconds of a statement. How long one takes is measured by the faults in full.
const ANSWERED: Duration = Duration::from_secs(100);
/// Time for one answer, which takes a second, however busy the machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Clients at once: more than the pool has connections.
const CLIENTS: usize = 24;
/// Reads after the return that a busy machine may answer too late: fewer than the pool has connections, each
/// of which would fail once.
const LATE_MAX: usize = 3;

/// A setup with the default timeouts over a database of the server.
fn setup(server: &PostgresServer, database: &str) -> Setup {
    let mut setup = Setup::over(&server.url(database));
    for key in ["connections_max", "acquire_timeout_ms", "statement_timeout_ms"] {
        setup.unset(&format!("database.{key}"));
    }
    setup
}

/// An edge of that setup.
async fn edge(server: &PostgresServer, database: &str) -> Edge {
    Edge::of(setup(server, database)).await
}

async fn readiness(edge: &Edge) -> (u16, Value) {
    let answer = edge.ops("/readyz").await;
    (answer.status(), answer.json())
}

/// Names of the checks of `/readyz` that fail.
fn failing(body: &Value) -> Vec<&str> {
    let checks = body["checks"].as_array().unwrap();
    let failing = checks.iter().filter(|check| check["ok"] == false);
    failing.map(|check| check["name"].as_str().unwrap()).collect()
}

/// Status of a read that needs the database.
async fn read(partner: &Caller) -> u16 {
    partner.get("/api/v2/events").await.status()
}

/// Sends until it is told to end and has so many answers, of which none is a surprise.
async fn hammer(partner: Caller, ended: watch::Receiver<bool>) {
    let mut answers = 0;
    while !*ended.borrow() || answers < ANSWERS {
        let status = read(&partner).await;
        assert!([200, 503].contains(&status), "{status}");
        answers += 1;
    }
}

/// Requests before, during and after an outage.
async fn survives(edge: &Edge, begin: impl FnOnce(), end: impl FnOnce()) {
    let partner = edge.partner("acme").await;
    assert_eq!(read(&partner).await, 200);
    let (end_hammering, ended) = watch::channel(false);
    begin();
    let clients = (0..CLIENTS).map(|_| tokio::spawn(hammer(partner.clone(), ended.clone())));
    let clients: Vec<_> = clients.collect();
    // Long enough for the snapshot to be too old.
    let reason = until("/readyz says why", SOON * 2, async || {
        let (status, body) = readiness(edge).await;
        assert_eq!(status == 200, failing(&body).is_empty());
        partner.get("/api/v2/prices").await.assert_status(200);
        let reasons = failing(&body).join(" ");
        (reasons.contains("database") && reasons.contains("snapshot")).then_some(reasons)
    })
    .await;
    assert!(!reason.contains("clock"), "{reason}");
    end_hammering.send_replace(true);
    for client in timeout(ANSWERED, join_all(clients)).await.expect("few answers are waited for") {
        client.unwrap();
    }

    end();
    let mut unwell = Vec::new();
    until("everything is well again", RECOVERY, async || {
        let (_, body) = readiness(edge).await;
        let failing: Vec<_> = failing(&body).into_iter().map(str::to_owned).collect();
        if failing != unwell {
            // Shown if this fails.
            println!("fails after the return: {failing:?}");
            unwell = failing;
        }
        (unwell.is_empty() && read(&partner).await == 200).then_some(())
    })
    .await;
    let mut failed = 0;
    for _ in 0..CLIENTS {
        failed += usize::from(read(&partner).await != 200);
    }
    assert!(failed <= LATE_MAX, "connections from before are still used: {failed}");
    let body = serde_json::json!({"status": "active"});
    edge.admin(Method::PATCH, "/admin/v1/partners/acme", body).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_hangs_holds_up_few_answers_and_is_well_when_it_goes_on() {
    let server = PostgresServer::start().await;
    let edge = edge(&server, &server.database().await).await;
    survives(&edge, || server.signal(Signal::SIGSTOP), || server.signal(Signal::SIGCONT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_swallows_everything_is_noticed_and_left_behind() {
    let server = PostgresServer::start().await;
    let edge = edge(&server, &server.database().await).await;
    let link = &server.link;
    survives(&edge, || link.set(Weather::BlackHole), || link.set(Weather::Fair)).await;
}

/// Takes every connection of the server once the edge has none.
async fn fill(server: &PostgresServer, database: &str) -> Vec<PgConnection> {
    let url = server.tcp_url("postgres");
    let mut first = PgConnection::connect(&url).await.unwrap();
    until("the edge has no connection", SOON, async || {
        let left = sqlx::query_scalar("select count(*) from pg_stat_activity where datname = $1");
        let left: i64 = left.bind(database).fetch_one(&mut first).await.unwrap();
        (left == 0).then_some(())
    })
    .await;
    let mut others = vec![first];
    while let Ok(other) = PgConnection::connect(&url).await {
        others.push(other);
    }
    others
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_whose_connections_others_have_taken_is_waited_for() {
    let server = PostgresServer::start().await;
    let database = server.database().await;
    let edge = edge(&server, &database).await;
    let partner = edge.partner("acme").await;
    server.link.set(Weather::Refusing);
    let others = fill(&server, &database).await;
    server.link.set(Weather::Fair);
    until("/readyz says why", SOON, async || {
        let answered = timeout(ANSWERED_WITHIN, read(&partner)).await;
        assert_eq!(answered.expect("a connection is not waited for without end"), 503);
        partner.get("/api/v2/prices").await.assert_status(200);
        let (status, body) = readiness(&edge).await;
        let reasons = failing(&body);
        (status == 503 && ["pool", "snapshot"].iter().all(|name| reasons.contains(name)))
            .then_some(())
    })
    .await;

    drop(others);
    until("everything is well again", RECOVERY, async || {
        (readiness(&edge).await.0 == 200 && read(&partner).await == 200).then_some(())
    })
    .await;
}

/// Fills a pipe that nobody reads, and becomes the edge with it as standard error.
const STUCK: &str = r#"mkfifo full && exec 3<>full || exit 2
dd if=/dev/zero of=full bs=1024 oflag=nonblock 2>/dev/null
exec "$0" "$@" 2>&3"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_refuses_is_waited_for_and_a_log_that_nobody_reads_holds_nothing_up() {
    let server = PostgresServer::start().await;
    let mut setup = setup(&server, &server.database().await);
    setup.under(&["/bin/sh", "-c", STUCK]);
    let edge = Edge::of(setup).await;
    let link = &server.link;
    survives(&edge, || link.set(Weather::Refusing), || link.set(Weather::Fair)).await;
    edge.process.signal(Signal::SIGTERM);
    assert!(edge.process.ended().await.success());
}

/// The backends of the edge's connections.
async fn backends(pool: &PgPool) -> Vec<i32> {
    let statement = "select pid from pg_stat_activity \
                     where datname = current_database() and pid <> pg_backend_pid()";
    sqlx::query_scalar(statement).fetch_all(pool).await.unwrap()
}

/// As a leader becomes a replica: the server goes on, and its connections stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_a_server_that_only_reads_are_left() {
    let server = PostgresServer::start().await;
    let database = server.database().await;
    let edge = edge(&server, &database).await;
    let partner = edge.partner("acme").await;
    let pool = server.pool(&database).await;
    let set = async |statement: &'static str| {
        for statement in [statement, "select pg_reload_conf()"] {
            sqlx::query(statement).execute(&pool).await.unwrap();
        }
    };
    let write = async |name: &str| {
        let user = partner.post("/api/v2/user", registration(name)).await;
        assert!([200, 503].contains(&user.status()), "{}", user.status());
        user.status()
    };

    assert_eq!(write("before").await, 200);
    let before = backends(&pool).await;
    set("alter system set default_transaction_read_only = on").await;
    let mut tries = 0;
    until("a write is refused", RECOVERY, async || {
        tries += 1;
        (write(&format!("reader{tries}")).await == 503).then_some(())
    })
    .await;
    partner.get("/api/v2/prices").await.assert_status(200);
    until("the connection is closed", RECOVERY, async || {
        let now = backends(&pool).await;
        before.iter().any(|backend| !now.contains(backend)).then_some(())
    })
    .await;

    set("alter system reset default_transaction_read_only").await;
    until("it is written again", RECOVERY, async || (write("after").await == 200).then_some(()))
        .await;
}
