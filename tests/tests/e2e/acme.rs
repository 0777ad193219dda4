//! Certificates that edges order from an authority by ACME.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rampart_tests::acme_server::AcmeServer;
use rampart_tests::cluster;
use rampart_tests::deadline::until;
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::port::free;
use sqlx::PgPool;

const NAME: &str = "pay.shop.example";
/// Longest time from a start to a certificate: edges read a challenge within 3 s.
const ORDER: Duration = Duration::from_secs(60);

/// The certificate that a listener shows for the name in a handshake with this protocol, as text.
fn shown(address: SocketAddr, protocol: &str) -> Option<String> {
    let script = format!(
        "openssl s_client -connect {address} -servername {NAME} -alpn {protocol} </dev/null \
         2>/dev/null | openssl x509 -noout -text -serial"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(text)
}

/// The line with the serial number, once it is the authority's certificate and not `earlier`.
async fn issued(edge: &Edge, earlier: Option<&str>) -> String {
    until("the edge serves the certificate", ORDER, async || {
        let text = shown(edge.address, "http/1.1")?;
        let issuer = text.lines().find(|line| line.contains("Issuer: ")).unwrap();
        assert!(issuer.contains("Pebble Intermediate"), "{text}");
        assert!(text.contains(&format!("DNS:{NAME}")), "{text}");
        let serial = text.lines().find(|line| line.starts_with("serial=")).unwrap().to_owned();
        (earlier != Some(&serial)).then_some(serial)
    })
    .await
}

async fn setup(authority: SocketAddr) -> Setup {
    let mut setup = Setup::over(&cluster::database().await).under_roles().await;
    let ca = setup.folder().join("cert.pem").display().to_string();
    setup.unset("edge.tls.cert").unset("edge.tls.key");
    setup.set("acme.directory_url", AcmeServer::directory(authority));
    setup.set("acme.domains", NAME).set("acme.terms_agreed", "true").set("acme.ca", ca);
    setup.set("acme.contacts", "mailto:sre@shop.example");
    setup
}

async fn renew(db: &PgPool) {
    sqlx::query("update acme_certificate set renew_at = now()").execute(db).await.unwrap();
}

async fn failures(db: &PgPool) -> i32 {
    let failures = sqlx::query_scalar("select failures from acme_certificate");
    failures.fetch_optional(db).await.unwrap().unwrap_or_default()
}

/// True if nobody tries now and the next attempt begins within a minute.
async fn waits(db: &PgPool) -> bool {
    let waits = sqlx::query_scalar(
        "select next_attempt_at between now() and now() + interval '1 minute' \
             and leased_until is null from acme_certificate",
    );
    waits.fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn one_edge_orders_a_certificate_and_all_serve_and_renew_it() {
    let (authority, listener) = (free(), free());
    let server = AcmeServer::start(authority, listener.port()).await;
    let mut setup = setup(authority).await;
    let first = Edge::of({
        setup.set("edge.listen", listener.to_string());
        setup.clone()
    })
    .await;
    let serial = issued(&first, None).await;
    let second = Edge::of({
        setup.set("edge.listen", "127.0.0.1:0");
        setup.clone()
    })
    .await;
    assert_eq!(issued(&second, None).await, serial, "it is shared");
    let db = cluster::pool(setup.database()).await;
    let stored: (i64, i64) = sqlx::query_as(
        "select (select count(*) from acme_account), (select count(*) from acme_challenge)",
    )
    .fetch_one(&db)
    .await
    .unwrap();
    assert_eq!(stored, (1, 0), "one account for all, and no challenge is left");

    // Whichever edge orders, every edge answers.
    sqlx::query("insert into acme_challenge values ($1, $2, now() + interval '1 minute')")
        .bind(NAME)
        .bind([7_u8; 32])
        .execute(&db)
        .await
        .unwrap();
    for edge in [&first, &second] {
        let text = until("the challenge is answered", ORDER, async || {
            shown(edge.address, "acme-tls/1").filter(|text| text.contains("1.3.6.1.5.5.7.1.31"))
        })
        .await;
        assert!(text.contains("1.3.6.1.5.5.7.1.31: critical"), "{text}");
        assert!(shown(edge.address, "h2").unwrap().contains("Pebble Intermediate"));
    }

    renew(&db).await;
    let renewed = issued(&first, Some(&serial)).await;
    assert_eq!(issued(&second, Some(&serial)).await, renewed, "renewed without a restart");

    server.kill();
    renew(&db).await;
    until("a failure is stored", ORDER, async || (failures(&db).await == 1).then_some(())).await;
    assert!(waits(&db).await, "the next attempt waits");
    assert_eq!(issued(&first, None).await, renewed, "what was there is served on");
    let counted = async |edge: &Edge| {
        let metrics = edge.ops("/metrics").await.text().to_owned();
        metrics.contains("rampart_acme_orders_total{outcome=\"failed\"} 1")
    };
    assert!(counted(&first).await != counted(&second).await, "one edge has tried");

    setup.set("acme.domains", format!("{NAME},new.shop.example"));
    let third = Edge::of(setup).await;
    assert_eq!(issued(&third, None).await, renewed, "served while other names have none");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_stored_is_a_failed_attempt() {
    let (authority, listener) = (free(), free());
    let _server = AcmeServer::start(authority, listener.port()).await;
    let mut setup = setup(authority).await;
    let db = cluster::pool(setup.database()).await;
    for statement in [
        "create function refuse() returns trigger language plpgsql \
             as $$ begin raise exception 'the disk is full'; end $$",
        "create trigger refuse before update of chain on acme_certificate \
             for each row execute function refuse()",
    ] {
        sqlx::query(statement).execute(&db).await.unwrap();
    }
    setup.set("edge.listen", listener.to_string());
    let edge = Edge::of(setup).await;
    until("a failure is stored", ORDER, async || (failures(&db).await == 1).then_some(())).await;
    assert!(waits(&db).await, "the next attempt waits");
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains("rampart_acme_orders_total{outcome=\"failed\"} 1"), "{metrics}");
}

#[tokio::test]
async fn an_order_that_another_edge_takes_over_is_no_failed_one() {
    let (authority, listener) = (free(), free());
    let _server = AcmeServer::start(authority, listener.port()).await;
    let mut setup = setup(authority).await;
    let db = cluster::pool(setup.database()).await;
    for statement in [
        "create function take_over() returns trigger language plpgsql as $$ begin \
             update acme_certificate set leased_until = now() + interval '1 hour'; \
             return new; end $$",
        "create trigger take_over before insert on acme_challenge \
             for each row execute function take_over()",
    ] {
        sqlx::query(statement).execute(&db).await.unwrap();
    }
    setup.set("edge.listen", listener.to_string());
    let edge = Edge::of(setup).await;
    until("the edge gives the order up", ORDER, async || {
        let logged = edge.process.err().join("\n");
        logged.contains("another edge has taken over the order").then_some(())
    })
    .await;
    assert_eq!(failures(&db).await, 0);
    let metrics = edge.ops("/metrics").await.text().to_owned();
    assert!(metrics.contains("rampart_acme_orders_total{outcome=\"failed\"} 0"), "{metrics}");
}

#[tokio::test]
async fn an_edge_without_a_certificate_yet_says_so_and_shows_none() {
    let edge = Edge::of(setup(free()).await).await;
    let body = edge.ops("/readyz").await.text().to_owned();
    assert!(body.contains("there is no certificate yet"), "{body}");
    assert_eq!(shown(edge.address, "http/1.1"), None);
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_named() {
    let refused = async |key: &str, value: &str, sentence: &str| {
        let mut setup = setup(free()).await;
        setup.set(key, value);
        let process = setup.spawn();
        assert_eq!(process.ended().await.code(), Some(2));
        let said = process.err().join("\n");
        assert!(said.contains(sentence), "{said}");
    };
    refused("acme.domains", "*.shop.example", "'acme.domains': '*.shop.example'").await;
    refused("acme.directory_url", "http://ca.example", "begins with https://").await;
    refused("acme.terms_agreed", "false", "acme.terms_agreed").await;
    refused("acme.ca", "/nowhere.pem", "'acme.ca': '/nowhere.pem' cannot be used").await;
}
