//! `POST /portal/policies/{kind}/versions/{version}/dry-run`: a version beside the active one on the
//! partner's recorded requests.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::json;

use super::{PATH, label, path_of, target, version};
use crate::http::html::components::{Tone, note, stat};
use crate::http::reply::Reply;
use crate::operate::policy_differences::comparison;
use crate::operate::portal::page::{DEVELOPERS, StaffPage, Visit};
use crate::partners::staff::StaffRole;
use crate::platform::error::Result;
use crate::policies::dry_run::comparison::{ComparedOutcome, Comparison, compare};
use crate::policies::lifecycle::LifecycleError;

/// Runs the version and shows the result.
pub struct Run;

impl StaffPage for Run {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/policies/{kind}/versions/{version}/dry-run";
    const ROLES: &'static [StaffRole] = DEVELOPERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Some((kind, number)) = version::named(visit) else { return Ok(visit.not_found()) };
        let compared = match compare(visit.core, target(visit, kind, ""), number).await {
            Ok(compared) => compared,
            Err(LifecycleError::NotFound(_)) => return Ok(visit.not_found()),
            Err(LifecycleError::Conflict(reason)) => {
                let refusal = format!("No dry run: {reason}.");
                return version::page(visit, StatusCode::CONFLICT, Some(&refusal)).await;
            }
            Err(error) => return Err(error.into()),
        };
        let detail = json!({
            "kind": kind.as_str(), "version": number, "requests": compared.requests.len(),
        });
        let mut tx = visit.begin().await?;
        visit.record(&mut tx, "policy.dry-run", detail).await?;
        tx.commit().await?;
        let title = format!("Dry run of version {number}: {}", label(kind));
        let back = path_of(kind, number);
        let body = html! {
            p { a href=(back) { "To the version" } }
            (result(&compared))
        };
        Ok(visit.page(PATH, &title, &body))
    }
}

fn result(compared: &Comparison) -> Markup {
    let count = |outcome: ComparedOutcome| {
        let counted = compared.requests.iter().filter(|request| request.outcome == outcome);
        counted.count().to_string()
    };
    html! {
        @match compared.active {
            Some(active) => {
                p { "Beside version " (active) ", which is active. Nothing was changed." }
            }
            None => {
                (note(Tone::Info, &html! {
                    "No version is active: the built-in rule serves, and is not compared."
                }))
            }
        }
        div.stats {
            (stat("Requests", &compared.requests.len().to_string(), None))
            (stat("Same", &count(ComparedOutcome::Same), None))
            (stat("Different", &count(ComparedOutcome::Different), None))
            (stat("Failed", &count(ComparedOutcome::Failed), None))
        }
        h2 { "Recorded requests" }
        @for (number, request) in (1_usize..).zip(&compared.requests) {
            (comparison(number, request.outcome, &request.detail))
        }
    }
}
