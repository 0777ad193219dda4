//! `rampart doctor`: it says of an installation what `rampart serve` would, and what is amiss beside it.

use std::fs;

use rampart_tests::certificate::Certificate;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::mail_server::MailServer;
use rampart_tests::postgres_server::PostgresServer;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// Exit status and lines of `rampart <command>`, errors last.
async fn run(command: &str, setup: &Setup) -> (Option<i32>, Vec<String>) {
    let process = setup.run(command);
    let status = process.ended_within(SOON).await.code();
    (status, [process.out(), process.err()].concat())
}

/// A setup over a new database, and what is changed in it.
async fn changed(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup::over(&cluster::database().await);
    change(&mut setup);
    setup
}

fn has(lines: &[String], line: &str) -> bool {
    lines.iter().any(|printed| printed.starts_with(line))
}

#[tokio::test]
async fn what_stops_an_edge_is_broken_in_the_words_of_serve() {
    let cases: [(&str, &str, &str, &str); 11] = [
        ("edge.forwarded_for", "true", "configuration", "'edge.proxy_protocol' and"),
        ("admin.listen", "0.0.0.0:0", "configuration", "'admin.listen' is 0.0.0.0:0, which is no"),
        ("edge.public_url", "ftp://a", "configuration", "'edge.public_url' begins with https://"),
        ("edge.tls.ciphers", "NULL", "configuration", "'edge.tls.ciphers' names 'NULL', which is"),
        ("edge.tls.client_ca", "none.pem", "configuration", "'edge.tls.client_ca' is not usable"),
        ("limits.upstream_ca", "none.pem", "configuration", "'limits.upstream_ca' is not usable"),
        ("log.level", "info=loud", "configuration", "log.level = 'info=loud' is not a level or"),
        ("ratelimit.redis_url", "http://a", "configuration", "ratelimit.redis_url is not a URL"),
        ("documents.s3_url", "http://a", "configuration", "documents.s3_url is not a URL such as"),
        ("keys.master", "short", "keys.master", "keys.master is not 32 bytes in base64"),
        (
            "database.url",
            "postgres://127.0.0.1:1/rampart",
            "database",
            "Postgres at 127.0.0.1:1 cannot be used: ",
        ),
    ];
    for (key, value, subject, sentence) in cases {
        let setup = changed(|setup| _ = setup.set(key, value)).await;
        let (status, served) = run("serve", &setup).await;
        assert_eq!(status, Some(2), "{served:?}");
        assert!(has(&served, &format!("rampart: {sentence}")), "{key}: {served:?}");
        let (status, seen) = run("doctor", &setup).await;
        assert_eq!(status, Some(2), "{seen:?}");
        assert!(has(&seen, &format!("broken  {subject}: {sentence}")), "{key}: {seen:?}");
        assert!(!has(&seen, &format!("ok      {subject}")), "{key}: {seen:?}");
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named_in_its_servers_own_words() {
    let setup = changed(|setup| {
        let url = setup.database().to_owned();
        let options: PgConnectOptions = url.parse().unwrap();
        setup.set("database.url", url.replace(options.get_database().unwrap(), "nowhere"));
    })
    .await;
    for command in ["doctor", "serve", "migrate"] {
        let (_, lines) = run(command, &setup).await;
        let named = lines.iter().find(|line| line.contains("cannot be used: ")).unwrap();
        assert!(named.ends_with("database \"nowhere\" does not exist"), "{command}: {named}");
    }
}

/// A setup over a database whose server must show this certificate.
fn verified(server: &PostgresServer, database: &str, certificate: &Certificate) -> Setup {
    let mut setup = Setup::over(&server.url(database));
    let path = setup.folder().join("postgres.pem");
    fs::write(&path, certificate.pem()).unwrap();
    let mut url = Url::parse(&server.tcp_url(database)).unwrap();
    let root = path.to_str().unwrap();
    url.query_pairs_mut().clear().extend_pairs([("sslmode", "verify-full"), ("sslrootcert", root)]);
    setup.set("database.url", url);
    setup
}

#[tokio::test]
async fn a_server_of_the_database_that_shows_another_certificate_or_none_is_not_used() {
    let server = PostgresServer::start().await;
    let database = server.database().await;
    let (own, another) = (Certificate::make(), Certificate::make());
    let unusable = "broken  database: Postgres at 127.0.0.1:";
    let seen = async |certificate: &Certificate| {
        run("doctor", &verified(&server, &database, certificate)).await.1
    };
    let without_tls = seen(&own).await;
    assert!(has(&without_tls, unusable), "{without_tls:?}");
    server.offer_tls(&own).await;
    until("the server's own certificate is trusted", SOON, async || {
        let trusted = seen(&own).await;
        // Shown if this fails.
        println!("{trusted:?}");
        has(&trusted, "ok      schema").then_some(())
    })
    .await;
    let distrusted = seen(&another).await;
    assert!(has(&distrusted, unusable), "{distrusted:?}");
}

#[tokio::test]
async fn an_edge_whose_certificate_comes_by_acme_needs_no_other() {
    let setup = changed(|setup| {
        setup.unset("edge.tls.cert").unset("edge.tls.key").set("acme.domains", "shop.example");
        setup.set("acme.directory_url", "https://127.0.0.1:1/dir").set("acme.terms_agreed", "true");
    })
    .await;
    let (status, seen) = run("doctor", &setup).await;
    assert!(has(&seen, "ok      certificate: the edges order it by ACME"), "{seen:?}");
    assert_eq!(status, Some(0), "{seen:?}");
}

#[tokio::test]
async fn servers_and_folders_beside_the_database_are_tried() {
    let server = MailServer::start().await;
    let setup = changed(|setup| {
        let itself = setup.database().to_owned();
        // The sender follows from the listening address.
        setup.set("mail.smtp_url", server.url()).set("database.replica_urls", itself);
    })
    .await;
    let (status, seen) = run("doctor", &setup).await;
    assert_eq!(status, Some(0), "{seen:?}");
    for good in ["mail: the mail server answers", "documents", "replicas"] {
        assert!(has(&seen, &format!("ok      {good}")), "{good}: {seen:?}");
    }
    assert!(!setup.folder().join("documents").exists(), "the folder was made");
    assert!(server.mails().is_empty());

    let setup = changed(|setup| {
        setup.set("mail.smtp_url", "smtp://127.0.0.1:1");
        setup.set("documents.folder", "/dev/null/documents");
        setup.set("database.replica_urls", "postgres://127.0.0.1:1/rampart");
    })
    .await;
    let (status, seen) = run("doctor", &setup).await;
    assert_eq!(status, Some(0), "{seen:?}");
    for (subject, problem) in [
        ("mail", "the mail server cannot be reached"),
        ("documents", "documents.folder: it is no folder"),
        ("replicas", "127.0.0.1:1 cannot be read"),
    ] {
        let is_it = |line: &&String| line.starts_with(&format!("warning {subject}: "));
        assert!(seen.iter().find(is_it).is_some_and(|line| line.contains(problem)), "{seen:?}");
    }
}

#[tokio::test]
async fn the_folder_of_upgrades_and_the_pairs_of_sources_are_looked_at() {
    let setup = changed(|_| {}).await;
    let with_sources = |pair: &str| {
        let sources = format!(
            "[[prices.sources.{pair}]]\nurl = \"http://127.0.0.1:1/\"\npointer = \"/price\"\n\
             time_pointer = \"/time\"\n"
        );
        fs::write(setup.folder().join("prices.toml"), sources).unwrap();
    };
    with_sources("BTC-EUR");
    let (status, seen) = run("doctor --config prices.toml", &setup).await;
    assert_eq!(status, Some(0), "{seen:?}");
    for good in ["edge.upgrade_socket", "prices.sources"] {
        assert!(has(&seen, &format!("ok      {good}")), "{good}: {seen:?}");
    }
    let mut setup = setup.clone();
    with_sources("BTC-EURO");
    setup.set("edge.upgrade_socket", "/dev/null/upgrade.sock");
    let (status, seen) = run("doctor --config prices.toml", &setup).await;
    assert_eq!(status, Some(0), "{seen:?}");
    for odd in [
        "prices.sources: BTC-EURO: there is no such pair",
        "edge.upgrade_socket: no upgrade: '/dev/null' is no folder",
    ] {
        assert!(has(&seen, &format!("warning {odd}")), "{odd}: {seen:?}");
    }
}

#[tokio::test]
async fn what_the_last_checks_found_is_told() {
    let setup = changed(|_| {}).await;
    let (_, seen) = run("doctor", &setup).await;
    assert!(has(&seen, "ok      books") && has(&seen, "ok      audit"), "{seen:?}");
    let db = cluster::pool(setup.database()).await;
    for found in [
        "update ledger_check set finished_at = now(), finished_problems = 2",
        "update audit_check set finished_at = now(), broken_position = 7, broken_reason = 'x'",
    ] {
        sqlx::query(found).execute(&db).await.unwrap();
    }
    let (_, seen) = run("doctor", &setup).await;
    assert!(has(&seen, "warning books: degraded: the books are off in 2 places"), "{seen:?}");
    assert!(has(&seen, "warning audit: degraded: the audit's chain is broken"), "{seen:?}");
}

#[tokio::test]
async fn routes_whose_connector_lacks_the_capability_are_warned_of() {
    let setup = changed(|_| {}).await;
    let (_, seen) = run("doctor", &setup).await;
    assert!(has(&seen, "ok      routes"), "{seen:?}");
    let db = cluster::pool(setup.database()).await;
    for made in [
        "insert into connector (name, capabilities, created_by, created_at) \
         values ('bank', array['transfer.send'], 'ada', now())",
        "insert into route (position, payment_method, direction, connector) \
         values (1, 'bankTransfer', 'out', 'bank'), (2, 'bankTransfer', 'in', 'bank')",
    ] {
        sqlx::query(made).execute(&db).await.unwrap();
    }
    let (status, seen) = run("doctor", &setup).await;
    assert_eq!(status, Some(0), "{seen:?}");
    assert!(has(&seen, "warning routes: bank lacks payment.create: "), "{seen:?}");
    assert!(!has(&seen, "ok      routes") && !has(&seen, "warning routes: bank lacks transfer"));
}

#[tokio::test]
async fn the_health_check_sees_a_dead_edge_and_sounds_no_alarm() {
    let edge = Edge::start().await;
    let mut setup = edge.setup();
    setup.set("ops.listen", edge.ops.to_string()).set("admin.listen", edge.admin.to_string());
    for command in ["doctor", "doctor --running"] {
        let (status, seen) = run(command, &setup).await;
        assert_eq!(status, Some(0), "{seen:?}");
        assert!(has(&seen, "ok      running edge: answers at 127.0.0.1:"), "{seen:?}");
    }
    let metrics = edge.ops("/metrics").await;
    let unused = "\nrampart_operator_break_glass_total 0\n";
    assert!(metrics.text().contains(unused), "a token was used");
    edge.process.kill();
    let (status, seen) = run("doctor", &setup).await;
    assert_eq!(status, Some(0), "an edge is checked before it runs: {seen:?}");
    assert!(has(&seen, "warning running edge: no edge answers at ops.listen: "), "{seen:?}");
    let (status, seen) = run("doctor --running", &setup).await;
    assert_eq!(status, Some(1), "2 is Docker's own: {seen:?}");
    assert!(has(&seen, "rampart: no edge answers at ops.listen: "), "{seen:?}");
}
