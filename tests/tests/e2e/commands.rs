//! Operators' work by command: users, orders, deliveries, settings and books, without a browser.

use std::fs;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{ADMIN_TOKEN, Edge, Folder};
use rampart_tests::guests::component;
use rampart_tests::keys::{ed25519, ed25519_private};
use rampart_tests::process::{Process, binary};
use rampart_tests::receiver::{Reaction, Receiver};
use rampart_tests::user::registration;
use serde_json::{Value, json};

use crate::buyer::{order, order_of, quote};

/// Text that a command printed; it must have succeeded.
fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::str::from_utf8(&output.stdout).unwrap()
}

/// JSON that a command printed; null when it printed nothing.
pub(crate) fn printed(output: &Output) -> Value {
    match text(output) {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap(),
    }
}

/// Runs a command and reads what it prints.
async fn command(edge: &Edge, line: &str) -> Value {
    let arguments: Vec<&str> = line.split(' ').collect();
    printed(&edge.command(&arguments).await)
}

/// Runs a command that must fail, and reads its sentence.
async fn refusal(edge: &Edge, line: &str) -> String {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = edge.command(&arguments).await;
    assert_eq!(output.status.code(), Some(2), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_user_is_looked_after_by_command() {
    let edge = Edge::start().await;
    let partner = edge.partner("shop").await;
    let session = partner.register(&registration("ada")).await;
    let uuid = session["uuid"].as_str().unwrap();

    assert_eq!(command(&edge, &format!("user show {uuid}")).await["partner"], "shop");
    let checks = "verification.identity=verified limitOverrides=null";
    let _: Value = command(&edge, &format!("user set {uuid} {checks}")).await;
    let open = "type=bankTransfer identifier=NL58ABNA0000000001 name=Ada verified=true";
    let account = command(&edge, &format!("user open-account {uuid} {open}")).await;
    let account = account["accountIdentifier"].as_str().unwrap().to_owned();
    let disabled = format!("user set-account {uuid} {account} disabled=true");
    assert_eq!(command(&edge, &disabled).await["disabled"], true);
    let accounts = command(&edge, &format!("user accounts {uuid} --json")).await;
    assert_eq!(accounts[0]["accountIdentifier"], account.as_str());
    let mail = command(&edge, "mail list --partner shop").await;
    assert!(mail.as_array().is_some(), "{mail}");

    let file = edge.setup().folder().join("proof.png");
    let nothing = format!("user proof {uuid} {uuid} --out {}", file.display());
    assert!(refusal(&edge, &nothing).await.contains("(404)") && !file.exists());
    assert!(refusal(&edge, "user set x level").await.contains("'level' is not MEMBER=VALUE"));
}

#[tokio::test]
async fn orders_settings_and_books_are_worked_on_by_command() {
    let edge = Edge::start().await;
    let partner = edge.partner("shop").await.authenticated().await;
    let order = order_of(&order(&partner).await);

    let listed = command(&edge, "order list --partner shop --side buy").await;
    assert_eq!(listed[0]["id"], order);
    let table = edge.command(&["order", "list", "--table"]).await;
    let table = text(&table);
    assert!(table.starts_with("DATE") && table.contains(&order.to_string()), "{table}");
    assert_eq!(command(&edge, "delivery list --partner shop").await, json!([]));

    let set = command(&edge, "partner set shop feeCapPercentage=2.5").await;
    assert_eq!(set["feeCapPercentage"], json!(2.5));
    let pair = command(&edge, "pair set BTC-EUR quoteLifetimeSeconds=45").await;
    assert_eq!(pair["quoteLifetimeSeconds"], 45);
    let method = command(&edge, "payment-method set creditCard enabled=false").await;
    assert_eq!(method["enabled"], false);
    let rotated = command(&edge, "secret rotate shop webhook --overlap-seconds 60").await;
    assert!(rotated["secret"].is_string() && rotated["previousValidUntil"].is_string());

    let pay = format!("order event {order} payment-received amount=100 reference=wire-1");
    let _: Value = command(&edge, &pay).await;
    let entries = command(&edge, &format!("ledger entries --order {order}")).await;
    assert_eq!(entries.as_array().unwrap().iter().filter(|e| e["kind"] == "received").count(), 1);
    let balances = command(&edge, "ledger balances --partner shop --currency EUR").await;
    assert!(balances.as_array().is_some_and(|accounts| !accounts.is_empty()), "{balances}");
    let books = edge.setup().folder().join("books.csv");
    let export = format!("ledger export --format csv --out {}", books.display());
    assert_eq!(command(&edge, &export).await, Value::Null);
    assert!(fs::read_to_string(&books).unwrap().contains(&order.to_string()));

    let statement = edge.setup().folder().join("statement.csv");
    let lines = "date,amount,currency,reference,providerReference,name,iban\n\
        2026-03-01,12.50,EUR,unknown,tx-1,Ada,NL58ABNA0000000001\n";
    fs::write(&statement, lines).unwrap();
    let _: Value = command(&edge, "connector add bank --capability transfer.send").await;
    let create = format!("reconciliation create {} --connector bank", statement.display());
    let made = command(&edge, &create).await;
    let show = format!("reconciliation show {}", made["id"].as_str().unwrap());
    assert_eq!(command(&edge, &show).await["recorded"], made["recorded"]);
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(binary());
    let output = command.args(["config", "reference"]).stdout(full).output().unwrap();
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{sentence}");
    assert!(sentence.contains("standard output cannot be written"), "{sentence}");
}

/// The completions of a command line's last word, by the edge with this operators' listener.
async fn completed(admin: &str, shell: &str, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = Command::new(binary());
    command.env_clear().arg("--").args(&words);
    command.env("RAMPART__ADMIN__LISTEN", admin).env("RAMPART__ADMIN__TOKEN", ADMIN_TOKEN);
    command.env("RAMPART_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    text(&output).to_owned()
}

#[tokio::test]
async fn shells_and_man_know_the_commands() {
    let edge = Edge::start().await;
    for shell in ["bash", "zsh", "fish"] {
        let script = edge.command(&["completions", shell]).await;
        let script = text(&script);
        assert!(script.contains("savings-plan") && script.contains("redeliver"), "{shell}");
        // Its part that asks the program for names.
        let asks = format!("RAMPART_COMPLETE={shell}");
        assert!(script.replace('"', "").contains(&asks), "{shell}");
    }
    edge.partner("shop").await;
    let _: Value = command(&edge, "connector add shuttle --capability transfer.send").await;
    for (line, name) in [
        ("rampart partner show sh", "shop"),
        ("rampart mail list --partner sh", "shop"),
        ("rampart connector rotate sh", "shuttle"),
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let names = completed(&edge.admin.to_string(), shell, line).await;
            assert_eq!(names.lines().collect::<Vec<_>>(), [name], "{shell}: {line}");
        }
    }
    // Nobody answers there.
    assert_eq!(completed("127.0.0.1:1", "bash", "rampart partner show sh").await, "");
    let folder = edge.setup().folder().join("man");
    let pages = folder.display().to_string();
    assert_eq!(printed(&edge.command(&["man", &pages]).await), Value::Null);
    let page = fs::read_to_string(folder.join("rampart-order-list.1")).unwrap();
    assert!(page.contains("List orders that meet every criterion"), "{page}");
}

#[tokio::test]
async fn the_configuration_is_kept_in_files() {
    let edge = Edge::start().await;
    edge.partner("shop").await;
    let file = edge.setup().folder().join("shop.toml");
    let path = file.display().to_string();
    fs::write(&file, "[partners.shop]\nname = \"Shop\"\nfeeCapPercentage = 30\n").unwrap();
    let refused = refusal(&edge, &format!("apply -f {path}")).await;
    assert!(refused.contains(&format!("{path}:3: ")), "{refused}");
    let exported = edge.command(&["export"]).await;
    fs::write(
        &file,
        text(&exported).replace("defaultFeePercentage = 0", "defaultFeePercentage = 1"),
    )
    .unwrap();
    let shown = edge.command(&["apply", "--dry-run", "-f", &path]).await;
    let change = "partners.shop  defaultFeePercentage: 0 -> 1";
    assert_eq!(text(&shown), format!("{change}\n1 change, not applied: a dry run\n"));
    let applied = edge.command(&["apply", "-f", &path]).await;
    assert_eq!(text(&applied), format!("{change}\n1 change, applied\n"));
    let again = edge.command(&["apply", "--json", "-f", &path]).await;
    assert_eq!(printed(&again), json!({"isApplied": true, "changes": []}));
    let exported = command(&edge, "export --json").await;
    assert_eq!(exported["partners"]["shop"]["defaultFeePercentage"], 1);
    for local in ["doctor", "migrate", "archive"] {
        let refused = refusal(&edge, &format!("{local} --json")).await;
        assert!(refused.contains("unexpected argument '--json'"), "{refused}");
    }
    assert_eq!(command(&edge, "partner show shop").await["defaultFeePercentage"], 1);
}

#[tokio::test]
async fn an_edge_is_watched_by_command() {
    let edge = Edge::start().await;
    let partner = edge.partner("shop").await;
    let metrics = format!("http://{}/metrics", edge.ops);
    let arguments = ["top", "--interval", "1", "--count", "1", "--metrics", &metrics];
    let ask = async {
        for _ in 0..50 {
            quote(&partner).await;
        }
    };
    let (shown, ()) = futures::join!(edge.command(&arguments), ask);
    let shown = text(&shown);
    for line in ["requests", "latency", "pools", "queues", "PARTNER", "ROUTE"] {
        assert!(shown.contains(line), "no {line} in {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "a file gets no control characters: {shown}");
    let nobody = refusal(&edge, "top --count 1 --metrics http://127.0.0.1:1/metrics").await;
    assert!(nobody.contains("does not answer: Connection refused"), "{nobody}");
    let other = format!("top --count 1 --metrics http://{}/healthz", edge.ops);
    let other = refusal(&edge, &other).await;
    assert!(other.contains("does not answer with an edge's metrics"), "{other}");
}

#[tokio::test]
async fn an_edge_that_does_not_answer_is_watched_on() {
    let metrics = Receiver::start().await;
    let shown = Reaction::Text("rampart_build_info 1\n");
    metrics.react(shown.clone());
    let mut command = Command::new(binary());
    command.env_clear().args(["top", "--interval", "1", "--metrics", &metrics.url("/metrics")]);
    let top = Process::spawn(command);
    top.prints("requests").await;
    metrics.react(Reaction::status(503));
    let away = format!("'{}' answers 503", metrics.url("/metrics"));
    top.prints(&away).await;
    let screens = || top.out().iter().filter(|line| line.starts_with("requests")).count();
    let before = screens();
    metrics.react(shown);
    until("it shows the edge again", SOON, async || (screens() > before).then_some(())).await;
    assert!(top.status().is_none() && top.err().is_empty(), "{:?}", top.err());
}

#[tokio::test]
async fn a_policy_is_signed_here_and_uploaded_elsewhere() {
    let edge = Edge::start().await;
    edge.partner("shop").await;
    let folder = Folder::make();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (_, public) = ed25519(7);
    fs::write(path("release.pem"), ed25519_private(7)).unwrap();
    fs::write(path("release.pub.pem"), public).unwrap();
    fs::write(path("fee.wasm"), component("tiered-fee")).unwrap();
    let (fee, key) = (path("fee.wasm"), path("release.pem"));
    let signing = format!("--key {key} --signer release");
    command(&edge, &format!("policy signer add release {}", path("release.pub.pem"))).await;
    command(&edge, &format!("policy push shop fee {fee} {signing}")).await;
    command(&edge, "policy signer require shop").await;
    refusal(&edge, &format!("policy push shop fee {fee} --manifest-out {}", path("none"))).await;

    let manifest = path("next.json");
    let line = format!("policy push shop fee {fee} {signing} --manifest-out {manifest}");
    let signature = command(&edge, &line).await;
    let shown = command(&edge, "policy show shop fee").await;
    assert_eq!(shown["versions"].as_array().unwrap().len(), 1, "it has pushed a version");
    let manifest = fs::read_to_string(manifest).unwrap();
    let mut upload = json!({"component": STANDARD.encode(component("tiered-fee")),
        "manifest": manifest, "signature": signature, "activate": false});
    let versions = "/admin/v1/partners/shop/policies/fee/versions";
    let mut at_once = upload.clone();
    at_once["activate"] = json!(true);
    edge.admin(Method::POST, versions, at_once).await.assert_status(422);
    edge.admin(Method::POST, versions, upload.clone()).await.assert_status(201);
    upload["manifest"] = json!(manifest.replace("\"version\":2", "\"version\":3"));
    edge.admin(Method::POST, versions, upload).await.assert_status(422);
    command(&edge, &format!("policy signer waive shop {signing}")).await;
}

/// A test client of the edge with high rates, its password in the folder, and a command line that
/// measures the edge as this client.
async fn bench(edge: &Edge, folder: &Folder) -> String {
    let ca = edge.setup().folder().join("cert.pem").display().to_string();
    let new = json!({"slug": "shop", "name": "Shop", "mode": "test"});
    let made = edge.admin(Method::POST, "/admin/v1/partners", new).await.assert_status(201).json();
    let rates = json!({"rateLimits": {"client": "100000/s", "quotes": "100000/s"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/shop", rates).await.assert_status(200);
    let password = folder.path().join("password");
    fs::write(&password, made["password"].as_str().unwrap()).unwrap();
    format!(
        "bench --url {} --ca {ca} --username shop --password {} --seconds 1 --connections 2 \
         --p99-ms 30000",
        edge.url(""),
        password.display()
    )
}

/// The calls that a measurement has come to.
fn calls(held: &Value) -> Vec<&str> {
    let calls = held["calls"].as_array().unwrap();
    calls.iter().map(|call| call["call"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_an_edge_holds_is_measured_as_a_test_client() {
    let (edge, folder) = (Edge::start().await, Folder::make());
    let line = bench(&edge, &folder).await;
    let held = command(&edge, &line).await;
    assert_eq!(calls(&held), ["prices", "quote", "purchase"]);
    let rows = held["calls"].as_array().unwrap();
    assert!(rows.iter().all(|call| call["perSecond"].as_u64() > Some(0)), "{held}");
    let orders = command(&edge, "order list --partner shop --limit 1").await;
    assert_eq!(orders.as_array().unwrap().len(), 1);

    let rates = json!({"rateLimits": {"client": "1/s burst 3"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/shop", rates).await.assert_status(200);
    let refused = until("the edge knows its new rates", SOON, async || {
        let output = edge.command(&line.split(' ').collect::<Vec<_>>()).await;
        let refused = String::from_utf8(output.stderr).unwrap();
        refused.contains("limits the rate (429)").then_some(refused)
    })
    .await;
    // That of an address, which comes first, is 50 a second by default.
    assert!(refused.contains("`ratelimit.address`"), "{refused}");
}

#[tokio::test]
async fn a_measurement_outlives_its_token_and_what_it_has_its_failure() {
    let edge = Edge::with(|setup| _ = setup.set("lifetimes.access_token_seconds", "4")).await;
    let folder = Folder::make();
    let line = bench(&edge, &folder).await;
    // Six loads of a second.
    let held = command(&edge, &line).await;
    assert_eq!(calls(&held), ["prices", "quote", "purchase"]);
    let long = line.replace("--seconds 1", "--seconds 4");
    let refused = refusal(&edge, &long).await;
    assert!(refused.contains("a token lives 4 seconds on this edge"), "{refused}");

    let _: Value = command(&edge, "payment-method set creditCard enabled=false").await;
    let failed = edge.command(&line.split(' ').collect::<Vec<_>>()).await;
    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8(failed.stderr).unwrap().contains("quote: the edge answers"));
    let held: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(calls(&held), ["prices"]);
}
