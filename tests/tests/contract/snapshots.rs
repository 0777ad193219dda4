//! Snapshots of every endpoint's answer to a granted request: a file for each family of endpoints,
//! reviewed with every change. The requests are those of the matrix of tenants.
//!
//! Values that differ from run to run (ids, times, tokens) are written as `<what it is>`.

mod normal;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use http::Method;
use rampart_api::ENDPOINTS;
use rampart_core::endpoint::Route;
use rampart_tests::answer::Answer;
use serde_json::{Value, json};

use self::normal::normal;
use crate::tenants::{Cast, Named, Owner, Row, row, target};

/// With this variable set, the files are written instead of compared.
const ACCEPT: &str = "RAMPART_ACCEPT";
/// The snapshots' folder, relative to this package's folder.
const FOLDER: &str = "fixtures/answers";
/// The endpoint with a reviewed file of its own: `fixtures/openapi.json`.
const ELSEWHERE: &str = "/openapi.json";

/// The family of an endpoint: its file's name.
fn family(route: &Route) -> &'static str {
    let path = route.path;
    let families = [
        ("/api/v1/authenticate", "clients"),
        ("/api/v1/refresh", "clients"),
        ("/verif", "verification"),
        ("/user/accounts", "verification"),
        ("/user/limit", "verification"),
        ("/sandbox", "sandbox"),
        ("/sell/", "selling"),
        ("/buy/", "buying"),
        ("dca-codes", "savings"),
        ("/events", "webhooks"),
        ("/webhooks", "webhooks"),
        ("/user", "users"),
        ("/wallets/", "buying"),
        ("/api/", "market"),
        ("/.well-known/", "market"),
    ];
    let found = families.into_iter().find(|(part, _)| path.contains(part));
    found.unwrap_or_else(|| panic!("{route:?} is of no family")).1
}

/// A request of this endpoint that is granted.
async fn asked(cast: &Cast, route: &Route) -> Named {
    let named = |body| Named { path: route.path.to_owned(), body };
    match route.path {
        "/api/v1/authenticate" => {
            named(json!({"username": cast.acme.username, "password": cast.acme.password}))
        }
        "/api/v1/refresh" => {
            named(json!({"refreshToken": cast.ann.log_in().await["refreshToken"]}))
        }
        _ => match row(route) {
            Row::Names(resources) => cast.name(route, resources[0].0, Owner::Ann, &cast.acme).await,
            row => Named { path: target(route), body: row.body(cast) },
        },
    }
}

/// Asks as the partner, for Ann.
async fn granted(cast: &Cast, route: &Route, token: &str) -> (Named, Answer) {
    let named = asked(cast, route).await;
    let request = cast.acme.anonymous(route.method.clone(), &named.path);
    let request = if named.body.is_null() { request } else { request.json(&named.body) };
    let request = if route.client {
        let request =
            request.header("authorization", &format!("Bearer {}", cast.acme.token().await));
        request.header("user-authorization", token)
    } else {
        request
    };
    let answer = request.send().await;
    assert!(answer.status() < 300, "{route:?}: {}", answer.text());
    (named, answer)
}

/// The family's answers, in the order of the endpoints.
async fn answers(routes: &[&'static Route]) -> String {
    let cast = Cast::gather().await;
    let mut text = String::new();
    for route in routes {
        let token = cast.ann.log_in().await;
        let token = format!("Bearer {}", token["token"].as_str().unwrap());
        let (named, answer) = granted(&cast, route, &token).await;
        let kind = answer.header("content-type").unwrap_or("no content");
        let _ = writeln!(text, "{} {}", route.method, route.path);
        if !named.body.is_null() {
            let _ = writeln!(text, "> {}", normal(&named.body));
        }
        let _ = writeln!(text, "< {} {kind}", answer.status());
        text += &lines(&normal(&answer.json()));
        text.push('\n');
        // Logins of one address are few a minute.
        cast.context.clock().advance(chrono::TimeDelta::seconds(1));
    }
    text
}

/// A list has a line for each of its items, an object one for each of its members.
fn lines(body: &Value) -> String {
    match body {
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(|item| format!("- {item}\n")).collect(),
        body => serde_json::to_string_pretty(body).unwrap() + "\n",
    }
}

fn families() -> BTreeMap<&'static str, Vec<&'static Route>> {
    let mut families: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for route in ENDPOINTS.iter().filter(|route| route.path != ELSEWHERE) {
        families.entry(family(route)).or_default().push(route);
    }
    families
}

fn file(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER).join(family).with_extension("txt")
}

/// The first line in which two texts differ.
fn difference(reviewed: &str, now: &str) -> String {
    let lines = reviewed.lines().zip(now.lines()).enumerate();
    let first = lines.clone().find(|(_, (a, b))| a != b);
    match first {
        Some((at, (was, is))) => format!("line {}:\n- {was}\n+ {is}", at + 1),
        None => format!("{} lines, {} before", now.lines().count(), reviewed.lines().count()),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
#[tokio::test]
async fn every_answer_is_the_reviewed_one() {
    let mut report = String::new();
    for (family, routes) in families() {
        let (file, now) = (file(family), answers(&routes).await);
        if env::var_os(ACCEPT).is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &now).unwrap();
            continue;
        }
        let reviewed = fs::read_to_string(&file).unwrap_or_default();
        if reviewed != now {
            let _ = writeln!(report, "{family}.txt, {}", difference(&reviewed, &now));
        }
    }
    assert!(
        report.is_empty(),
        "answers have changed. If that is meant, run this test with {ACCEPT}=1 and commit \
         tests/{FOLDER}:\n{report}"
    );
}

#[test]
fn every_endpoint_is_in_a_reviewed_file() {
    for (family, routes) in families() {
        let reviewed = fs::read_to_string(file(family)).unwrap();
        for route in routes {
            let line = format!("{} {}\n", route.method, route.path);
            assert!(reviewed.contains(&line), "{route:?} is not in {family}.txt");
        }
    }
    assert_eq!(
        ENDPOINTS.iter().filter(|r| r.path == ELSEWHERE && r.method == Method::GET).count(),
        1
    );
}
