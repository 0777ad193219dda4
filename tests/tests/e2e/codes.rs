//! One table: every code that a partner can meet, with every status that it has, and a request that
//! provokes it through the TLS edge. A code without a row fails, and so does a row that is answered
//! anything else.

mod clients;
mod confirms;
mod failures;
mod fixtures;
mod offers;
mod orders;
mod quotes;
mod users;
mod verification;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use rampart_tests::answer::Answer;
use rampart_tests::caller::Request;
use serde_json::Value;

use self::fixtures::Fixtures;

/// Statuses of the codes that have several (section 13 of the contract). Each other code has the
/// one that the catalogue tells.
const SEVERAL: [(&str, &[u16]); 4] = [
    ("ER048", &[400, 413, 414, 431]),
    ("ER078", &[400, 413]),
    ("ER998", &[404, 405]),
    ("ER999", &[404, 409, 422, 500, 503]),
];

/// The member that each of these codes is about, whichever request provokes it.
const FIELDS: [(&str, &str); 13] = [
    ("ER006", "quote"),
    ("ER007", "quote"),
    ("ER009", "quote"),
    ("ER017", "quote"),
    ("ER086", "iban"),
    ("ER087", "iban"),
    ("ER090", "emailCode"),
    ("ER138", "accountIdentifier"),
    ("ER139", "accountIdentifier"),
    ("ER380", "accountIdentifier"),
    ("ER396", "accountIdentifier"),
    ("ER397", "accountIdentifier"),
    ("ER398", "accountIdentifier"),
];

/// A row of the table.
struct Row {
    code: &'static str,
    status: u16,
    /// Description of the mistake in the request.
    wrong: &'static str,
    /// The `X-Request-Id` of the request, if it has one.
    request_id: Option<String>,
    answer: Pin<Box<dyn Future<Output = Answer>>>,
}

impl Row {
    /// A request that is answered 400.
    fn new(code: &'static str, wrong: &'static str, request: Request) -> Self {
        let request_id = format!("row.{code}.{}", wrong.len());
        let request = request.header("x-request-id", &request_id);
        Self { request_id: Some(request_id), ..Self::of(code, wrong, request.send()) }
    }

    /// A request that takes more than one call to make.
    fn of(
        code: &'static str,
        wrong: &'static str,
        answer: impl Future<Output = Answer> + 'static,
    ) -> Self {
        Self { code, status: 400, wrong, request_id: None, answer: Box::pin(answer) }
    }

    /// Is answered with this status instead.
    fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

/// The error catalogue as the edge serves it, by code.
async fn catalogue(fixtures: &Fixtures) -> BTreeMap<String, Value> {
    let entries = fixtures.shop.get("/api/v2/system/errors").await.assert_status(200).json();
    let entries = entries.as_array().unwrap().iter();
    entries.map(|entry| (entry["code"].as_str().unwrap().to_owned(), entry.clone())).collect()
}

/// Every code with every status that it has.
fn wanted(catalogue: &BTreeMap<String, Value>) -> BTreeSet<(String, u16)> {
    let several: BTreeMap<_, _> = SEVERAL.into();
    let mut wanted = BTreeSet::new();
    for (code, entry) in catalogue {
        let status = u16::try_from(entry["status"].as_u64().unwrap()).unwrap();
        let all = several.get(code.as_str()).map_or_else(|| vec![status], |all| all.to_vec());
        assert!(all.contains(&status), "{code} {status}");
        wanted.extend(all.into_iter().map(|status| (code.clone(), status)));
    }
    wanted
}

/// The differences between an answer and its row; empty if there are none.
fn unlike(
    code: &str,
    status: u16,
    request_id: Option<&str>,
    answer: &Answer,
    entry: Option<&Value>,
) -> String {
    if answer.status() != status || answer.codes() != [code] {
        return format!("{} {}", answer.status(), answer.text());
    }
    let Some(entry) = entry else { return "not in the catalogue".to_owned() };
    let error = &answer.json()["errors"][code];
    let solution = error["solution"].as_str().unwrap();
    let rest = solution.strip_prefix(entry["solution"].as_str().unwrap());
    let named = rest.is_some_and(|rest| {
        rest.is_empty() || (rest.starts_with(" (") && rest.ends_with(')') && rest.len() > 3)
    });
    let sent_back = request_id.is_none() || answer.header("x-request-id") == request_id;
    let can_wait = matches!(status, 429 | 503) == answer.header("retry-after").is_some();
    let members: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
    let required = ["code", "message", "solution", "documentation"];
    let members_fit = required.iter().all(|name| members.contains(name))
        && members.iter().all(|name| required.contains(name) || *name == "field");
    let field = FIELDS.iter().find(|(about, _)| *about == code).map(|(_, field)| *field);
    let mut unlike = String::new();
    for (fits, what) in [
        (error["message"] == entry["message"], "message"),
        (named, "solution"),
        (members_fit, "members"),
        (field.is_none_or(|field| error["field"] == field), "field"),
        (sent_back, "X-Request-Id"),
        (can_wait, "Retry-After"),
        ((status == 405) == answer.header("allow").is_some(), "Allow"),
        (answer.header("content-type") == Some("application/json"), "Content-Type"),
        (answer.header("cache-control") == Some("no-store"), "Cache-Control"),
    ] {
        if !fits {
            unlike += &format!("{what} ");
        }
    }
    unlike
}

#[tokio::test]
async fn every_code_is_answered_to_a_request_that_provokes_it() {
    let fixtures = Fixtures::set().await;
    let mut rows = clients::rows(&fixtures).await;
    rows.extend(users::rows(&fixtures).await);
    rows.extend(verification::rows(&fixtures).await);
    rows.extend(quotes::rows(&fixtures).await);
    rows.extend(offers::rows(&fixtures).await);
    rows.extend(confirms::rows(&fixtures).await);
    rows.extend(orders::rows(&fixtures).await);
    rows.extend(failures::rows(&fixtures).await);

    let catalogue = catalogue(&fixtures).await;
    let (mut seen, mut report) = (BTreeSet::new(), String::new());
    for Row { code, status, wrong, request_id, answer } in rows {
        seen.insert((code.to_owned(), status));
        let (answer, entry) = (answer.await, catalogue.get(code));
        let unlike = unlike(code, status, request_id.as_deref(), &answer, entry);
        if !unlike.is_empty() {
            report += &format!("{code} {status} ({wrong}): {unlike}\n");
        }
    }
    let wanted = wanted(&catalogue);
    for (code, status) in wanted.difference(&seen) {
        report += &format!("{code} {status}: no row provokes it\n");
    }
    for (code, status) in seen.difference(&wanted) {
        report += &format!("{code} {status}: not in the catalogue\n");
    }
    assert!(report.is_empty(), "\n{report}");
}
