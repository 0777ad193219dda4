//! The identity check, at the provider that its connector names. In the sandbox two buttons end it.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::money::connectors::identity::{IdentityCheck, start};
use crate::money::connectors::sandbox::checks::end_identity_check;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::checks::Hold;
use rampart_types::UserId;

/// The way to the provider. The first visit commands the check.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Content> {
    let page = visit.url(core, Hold::Identity)?;
    let page = page.unwrap_or_default();
    let texts = visit.texts;
    match start(conn, core, (&visit.client.tenant, user), &page).await? {
        IdentityCheck::At(url) => Ok(html! {
            p { (texts.get("check-identity-provider")) }
            p { a.button href=(url) rel="noreferrer" { (texts.get("check-identity")) } }
        }
        .into()),
        IdentityCheck::Waits => Ok(Content {
            body: html! { p { (texts.get("check-identity-prepared")) } },
            waits: true,
        }),
        IdentityCheck::Simulated(_) => Ok(html! {
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
        IdentityCheck::NoProvider => Ok(html! {
            p { (texts.get("check-identity-documents")) }
            p { (visit.support_link("support-link")) }
        }
        .into()),
    }
}

/// Ends a simulated check. One that has failed may be made again.
pub(super) async fn submit(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<Option<&'static str>> {
    if !visit.client.tenant.is_test() {
        return Ok(None);
    }
    let page = visit.url(core, Hold::Identity)?;
    let of = (&*visit.client.tenant, user);
    let outcome = (&*page.unwrap_or_default(), form.get("outcome") == "verified");
    end_identity_check(conn, core, of, outcome).await?;
    Ok(None)
}
