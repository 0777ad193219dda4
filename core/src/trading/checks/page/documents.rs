//! Images of an identity document, which an operator looks at where no provider checks identities.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::choice::choice;
use crate::http::html::components::{Field, image_field};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::images::ReceivedImage;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::documents::{
    self, Document, IDENTITY_DOCUMENTS, has_identity_document, is_received,
};
use rampart_types::UserId;

/// Name of the field with the kind of document.
const KIND: &str = "document";
/// The sides of documents, each a field of the form, with the messages of its label and its hint.
const SIDES: [(&str, &str, Option<&str>); 2] =
    [("front", "check-document-front", None), ("back", "check-document-back", Some(BACK_HINT))];
const BACK_HINT: &str = "check-document-back-hint";
/// Hint of a side that has come.
const RECEIVED: &str = "check-document-received";
/// Types of image that browsers offer.
const ACCEPTED: &str = "image/*";
/// Name of the field with a proof.
pub(super) const PROOF: &str = "proof";
/// Types of proof that browsers offer.
const ACCEPTED_PROOFS: &str = "image/*,application/pdf";
/// The camera that looks away from the user.
const CAMERA: &str = "environment";

/// The form, until every side of a document has come.
pub(super) async fn show(
    conn: &mut Connection,
    visit: &Visit,
    user: UserId,
    TypedForm { form, errors }: TypedForm<'_>,
) -> Result<Content> {
    let texts = visit.texts;
    let sides = documents::sides(conn, visit.client.key_of(user)).await?;
    if has_identity_document(&sides) {
        let body = html! { p { (texts.get(RECEIVED)) } };
        return Ok(Content { is_complete: true, ..body.into() });
    }
    // At first that of which a side has come.
    let begun = IDENTITY_DOCUMENTS.iter().find(|(kind, names)| {
        let mut names = names.iter();
        names.any(|name| is_received(&sides, kind, name))
    });
    let chosen = match form.get(KIND) {
        "" => begun.map_or("", |(kind, _)| *kind),
        kind => kind,
    };
    let names = [
        texts.get("check-document-passport"),
        texts.get("check-document-id-card"),
        texts.get("check-document-driving-licence"),
    ];
    let kinds: Vec<_> =
        IDENTITY_DOCUMENTS.iter().zip(&names).map(|((kind, _), name)| (*kind, &**name)).collect();
    let label = texts.get("check-document-kind");
    let kind = Field { value: chosen, error: errors.of(KIND), ..Field::text(KIND, &label) };
    let body = html! {
        p { (texts.get("check-identity-documents")) }
        form method="post" enctype="multipart/form-data" {
            (choice(&kind, &kinds))
            @for (side, label, hint) in SIDES {
                @let hint = if is_received(&sides, chosen, side) { Some(RECEIVED) } else { hint };
                @let hint = hint.map(|hint| texts.get(hint));
                (image_field(
                    &Field {
                        hint: hint.as_deref(),
                        error: errors.of(side),
                        required: hint.is_none(),
                        ..Field::text(side, &texts.get(label))
                    },
                    ACCEPTED,
                    Some(CAMERA),
                ))
            }
            button.main type="submit" { (texts.get("check-send")) }
        }
    };
    Ok(Content { takes_images: true, ..body.into() })
}

/// Takes the sides of the chosen document that have not come yet. A wrong one holds up no other.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let mut conn = core.db.acquire().await?;
    let known = documents::sides(&mut conn, visit.client.key_of(user)).await?;
    drop(conn);
    let chosen = IDENTITY_DOCUMENTS.iter().find(|(kind, _)| *kind == form.get(KIND));
    let Some((kind, sides)) = chosen else {
        return Ok(FormErrors::one(KIND, visit.texts.get("check-document-missing")));
    };
    let (mut sent, mut errors) = (Vec::new(), FormErrors::default());
    for side in sides.iter().filter(|side| !is_received(&known, kind, side)) {
        match read_image(visit, form, side) {
            Ok(image) => sent.push(Document::of_page(kind, side, image)),
            Err(text) => errors.add(side, text),
        }
    }
    if !sent.is_empty() {
        documents::send(core, &visit.client, user, visit.sign_in_token(), sent).await?;
    }
    Ok(errors)
}

/// The form of one proof, which an operator looks at; `intro` and `label` are messages.
pub(super) fn proof_form(
    visit: &Visit,
    intro: &'static str,
    label: &'static str,
    errors: &FormErrors,
) -> Content {
    let (texts, label) = (visit.texts, visit.texts.get(label));
    let proof = Field { error: errors.of(PROOF), ..Field::text(PROOF, &label) };
    let body = html! {
        p { (texts.get(intro)) }
        form method="post" enctype="multipart/form-data" {
            (image_field(&proof, ACCEPTED_PROOFS, None))
            button.main type="submit" { (texts.get("check-send")) }
        }
    };
    Content { takes_images: true, ..body.into() }
}

/// The image of a field, or why there is none.
pub(super) fn read_image(visit: &Visit, form: &Form, field: &str) -> Result<ReceivedImage, String> {
    match form.file(field) {
        [] if field == PROOF => Err(visit.texts.get("check-proof-missing")),
        [] => Err(visit.texts.get("check-image-missing")),
        file => ReceivedImage::from_bytes(file.to_vec())
            .ok_or_else(|| visit.texts.get("check-image-wrong")),
    }
}
