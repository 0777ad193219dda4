//! The identity check, at the provider that its connector names, or by documents where there is none.
//! In the sandbox two buttons end it.

use maud::html;

use super::{Content, Visit, documents};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::money::connectors::identity::{IdentityCheck, start};
use crate::money::connectors::sandbox::checks::end_identity_check;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::checks::Hold;
use crate::trading::checks::requirement::Requirement;
use rampart_types::UserId;

/// The way to the provider. The first visit commands the check.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    typed: TypedForm<'_>,
) -> Result<Content> {
    let page = visit.url(core, Requirement::Check(Hold::Identity))?;
    let texts = visit.texts;
    visit.lock_sign_in(conn).await?;
    match start(conn, core, &visit.client.tenant, user, &page).await? {
        IdentityCheck::At(url) => Ok(html! {
            p { (texts.get("check-identity-provider")) }
            p { a.button href=(url) rel="noreferrer" { (texts.get("check-identity")) } }
        }
        .into()),
        IdentityCheck::Waits => Ok(Content {
            waits: true,
            ..html! { p { (texts.get("check-identity-prepared")) } }.into()
        }),
        IdentityCheck::Simulated { has_share_token, .. } => Ok(html! {
            @if has_share_token { p { (texts.get("check-identity-shared")) } }
            p { (texts.get("check-identity-test")) }
            form method="post" {
                button.main type="submit" name="outcome" value="verified" {
                    (texts.get("check-identity-pass"))
                }
                button type="submit" name="outcome" value="failed" {
                    (texts.get("check-identity-fail"))
                }
            }
        }
        .into()),
        IdentityCheck::NoProvider => documents::show(conn, visit, user, typed).await,
    }
}

/// Ends a check of a test client's user, which may be made again if it has failed; takes documents where
/// no provider checks.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let page = visit.url(core, Requirement::Check(Hold::Identity))?;
    let tenant = &visit.client.tenant;
    let mut tx = core.db.begin().await?;
    visit.lock_sign_in(&mut tx).await?;
    let check = start(&mut tx, core, tenant, user, &page).await?;
    if let IdentityCheck::Simulated { .. } = check {
        let is_verified = form.get("outcome") == "verified";
        end_identity_check(&mut tx, core, tenant, user, &page, is_verified).await?;
    }
    tx.commit().await?;
    match check {
        IdentityCheck::NoProvider => documents::submit(core, visit, user, form).await,
        _ => Ok(FormErrors::default()),
    }
}
