//! An edge that cannot start says why in one sentence and ends with status 2; nothing is half
//! done.

use std::fs;
use std::net::TcpListener;

use rampart_tests::certificate::Certificate;
use rampart_tests::cluster;
use rampart_tests::edge::Setup;
use rampart_tests::port::free;
use sqlx::{AssertSqlSafe, PgPool};

/// The sentence with which an edge of this setup refuses to start.
async fn refusal(setup: &Setup) -> String {
    let process = setup.spawn();
    let status = process.ended().await;
    let (out, err) = (process.out(), process.err());
    assert_eq!(status.code(), Some(2), "{out:?} {err:?}");
    assert!(out.is_empty(), "{out:?}");
    let [line] = err.as_slice() else { panic!("not one line: {err:?}") };
    line.strip_prefix("rampart: ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// A setup over no database, with a change.
fn with(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup::over("postgres://nobody@127.0.0.1:1/none");
    change(&mut setup);
    setup
}

fn set(key: &str, value: &str) -> Setup {
    with(|setup| _ = setup.set(key, value))
}

fn file(text: &str) -> Setup {
    with(|setup| {
        fs::write(setup.folder().join("rampart.toml"), text).unwrap();
        setup.argument("--config").argument("rampart.toml");
    })
}

/// A pair with one source of prices.
fn sources(pair: &str, url: &str) -> Setup {
    file(&format!(
        "[prices]\nsource = 'http'\n\
         sources.{pair} = [{{url = '{url}', pointer = '/p', time_pointer = '/t'}}]\n"
    ))
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_named_with_key_and_place() {
    let cases = [
        (set("nosuch.key", "1"), "nosuch"),
        (set("edge.listen", "localhost"), "'localhost' is not an address"),
        (set("edge.threads", "0"), "'edge.threads' is 0, not between 1 and 1024"),
        (set("edge.threads", "many"), "threads"),
        (set("edge.head_seconds", "10"), "called 'edge.request_header_timeout_seconds' now"),
        (
            file("[lifetimes]\nquote = 300\nquote_seconds = 300"),
            "'lifetimes.quote' and 'lifetimes.quote_seconds' are both set",
        ),
        (set("lifetimes.quote_seconds", "0"), "'lifetimes.quote_seconds' is 0, not between 1 and"),
        (set("edge.public_url", "ftp://a"), "'edge.public_url'"),
        (set("ratelimit.client", "fast"), "'fast' is not a rate"),
        (set("log.format", "xml"), "xml"),
        (set("database.url_file", "/nowhere/url"), "'database.url' and 'database.url_file'"),
        (set("admin.token_file", "/nowhere/token"), "'admin.token' and 'admin.token_file'"),
        (set("admin.listen", "0.0.0.0:0"), "0.0.0.0:0, which is not a loopback address"),
        (set("admin.tls.cert", "cert.pem"), "'admin.tls.cert' and 'admin.tls.key' go together"),
        (set("admin.url", "ops.example.com"), "'admin.url' is not a URL"),
        (file("[edge\nlisten = 1"), "rampart.toml"),
        (file("[edge]\nsurprise = 1"), "surprise"),
        (file("[prices.sources]\nLTC-EUR = []"), "prices.sources.LTC-EUR names no source"),
        (sources("litecoin", "https://a.example"), "'litecoin', which is no currency pair"),
        (sources("LTC-EUR", "http://a.example"), "neither https nor http on loopback"),
        (
            file("[prices.sources]\nLTC-EUR = [{url = 'https://a.example', pointer = '/p'}]"),
            "time_pointer",
        ),
        (
            file(
                "[prices]\nsource = 'static'\n[prices.sources]\nLTC-EUR = \
                 [{url = 'https://a.example', pointer = '/p', time_pointer = '/t'}]",
            ),
            "prices.source is 'static', not 'http'",
        ),
        (set("prices.deviation_max", "0.125"), "at most 2 decimals"),
        (set("quotes.estimated_slippage_max", "0.125"), "at most 2 decimals"),
        (
            set("quotes.estimated_slippage_max", "101"),
            "'quotes.estimated_slippage_max' is 101, not",
        ),
        (set("prices.deviation_max", "1001"), "'prices.deviation_max' is 1001, not between 0 and"),
        (with(|s| _ = s.argument("--config").argument("missing.toml")), "'missing.toml'"),
        (with(|s| _ = s.unset("database.url")), "database.url is not set"),
        (set("database.url", "mysql://a/b"), "database.url is not a postgres:// URL"),
        (set("keys.master", "c2hvcnQ="), "keys.master is not 32 bytes in base64"),
    ];
    for (setup, named) in cases {
        let sentence = refusal(&setup).await;
        assert!(sentence.contains(named), "{named}: {sentence}");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_named_with_its_file() {
    let replaced =
        |name: &str, text: &str| with(|setup| fs::write(setup.folder().join(name), text).unwrap());
    let without = with(|setup| _ = setup.unset("edge.tls.cert").unset("edge.tls.key"));
    let half = with(|setup| _ = setup.unset("edge.tls.key"));
    let missing = with(|setup| fs::remove_file(setup.folder().join("cert.pem")).unwrap());
    let foreign = with(|setup| {
        let key = fs::read(setup.folder().join("key.pem")).unwrap();
        Certificate::make().write(setup.folder());
        fs::write(setup.folder().join("key.pem"), key).unwrap();
    });
    let cases = [
        (without, "no certificate: set 'edge.tls.cert'"),
        (half, "'edge.tls.key'"),
        (missing, "cert.pem' cannot be used"),
        (replaced("cert.pem", "not PEM"), "cert.pem' cannot be used"),
        (replaced("key.pem", ""), "key.pem' cannot be used"),
        (foreign, "cert.pem' cannot be used"),
    ];
    for (setup, named) in cases {
        let sentence = refusal(&setup).await;
        assert!(sentence.contains(named), "{named}: {sentence}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for listener in ["edge", "admin", "ops"] {
        let sentence = refusal(&set(&format!("{listener}.listen"), &address)).await;
        assert!(sentence.contains(&format!("{listener}.listen = {address}")), "{sentence}");
    }
    let sentence = refusal(&with(|setup| {
        setup.unset("edge.upgrade_socket").argument("--upgrade");
    }))
    .await;
    assert!(sentence.contains("'edge.upgrade_socket'"), "{sentence}");
}

#[tokio::test]
async fn a_postgres_that_cannot_be_used_is_named_without_the_password() {
    let gone = free();
    let url = format!("postgres://rampart:pass-word@{gone}/rampart");
    let sentence = refusal(&set("database.url", &url)).await;
    assert!(sentence.contains(&format!("Postgres at {gone} cannot be used")), "{sentence}");
    assert!(!sentence.contains("pass-word"), "{sentence}");

    let database = cluster::database().await;
    let missing = database.replace("?host", "_not?host");
    let sentence = refusal(&set("database.url", &missing)).await;
    assert!(sentence.contains("cannot be used"), "{sentence}");

    // A database that says of itself what an old server would.
    let pool = PgPool::connect(&database).await.unwrap();
    let name: String =
        sqlx::query_scalar("select current_database()").fetch_one(&pool).await.unwrap();
    for statement in [
        "create schema old".to_owned(),
        "create function old.current_setting(text) returns text language sql as $$ select '140012' $$"
            .to_owned(),
        format!("alter database {name} set search_path = old, pg_catalog, public"),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&pool).await.unwrap();
    }
    let sentence = refusal(&set("database.url", &database)).await;
    assert!(sentence.contains("is too old: 15 or later is needed, it is 140012"), "{sentence}");
}
