//! `GET /portal/policies/{kind}/versions/{version}`: the examination of a version, its dry run, its
//! shadow run and its log.

use http::{Method, StatusCode};
use maud::{Markup, html};
use rampart_plugins::contract::PolicyKind;
use serde_json::Value;

use super::{Authors, PATH, examination, label, name_of, path_of, state, target};
use crate::http::html::components::{Column, Tone, empty_state, note, stat, table, time, toast};
use crate::http::reply::Reply;
use crate::operate::admin::policies::history::{LoggedCall, Version, log, versions};
use crate::operate::admin::policies::trial::Trial;
use crate::operate::policy_differences::differences;
use crate::operate::portal::page::{DEVELOPERS, StaffPage, Visit};
use crate::partners::staff;
use crate::platform::error::Result;

/// Shows one version.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/policies/{kind}/versions/{version}";

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        page(visit, StatusCode::OK, None).await
    }
}

/// The kind and the number of the version that the path names.
pub(super) fn named(visit: &Visit<'_>) -> Option<(PolicyKind, i64)> {
    let kind = PolicyKind::from_name(visit.param("kind"))?;
    Some((kind, visit.param("version").parse().ok()?))
}

/// The page; `refusal` says why a dry run was not made.
pub(super) async fn page(
    visit: &Visit<'_>,
    status: StatusCode,
    refusal: Option<&str>,
) -> Result<Reply> {
    let Some((kind, number)) = named(visit) else { return Ok(visit.not_found()) };
    let (core, target) = (visit.core, target(visit, kind, ""));
    let all = versions(core, target).await?;
    let Some(version) = all.iter().find(|version| version.version == number) else {
        return Ok(visit.not_found());
    };
    let trial = Trial::find(core, target).await?;
    let mut log = log(core, target).await?;
    log.retain(|call| call.version == number);
    let mut conn = core.db.acquire().await?;
    let authors = Authors(staff::list(&mut conn, core, target.client).await?);
    drop(conn);
    let trial = trial.as_ref().filter(|trial| trial.version == number);
    let body = html! {
        p { a href=(PATH) { "All policies" } }
        @if let Some(refusal) = refusal { (toast(Tone::Bad, refusal)) }
        (facts(version, trial, &authors))
        h2 { "Examination" }
        (examination::passed())
        @if let Some(fuel) = version.sample_fuel {
            p.hint { "The most expensive sample took " (fuel) " fuel." }
        }
        (dry_run_button(visit, kind, number))
        @if let Some(trial) = trial { (trial_section(trial)) }
        h2 { "Log of live calls" }
        (log_section(&log))
    };
    let title = format!("{}: version {number}", label(kind));
    Ok(visit.page_with_status(status, PATH, &title, &body))
}

fn facts(version: &Version, trial: Option<&Trial>, authors: &Authors) -> Markup {
    let config = format!("{:#}", version.config);
    html! {
        (note(Tone::Info, &html! {
            "Operators activate versions, and take them back: the portal does not."
        }))
        dl {
            dt { "State" } dd { (state(version, trial)) }
            dt { "Name" } dd { (name_of(version)) }
            dt { "Summary" } dd { (version.info["summary"].as_str().unwrap_or_default()) }
            dt { "Component (SHA-256)" } dd { code { (version.digest) } }
            dt { "Size" } dd { (version.size) " bytes" }
            dt { "Made by" } dd { (authors.name(&version.created_by)) }
            dt { "Made" } dd { (time(version.created_at)) }
            @if let Some(reason) = &version.reason { dt { "Reason" } dd { (reason) } }
            @if let Some(signer) = &version.signed_by { dt { "Signed by" } dd { (signer) } }
            dt { "When it fails" } dd {
                @if version.fail_closed { "the request is refused" } @else { "as its kind is built in" }
            }
        }
        h2 { "Configuration" }
        pre tabindex="0" { (config) }
    }
}

fn dry_run_button(visit: &Visit<'_>, kind: PolicyKind, number: i64) -> Markup {
    let action = format!("{}/dry-run", path_of(kind, number));
    html! {
        h2 { "Dry run" }
        p { "Runs this version and the active one on your newest recorded requests, at most 100, without effect." }
        @if DEVELOPERS.contains(&visit.session.role) {
            (visit.button_to(&action, "Run it on recorded requests"))
        }
    }
}

/// The counts of a rollout and the newest differences.
fn trial_section(trial: &Trial) -> Markup {
    let users = match trial.percentage {
        Some(share) => format!("{share} %"),
        None => "none (shadow)".to_owned(),
    };
    html! {
        h2 { "Beside the active version since " (time(trial.started_at)) }
        div.stats {
            (stat("Users", &users, None))
            (stat("Calls", &trial.calls.to_string(), None))
            (stat("Same", &trial.same.to_string(), None))
            (stat("Different", &trial.different.to_string(), None))
            (stat("Failed", &trial.failed.to_string(), None))
            (stat("Skipped", &trial.skipped.to_string(), Some("without room to run them")))
        }
        (differences(&trial.differences))
    }
}

fn log_section(log: &[LoggedCall]) -> Markup {
    let columns = [Column::Text("When"), Column::Text("Request"), Column::Text("Lines")];
    let row =
        |call: &LoggedCall| vec![time(call.at), html! { code { (call.request_id) } }, lines(call)];
    let rows: Vec<_> = log.iter().map(row).collect();
    html! {
        @if rows.is_empty() {
            (empty_state("Nothing logged.", "The newest lines of live calls are kept here."))
        } @else {
            (table("Newest log lines", &columns, &rows))
        }
    }
}

fn lines(call: &LoggedCall) -> Markup {
    let text = |line: &Value, member: &str| line[member].as_str().unwrap_or_default().to_owned();
    html! {
        @for line in call.lines.as_array().into_iter().flatten() {
            (text(line, "level")) ": " (text(line, "text")) br;
        }
        @if call.lines_dropped > 0 { span.hint { "Lines dropped: " (call.lines_dropped) } }
    }
}
