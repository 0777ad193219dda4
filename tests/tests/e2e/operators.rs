//! The operators' listener: its names, its certificate, and the commands that call it.

use std::process::{Command, Stdio};

use http::{HeaderValue, Method};
use rampart_tests::caller::Protocol;
use rampart_tests::edge::{ADMIN_TOKEN, Edge};
use rampart_tests::process::binary;
use rampart_tests::receiver::Receiver;
use rampart_tests::wire::Wire;
use serde_json::json;

use crate::commands::printed;

/// The status of a read with these headers.
async fn status(edge: &Edge, url: &str, headers: &[(&'static str, &str)]) -> u16 {
    let client = Protocol::Http1.client();
    let mut request = client.get(format!("{url}/admin/v1/pairs")).bearer_auth(ADMIN_TOKEN);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap_or_else(|error| panic!("{} {error}", edge.admin));
    answer.status().as_u16()
}

#[tokio::test]
async fn a_name_that_is_not_the_listeners_is_refused() {
    let edge = Edge::with(|setup| _ = setup.set("admin.url", "http://ops.example.com")).await;
    let url = format!("http://{}", edge.admin);
    for own in ["ops.example.com", "localhost:1", "127.0.0.1", "[::1]:9443"] {
        assert_eq!(status(&edge, &url, &[("host", own)]).await, 200, "{own}");
    }
    for foreign in ["evil.example", "evil.example:9443", "ops.example.com.evil.example"] {
        assert_eq!(status(&edge, &url, &[("host", foreign)]).await, 421, "{foreign}");
    }
    let origin = format!("http://{}", edge.admin);
    assert_eq!(status(&edge, &url, &[("origin", &origin)]).await, 200);
    assert_eq!(status(&edge, &url, &[("origin", "http://evil.example")]).await, 403);
    assert_eq!(status(&edge, &url, &[("sec-fetch-site", "cross-site")]).await, 403);
}

#[tokio::test]
async fn a_stranger_is_refused_before_their_body_has_come() {
    let edge = Edge::start().await;
    for (path, status) in [
        ("/admin/v1/partners", 401),
        ("/console/orders", 401),
        ("/console/sign-in", 413),
        ("/console/logout", 401),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer rop_unknown\r\n\
             Content-Length: 4000000\r\n\r\n{{",
            edge.admin
        );
        let refused = Wire::plain(edge.admin).await.exchange(head.as_bytes()).await;
        refused.expect("an answer").assert_status(status);
    }
}

/// An edge whose operators' listener is here, with the public one's certificate, and with the time
/// for which browsers are told to stay with HTTPS.
async fn over_tls(listen: &str, hsts_seconds: Option<u32>) -> Edge {
    Edge::with(|setup| {
        let folder = setup.folder().to_owned();
        setup.set("admin.tls.cert", folder.join("cert.pem").display().to_string());
        setup.set("admin.tls.key", folder.join("key.pem").display().to_string());
        setup.set("admin.listen", listen);
        if let Some(seconds) = hsts_seconds {
            setup.set("admin.hsts_seconds", seconds.to_string());
        }
    })
    .await
}

#[tokio::test]
async fn operators_are_served_over_tls() {
    let edge = over_tls("0.0.0.0:0", Some(300)).await;
    let port = edge.admin.port();
    let url = format!("https://127.0.0.1:{port}");
    assert_eq!(status(&edge, &url, &[]).await, 200);
    // Browsers are told to stay with HTTPS, whether they see a page or not.
    for (path, found) in [("/admin/v1/pairs", true), ("/console", true), ("/nowhere", false)] {
        let answer = Protocol::Http2.client().get(format!("{url}{path}"));
        let answer = answer.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        assert_eq!(answer.status() != 404, found, "{path}");
        assert_eq!(answer.headers()["strict-transport-security"], "max-age=300", "{path}");
    }
    // What HTTP/1 would not have is refused here as on the public listener.
    for (method, value) in [("GET", " y"), ("GET", "y "), (&*"M".repeat(33), "y")] {
        let method = method.parse::<Method>().unwrap();
        let request = Protocol::Http2.client().request(method, format!("{url}/admin/v1/pairs"));
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        let answer = request.bearer_auth(ADMIN_TOKEN).header("x-name", value).send().await.unwrap();
        assert_eq!(answer.status(), 400);
    }
    let plain = Protocol::Http1.client().get(format!("http://127.0.0.1:{port}/admin/v1/pairs"));
    let plain = plain.bearer_auth(ADMIN_TOKEN).send().await;
    assert!(plain.is_err_and(|error| !error.is_timeout()), "an answer in clear");
}

#[tokio::test]
async fn browsers_of_operators_are_told_nothing_of_https_by_default() {
    let edge = over_tls("127.0.0.1:0", None).await;
    let url = format!("https://127.0.0.1:{}", edge.admin.port());
    for path in ["/admin/v1/pairs", "/console"] {
        let answer = Protocol::Http2.client().get(format!("{url}{path}"));
        let answer = answer.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        assert_eq!(answer.headers().get("strict-transport-security"), None, "{path}");
    }
}

#[tokio::test]
async fn two_operators_work_by_command_and_leave_an_audit_that_holds() {
    let edge = over_tls("127.0.0.1:0", None).await;
    let token = async |name: &str| {
        let arguments = ["operator", "add", name, "--role", "treasury", "--role", "platform"];
        let made = printed(&edge.command(&arguments).await);
        made["token"].as_str().unwrap().to_owned()
    };
    let (ada, bob) = (token("ada").await, token("bob").await);
    let set = ["price", "set", "BTC-EUR", "41234.5", "--void-quotes"];
    let held = printed(&edge.command_as(&ada, &set).await);
    let approval = held["approval"].as_str().unwrap();
    let own = edge.command_as(&ada, &["approval", "grant", approval]).await;
    assert_eq!(own.status.code(), Some(2));
    printed(&edge.command_as(&bob, &["approval", "grant", approval]).await);
    let price = printed(&edge.command_as(&ada, &set).await);
    assert_eq!(price["price"].to_string(), "41234.5");
    let from = price["quotesValidFrom"].as_str().unwrap();
    assert!(!from.starts_with("9999"), "a time to come counts as now: {from}");
    let verify = ["audit", "verify"];
    let verified = printed(&edge.command_as(&bob, &verify).await);
    assert_eq!((&verified["intact"], &verified["complete"]), (&json!(true), &json!(true)));

    let pool = rampart_tests::cluster::pool(edge.setup().database()).await;
    let tamper = "update audit set actor = 'bob' where action = 'price.set'";
    sqlx::query(tamper).execute(&pool).await.unwrap();
    let broken = edge.command_as(&bob, &verify).await;
    assert_eq!(broken.status.code(), Some(1));
    let sentence = String::from_utf8(broken.stderr).unwrap();
    assert!(sentence.contains("the row was changed"), "{sentence}");
    let wrong = edge.command_as("rop_wrong", &verify).await;
    assert_eq!(wrong.status.code(), Some(2), "nothing is found where nothing is read");
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("(401)"));
    let answer = edge.ops("/metrics").await.text().to_owned();
    assert!(answer.contains(r#"rampart_operator_login_failures_total{cause="wrong"} 1"#));
}

#[tokio::test]
async fn the_books_are_checked_by_command() {
    let edge = over_tls("127.0.0.1:0", None).await;
    let check = ["ledger", "check"];
    let clean = printed(&edge.command(&check).await);
    assert_eq!(clean["problems"], 0);
    let pool = rampart_tests::cluster::pool(edge.setup().database()).await;
    let never_paid = "insert into buy_order (client_id, order_id, quote_id, status, pair, \
        payment_method, wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
        crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
        spread_fee, affiliate_fee, is_estimated_quote, terms_digest, created_at, updated_at) \
        select client_id, 1234567890123456, gen_random_uuid(), 'completed', 'BTC-EUR', \
        'creditCard', 'x', 'unhosted', 1, 'EUR', 1, 'BTC', 1, 0, 0, 0, 0, 0, 0, false, '', now(), \
        now() from client where slug = 'house'";
    sqlx::query(never_paid).execute(&pool).await.unwrap();
    let off = edge.command(&check).await;
    assert_eq!(off.status.code(), Some(1));
    let lines = String::from_utf8(off.stdout).unwrap();
    let begins = |line: &str| line.starts_with("order 1234567890123456: it is completed");
    assert!(lines.lines().any(begins), "{lines}");
    assert_eq!(String::from_utf8(off.stderr).unwrap().lines().count(), 1);
    let wrong = edge.command_as("rop_wrong", &check).await;
    assert_eq!(wrong.status.code(), Some(2), "nothing is found where nothing is read");
    edge.process.kill();
    assert_eq!(edge.command(&check).await.status.code(), Some(2));
    assert_eq!(edge.command(&["ledger", "balances"]).await.status.code(), Some(2));
}

#[tokio::test]
async fn nothing_is_found_in_an_answer_that_is_no_edges() {
    let receiver = Receiver::start().await;
    let listen = receiver.url("").replace("http://", "");
    for arguments in [["audit", "verify"], ["ledger", "check"]] {
        let mut command = Command::new(binary());
        command.env_clear().args(arguments).stdin(Stdio::null());
        command.env("RAMPART__ADMIN__LISTEN", &listen).env("RAMPART__ADMIN__TOKEN", ADMIN_TOKEN);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {sentence}");
        assert!(sentence.contains("the answer has no"), "{arguments:?}: {sentence}");
    }
    assert_eq!(receiver.heard().len(), 2);
}
