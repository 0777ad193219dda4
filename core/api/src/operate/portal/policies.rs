//! The partner's policies: `GET /portal/policies` lists versions by kind and refused uploads, and has
//! the form of an upload. `version`: one version; `upload`: uploads; `dry_run`: dry runs. Operators
//! activate versions, the portal does not.

pub mod dry_run;
mod examination;
pub mod upload;
pub mod version;

use http::{Method, StatusCode};
use maud::{Markup, html};
use rampart_plugins::contract::PolicyKind;
use uuid::Uuid;

use super::page::{FORM_ERRORS, StaffPage, Visit};
use crate::http::html::components::{
    Column, Tone, badge, empty_state, error_summary, short_address, table, time, toast,
};
use crate::http::reply::Reply;
use crate::operate::admin::policies::history::{Version, versions};
use crate::operate::admin::policies::trial::Trial;
use crate::partners::staff::{self, StaffMember};
use crate::platform::error::Result;
use crate::policies::lifecycle::{RefusedUpload, Target, UploadTerms, refused_uploads};
use rampart_types::StaffId;

pub(super) const PATH: &str = "/portal/policies";

/// Lists the policies.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        page(visit, StatusCode::OK, None, &[]).await
    }
}

/// The page, with the errors of an upload that was refused, or the `reason` of a refusal that is about
/// none of its fields.
async fn page(
    visit: &Visit<'_>,
    status: StatusCode,
    reason: Option<&str>,
    errors: &[(&str, &str)],
) -> Result<Reply> {
    let (core, client) = (visit.core, visit.session.client.id());
    let mut conn = core.db.acquire().await?;
    let authors = Authors(staff::list(&mut conn, core, client).await?);
    let terms = UploadTerms::find(core, &mut conn, client).await?;
    let refused = refused_uploads(&mut conn, client, None).await?;
    drop(conn);
    let mut sections = Vec::new();
    for kind in PolicyKind::ALL {
        let target = target(visit, kind, "");
        let trial = Trial::find(core, target).await?;
        sections.push(section(kind, &versions(core, target).await?, trial.as_ref(), &authors));
    }
    let body = html! {
        p {
            "Policies replace built-in rules for your users. Operators activate versions: what is "
            "uploaded here serves nobody until one of them does."
        }
        @for section in &sections { (section) }
        @if !refused.is_empty() {
            h2 { "Refused uploads" }
            (refused_table(&refused, &authors))
        }
        h2 #upload { "Upload a version" }
        @if let Some(reason) = reason { (toast(Tone::Bad, reason)) }
        (error_summary(FORM_ERRORS, errors))
        (upload::form(visit, &terms, errors))
    };
    Ok(visit.page_with_status(status, PATH, "Policies", &body))
}

/// One kind: its active version, and all versions.
fn section(
    kind: PolicyKind,
    versions: &[Version],
    trial: Option<&Trial>,
    authors: &Authors,
) -> Markup {
    let columns = [
        Column::Text("Version"),
        Column::Text("State"),
        Column::Text("Name"),
        Column::Text("Component"),
        Column::Text("By"),
        Column::Text("Made"),
    ];
    let row = |version: &Version| {
        vec![
            html! { a href=(path_of(kind, version.version)) { (version.version) } },
            state(version, trial),
            html! { (name_of(version)) },
            short_address(&version.digest),
            html! { (authors.name(&version.created_by)) },
            time(version.created_at),
        ]
    };
    let rows: Vec<_> = versions.iter().map(row).collect();
    html! {
        h2 { (label(kind)) }
        @if !versions.iter().any(|version| version.active) {
            p { (badge(Tone::Neutral, "built-in rule")) " No version is active." }
        }
        @if rows.is_empty() {
            (empty_state("No version yet.", "What is uploaded or activated is listed here."))
        } @else {
            (table(&format!("Versions: {}", label(kind)), &columns, &rows))
        }
    }
}

fn refused_table(refused: &[RefusedUpload], authors: &Authors) -> Markup {
    let columns = [
        Column::Text("When"),
        Column::Text("Kind"),
        Column::Text("Component"),
        Column::Text("By"),
        Column::Text("Reason"),
    ];
    let row = |upload: &RefusedUpload| {
        vec![
            html! { a href={ (PATH) "/uploads/" (upload.id) } { (time(upload.created_at)) } },
            html! { (upload.kind) },
            short_address(&upload.digest),
            html! { (authors.member(upload.staff)) },
            html! { (upload.reason) },
        ]
    };
    let rows: Vec<_> = refused.iter().map(row).collect();
    table("Refused uploads", &columns, &rows)
}

/// The policy of this kind of the session's partner; `actor` is the author of a change.
fn target<'a>(visit: &'a Visit<'_>, kind: PolicyKind, actor: &'a str) -> Target<'a> {
    let client = &visit.session.client;
    Target {
        actor,
        slug: &client.tenant.slug,
        client: client.id(),
        kind,
        reason: None,
        signed: None,
        is_approved: false,
        approval: None,
    }
}

fn path_of(kind: PolicyKind, version: i64) -> String {
    format!("{PATH}/{}/versions/{version}", kind.as_str())
}

const fn label(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Signature => "Signatures of requests",
        PolicyKind::Fee => "Fees",
        PolicyKind::MethodOrder => "Order of payment methods",
    }
}

/// The component's own name and version.
fn name_of(version: &Version) -> String {
    let text = |member: &str| version.info[member].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("name"), text("version"))
}

/// The state of a version. One that is stored has passed its examination.
fn state(version: &Version, trial: Option<&Trial>) -> Markup {
    let trial = trial.filter(|trial| trial.version == version.version);
    match trial.map(|trial| trial.percentage) {
        _ if version.active => badge(Tone::Good, "active"),
        Some(None) => badge(Tone::Info, "shadow"),
        Some(Some(share)) => badge(Tone::Info, &format!("canary: {share} % of the users")),
        None if version.rolled_back => badge(Tone::Warning, "rolled back"),
        None => badge(Tone::Neutral, "examined"),
    }
}

/// People of the partner, by whom an author is named; operators are named by nobody here.
struct Authors(Vec<StaffMember>);

impl Authors {
    /// The author of a version.
    fn name(&self, created_by: &str) -> &str {
        match created_by.strip_prefix("staff:") {
            Some(id) => id.parse::<Uuid>().map_or(FORMER, |id| self.member(id.into())),
            None => "operator",
        }
    }

    fn member(&self, id: StaffId) -> &str {
        let member = self.0.iter().find(|member| member.id == id);
        member.map_or(FORMER, StaffMember::address)
    }
}

const FORMER: &str = "a former member";
