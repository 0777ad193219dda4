//! An image that proves the residential address, which an operator looks at.

use maud::html;

use super::documents::{PROOF, proof_form, read_image};
use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::FormErrors;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::documents::{self, ADDRESS_PROOF, Document, has_address_proof};
use rampart_types::UserId;

/// The form, until a proof has come.
pub(super) async fn show(
    conn: &mut Connection,
    visit: &Visit,
    user: UserId,
    errors: &FormErrors,
) -> Result<Content> {
    let sides = documents::sides(conn, visit.client.key_of(user)).await?;
    if has_address_proof(&sides) {
        return Ok(html! { p { (visit.texts.get("check-document-received")) } }.into());
    }
    let (intro, label) = ("check-address-proof-intro", "check-address-proof-image");
    Ok(proof_form(visit, intro, label, errors))
}

/// Takes the proof, unless one is looked at.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let mut conn = core.db.acquire().await?;
    let known = documents::sides(&mut conn, visit.client.key_of(user)).await?;
    drop(conn);
    if has_address_proof(&known) {
        return Ok(FormErrors::default());
    }
    match read_image(visit, form, PROOF) {
        Ok(image) => {
            let (kind, side) = ADDRESS_PROOF;
            let proof = vec![Document::of_page(kind, side, image)];
            documents::send(core, &visit.client, user, visit.sign_in_token(), proof).await?;
            Ok(FormErrors::default())
        }
        Err(text) => Ok(FormErrors::one(PROOF, text)),
    }
}
