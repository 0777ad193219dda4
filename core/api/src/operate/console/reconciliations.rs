//! Reconciliations: the list, one with its differences, and the upload of a statement.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use maud::{Markup, html};
use url::form_urlencoded;

use super::action::Subject;
use super::form::{Input, Typed};
use super::layout::{Page, render};
use super::list::{List, titled_table};
use super::sign_in::redirect;
use super::submission::Submission;
use super::view::{Cell, facts};
use super::visit::{Refused, Visit, segment};
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, error_summary, field, toast};
use crate::http::reply::Reply;
use crate::platform::error::Result;
use crate::policies::manifest::digest_hex;

const SECTION: &str = "/console/ledger";
/// Path of the page with the form.
pub(super) const UPLOAD: &str = "/console/ledger/reconciliations/~/upload";
const CALL: &str = "/admin/v1/reconciliations";
const CONNECTOR: Input = Input::new("connector", "Connector")
    .hint("The program whose account the statement is of.")
    .required();

/// The list, newest first.
pub(super) const LIST: List = List {
    title: "Reconciliations",
    section: SECTION,
    page: "/console/ledger/reconciliations",
    call: CALL,
    criteria: &[Input::new("connector", "Connector")],
    columns: &[
        ("Made", Cell::Time("/createdAt")),
        ("Reconciliation", Cell::Link("/console/ledger/reconciliations/", "/id")),
        ("Connector", Cell::Text("/connector")),
        ("By", Cell::Text("/actor")),
        ("Matched", Cell::Text("/matched")),
        ("Recorded", Cell::Text("/recorded")),
        ("Differences", Cell::Count("/differences")),
    ],
    empty: "No reconciliation meets these criteria.",
};

pub(super) const RECONCILIATION: Subject = Subject {
    name: "reconciliation",
    section: SECTION,
    page: "/console/ledger/reconciliations/{id}",
    read: "/admin/v1/reconciliations/{id}",
    facts: &[
        ("Connector", Cell::Text("/connector")),
        ("Matched lines", Cell::Text("/matched")),
        ("Recorded lines", Cell::Text("/recorded")),
        ("Made", Cell::Time("/createdAt")),
    ],
    actions: &[],
};

/// Differences of one as a list.
pub(super) const DIFFERENCES: List = List {
    title: "Differences of",
    section: SECTION,
    page: "/console/ledger/reconciliations/{id}/~/differences",
    call: "/admin/v1/reconciliations/{id}#/differences",
    criteria: &[],
    columns: &[
        ("Found in", Cell::Badge("/side")),
        ("Reference", Cell::Text("/providerReference")),
        ("Amount", Cell::Money("/amount", "/currency")),
        ("By the books", Cell::Money("/bookedAmount", "/currency")),
    ],
    empty: "Statement and books agree.",
};

/// The page of a reconciliation.
pub(super) async fn show(visit: &Visit<'_>, id: &str) -> Result<Page, Refused> {
    let read = visit.get(&format!("{CALL}/{}", segment(id))).await?;
    let differences = read["differences"].as_array().cloned().unwrap_or_default();
    let body = html! {
        (facts(visit, &read, RECONCILIATION.facts))
        @if differences.is_empty() { (toast(Tone::Good, "Statement and books agree.")) }
        @if !differences.is_empty() {
            p.hint {
                "Found in the statement alone, in the books alone, or in both with another amount; at \
                 most 1000."
                @if read["hasMore"] == true {
                    " There are more than these: they stand neither here nor in the file."
                }
            }
        }
        (titled_table(visit, "Differences", &differences, DIFFERENCES.columns))
        @if !differences.is_empty() {
            (DIFFERENCES.export(&[id.to_owned()], &Typed::default()))
        }
        p { a href="/console/ledger/reconciliations" { "All reconciliations" } }
    };
    Ok(Page::new("Reconciliation", SECTION, body))
}

/// The way to the form, for who may upload a statement.
pub(super) fn link_to_upload(visit: &Visit<'_>) -> Markup {
    html! {
        @if visit.may(&Method::POST, CALL) { p { a.action href=(UPLOAD) { "Upload a statement" } } }
    }
}

/// Shows the form of a statement.
///
/// # Errors
/// Without entropy.
pub(super) fn show_form(visit: &Visit<'_>) -> Result<Reply> {
    if !visit.may(&Method::POST, CALL) {
        return render(visit, &Page::refused(&not_permitted()));
    }
    form(visit, &Typed::default(), StatusCode::OK, None, &[])
}

/// Takes the form: a statement is laid beside the books, once.
pub(super) async fn submit(visit: &Visit<'_>, body: &Bytes) -> Result<Reply> {
    if !visit.may(&Method::POST, CALL) {
        return render(visit, &Page::refused(&not_permitted()));
    }
    let sent = Form::read_with_files(&visit.head.headers, body);
    let (connector, statement) = (sent.get("connector").trim(), sent.file("statement"));
    let mut typed = Typed::default();
    typed.set("connector", connector.to_owned());
    let content = (connector, digest_hex(statement));
    let Some(submission) = Submission::of(visit, sent.get("csrfToken"), &content) else {
        let reason = "This form is of an earlier sign-in, or not of this page: nothing was done.";
        return form(visit, &typed, StatusCode::FORBIDDEN, Some(reason), &[]);
    };
    let missing = [
        ("connector", "Connector is missing", connector.is_empty()),
        ("statement", "Statement is missing", statement.is_empty()),
    ];
    let missing = missing.into_iter().filter(|(.., is_missing)| *is_missing);
    let missing: Vec<_> = missing.map(|(name, text, _)| (name, text)).collect();
    if !missing.is_empty() {
        return form(visit, &typed, StatusCode::UNPROCESSABLE_ENTITY, None, &missing);
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("connector", connector)
        .finish();
    let file = (HeaderValue::from_static("application/octet-stream"), statement.to_vec().into());
    let url = format!("{CALL}?{query}");
    let call = visit.send(Method::POST, &url, Some(file));
    let Some(reply) = submission.once(true, call).await? else {
        let reason = "This form was sent before, and counts once. Look at the reconciliations \
                      before you send it again.";
        return form(visit, &typed, StatusCode::CONFLICT, Some(reason), &[]);
    };
    match Refused::of(&reply) {
        Some(refused) => form(visit, &typed, refused.status, Some(&refused.reason), &[]),
        None => {
            let made: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let id = segment(made["id"].as_str().unwrap_or_default());
            Ok(redirect(&format!("{}/{id}", LIST.page)))
        }
    }
}

fn not_permitted() -> Refused {
    let reason = "“Upload a statement” is not for your role.".to_owned();
    Refused { status: StatusCode::FORBIDDEN, reason }
}

/// The page of the form, with a token of its own, what was typed, and what is wrong with it.
fn form(
    visit: &Visit<'_>,
    typed: &Typed,
    status: StatusCode,
    above: Option<&str>,
    errors: &[(&str, &str)],
) -> Result<Reply> {
    let csrf_token = visit.session.form_token(visit.core)?;
    let error = |name: &str| errors.iter().find(|(at, _)| *at == name).map(|(_, text)| *text);
    let statement = Field {
        kind: "file",
        hint: Some(
            "camt.053, or CSV with the columns date, amount, currency, reference, \
             providerReference, name, iban, endToEndId and returnReason; at most 10000 lines and \
             4 MiB.",
        ),
        error: error("statement"),
        ..Field::text("statement", "Statement")
    };
    let body = html! {
        @if let Some(above) = above { (toast(Tone::Bad, above)) }
        (error_summary("Please correct this", errors))
        p {
            "Its lines are matched to the connector's payments. Money that came in and is in no \
             payment becomes one, for the order whose number its payer has written. Above the \
             limit of one operator it waits among the payments to be matched; what else differs \
             is listed."
        }
        form method="post" action=(UPLOAD) enctype="multipart/form-data" novalidate {
            input type="hidden" name="csrfToken" value=(csrf_token);
            (CONNECTOR.show(typed, error("connector")))
            (field(&statement))
            div.row {
                button.main { "Upload a statement" }
                a href=(LIST.page) { "Back without doing it" }
            }
        }
    };
    render(visit, &Page { status, ..Page::new("Upload a statement", SECTION, body) })
}
