//! The team page, for owners: `GET` and `POST /portal/team`, `POST /portal/team/{id}/remove`.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use super::page::{FORM_ERRORS, OWNERS, StaffPage, Visit, done};
use crate::http::html::choice::select;
use crate::http::html::components::{
    Column, Field, Tone, badge, dialog, error_summary, field, table, time,
};
use crate::http::reply::Reply;
use crate::partners::staff::invitation::{Invited, invite};
use crate::partners::staff::sign_in::count_mail;
use crate::partners::staff::{self, StaffMember, StaffRole};
use crate::platform::error::{Error, Result};
use rampart_types::{EmailAddress, StaffId};

const PATH: &str = "/portal/team";
const ROLES: [(&str, &str); 3] = [
    ("developer", "Developer: keys, webhooks, events, sandbox"),
    ("support", "Support: orders and users"),
    ("owner", "Owner: everything, and the team"),
];

const MAILED_ENOUGH: &str =
    "This address has had enough mail from us for now. Try again in an hour.";

/// Shows the team.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = OWNERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        page(visit, None).await
    }
}

/// Invites somebody.
pub struct Invite;

impl StaffPage for Invite {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = OWNERS;
    const ACTION: Option<&'static str> = Some("Invite somebody");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(email) = visit.form().get("email").trim().parse::<EmailAddress>() else {
            return page(visit, Some("This is not an e-mail address.")).await;
        };
        let Some(role) = StaffRole::from_name(visit.form().get("role")) else {
            return Ok(visit.not_found());
        };
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, PATH).await?.is_some() {
            return Ok(done(PATH, "invited"));
        }
        match count_mail(&mut tx, visit.core, &visit.session.client, &email, "invitation").await {
            Ok(()) => {}
            Err(Error::Refused(refusal)) => {
                // The page reads over a connection of its own.
                tx.rollback().await?;
                let mut reply = page(visit, Some(MAILED_ENOUGH)).await?;
                reply.status = StatusCode::TOO_MANY_REQUESTS;
                refusal.set_headers(&mut reply);
                return Ok(reply);
            }
            Err(error) => return Err(error),
        }
        let tenant = &visit.session.client.tenant;
        let error = match invite(&mut tx, visit.core, tenant, &email, role).await? {
            Invited::Sent(id) => {
                visit.record(&mut tx, "staff.invite", json!({"staffId": id, "role": role})).await?;
                tx.commit().await?;
                return Ok(done(PATH, "invited"));
            }
            Invited::Joined => "This address is of a member already.",
            Invited::Full => "A team has at most 100 people.",
        };
        // The page reads over a connection of its own.
        tx.rollback().await?;
        page(visit, Some(error)).await
    }
}

/// Removes somebody else.
pub struct Remove;

impl StaffPage for Remove {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/portal/team/{id}/remove";
    const ROLES: &'static [StaffRole] = OWNERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let (client, id) = (visit.session.client.id(), StaffId::from(id));
        let mut tx = visit.begin().await?;
        if visit.earlier_result(&mut tx, Self::PATH).await?.is_some() {
            return Ok(done(PATH, "removed"));
        }
        if !staff::remove(&mut tx, client, id, Some(visit.session.staff)).await? {
            return Ok(visit.not_found());
        }
        visit.record(&mut tx, "staff.remove", json!({ "staffId": id })).await?;
        tx.commit().await?;
        Ok(done(PATH, "removed"))
    }
}

/// The page; `error` is about the address of an invitation that was not sent.
async fn page(visit: &Visit<'_>, error: Option<&str>) -> Result<Reply> {
    let mut conn = visit.core.db.acquire().await?;
    let members = staff::list(&mut conn, visit.core, visit.session.client.id()).await?;
    drop(conn);
    let columns = [
        Column::Text("Address"),
        Column::Text("Role"),
        Column::Text("State"),
        Column::Text("Second factor"),
        Column::Text("Invited"),
        Column::Text("Action"),
    ];
    let rows: Vec<_> = members.iter().map(|member| row(visit, member)).collect();
    let email = Field {
        kind: "email",
        value: if error.is_some() { visit.form().get("email") } else { "" },
        error,
        ..Field::text("email", "E-mail address")
    };
    let errors: Vec<_> = error.iter().map(|error| ("email", *error)).collect();
    let chosen = visit.form().get("role");
    let body = html! {
        (table("People who may sign in", &columns, &rows))
        h2 { "Invite somebody" }
        (error_summary(FORM_ERRORS, &errors))
        (visit.form_to(PATH, &html! {
            (field(&email))
            (select("role", "Role", if chosen.is_empty() { "developer" } else { chosen }, &ROLES))
            button.main type="submit" { "Mail the invitation" }
        }))
    };
    let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Ok(visit.page_with_status(status, PATH, "Team", &body))
}

fn row(visit: &Visit<'_>, member: &StaffMember) -> Vec<Markup> {
    let state = match member.joined {
        true => badge(Tone::Good, "joined"),
        false => badge(Tone::Warning, "invited"),
    };
    let factor = if member.second_factor { "yes" } else { "no" };
    let remove = html! {
        p { (member.address()) " is signed out at once and cannot sign in any more." }
        (visit.form_to(
            &format!("{PATH}/{}/remove", member.id),
            &html! { button.danger type="submit" { "Remove" } },
        ))
    };
    let action = match member.id == visit.session.staff {
        true => html! { span.hint { "you" } },
        false => dialog("Remove", &remove),
    };
    vec![
        html! { (member.address()) },
        html! { (member.role.as_str()) },
        state,
        html! { (factor) },
        time(member.created_at),
        action,
    ]
}
