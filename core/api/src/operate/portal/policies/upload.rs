//! Uploads: `POST /portal/policies` examines a component, and `GET /portal/policies/uploads/{id}` shows
//! why one was refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use maud::{Markup, html};
use rampart_plugins::contract::PolicyKind;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Authors, PATH, examination, label, page, path_of, target};
use crate::endpoint::Body;
use crate::http::fields;
use crate::http::form::Form;
use crate::http::html::choice::select;
use crate::http::html::components::{Field, Tone, field, note, time, toast};
use crate::http::reply::Reply;
use crate::operate::admin::BODY_BYTES_MAX;
use crate::operate::portal::page::{DEVELOPERS, StaffPage, Visit, done, done_path};
use crate::partners::staff::{self, StaffRole};
use crate::platform::error::Result;
use crate::policies::lifecycle::{
    REASON_CHARS_MAX, RefusedUpload, STAFF_UPLOADS_MAX, StaffUpload, StageRequest, Target,
    UNEXAMINED_MAX, UploadTerms, VersionSettings, refused_uploads, upload_by_staff,
};
use crate::policies::manifest::SignedManifest;

/// Most memory of the values of a configuration: its text may be as large as the form, whose share of
/// the memory of bodies does not cover them.
const CONFIG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Says who can allow uploads.
const NOT_ALLOWED: &str =
    "Your staff may not upload policies. An operator of this service can allow it.";

/// Says that a partner's uploads take turns.
const BUSY: &str = "Another upload is being examined: wait for its end.";

/// Says that this side has failed.
const UNEXAMINED: &str = "The component could not be examined now, for a reason that is not its own. \
                          Choose the file again and upload it once more: this time does not \
                          count among the uploads of the day.";

/// Examines an upload, and stores what passes as a version that serves nobody.
pub struct Submit;

impl StaffPage for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = DEVELOPERS;
    const BODY: Body = Body::LargeForm(BODY_BYTES_MAX);

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let UploadForm { kind, staging } = match UploadForm::read(visit.form()) {
            Ok(form) => form,
            Err(errors) => return page(visit, StatusCode::BAD_REQUEST, None, &errors).await,
        };
        let actor = visit.actor();
        let reason = visit.form().get("reason").trim();
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let target = Target { reason, ..target(visit, kind, &actor) };
        let (mut tx, staff) = (visit.begin().await?, visit.session.staff);
        match visit.earlier_result(&mut tx, PATH).await? {
            Some(result) if result.is_empty() => return Ok(done(PATH, "examining")),
            Some(result) => return Ok(Reply::see_other(&result)),
            None => {}
        }
        // On the heap: unoptimised, the states of an examination are large.
        let uploaded = Box::pin(upload_by_staff(visit.core, tx, target, staff, staging)).await;
        let result = match uploaded {
            Ok(StaffUpload::Stored(version)) => done_path(&path_of(kind, version), "staged"),
            Ok(StaffUpload::Refused(id)) => format!("{PATH}/uploads/{id}"),
            Ok(StaffUpload::Unexamined) => {
                let mut conn = visit.core.db.acquire().await?;
                visit.release_form(&mut conn, PATH).await?;
                drop(conn);
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return page(visit, status, Some(UNEXAMINED), &[]).await;
            }
            Ok(StaffUpload::NotAllowed) => {
                return Ok(visit.refusal(StatusCode::FORBIDDEN, NOT_ALLOWED));
            }
            Ok(StaffUpload::Busy) => return conflict(visit, BUSY).await,
            Ok(StaffUpload::TooMany) => {
                let reason = format!(
                    "There were {STAFF_UPLOADS_MAX} uploads in 24 hours: wait with the next one."
                );
                return conflict(visit, &reason).await;
            }
            Ok(StaffUpload::TooManyUnexamined) => {
                let reason = format!(
                    "{UNEXAMINED_MAX} uploads could not be examined in 24 hours, for reasons that \
                     were not their own: wait with the next one, or ask an operator of this \
                     service."
                );
                return conflict(visit, &reason).await;
            }
            Err(error) => {
                let mut conn = visit.core.db.acquire().await?;
                visit.release_form(&mut conn, PATH).await?;
                return Err(error);
            }
        };
        let mut conn = visit.core.db.acquire().await?;
        visit.keep_result(&mut conn, PATH, &result).await?;
        Ok(Reply::see_other(&result))
    }
}

/// The page with the form again, which was not used up.
async fn conflict(visit: &Visit<'_>, reason: &str) -> Result<Reply> {
    page(visit, StatusCode::CONFLICT, Some(reason), &[]).await
}

/// The form of an upload.
struct UploadForm {
    kind: PolicyKind,
    staging: StageRequest,
}

impl UploadForm {
    /// # Errors
    /// Each field with what is wrong with it.
    fn read(form: &Form) -> Result<Self, Vec<(&'static str, &'static str)>> {
        let mut errors = Vec::new();
        let kind = PolicyKind::from_name(form.get("kind"));
        if kind.is_none() {
            errors.push(("kind", "Choose a kind."));
        }
        let component = form.file("component");
        if component.is_empty() {
            errors.push(("component", "Choose the file of a component."));
        }
        if form.get("reason").trim().chars().count() > REASON_CHARS_MAX {
            errors.push(("reason", "A reason has at most 500 characters."));
        }
        let config = read_config(form).map_err(|error| errors.push(error)).ok();
        let signed = read_signed(form).map_err(|error| errors.push(error)).ok();
        if let (Some(Some(_)), Some(Some(_))) = (&config, &signed) {
            errors.push(("config", "The manifest has the configuration: leave this empty."));
        }
        match (kind, config, signed) {
            (Some(kind), Some(config), Some(signed)) if errors.is_empty() => {
                let component = Some(component.to_vec());
                let settings = VersionSettings { config, fail_closed: None };
                let staging = StageRequest { component, settings, signed, activate: false };
                Ok(Self { kind, staging })
            }
            _ => Err(errors),
        }
    }
}

fn read_config(form: &Form) -> Result<Option<Map<String, Value>>, (&'static str, &'static str)> {
    let text = form.get("config").trim();
    if text.is_empty() {
        return Ok(None);
    }
    if fields::document_bytes(text.as_bytes()) > CONFIG_BYTES_MAX {
        return Err(("config", "It has too many values."));
    }
    match fields::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(Some(members)),
        _ => Err(("config", "A JSON object, such as {\"tiers\": [\"0=20000\"]}.")),
    }
}

/// The manifest with its signature, if one was sent.
fn read_signed(form: &Form) -> Result<Option<SignedManifest>, (&'static str, &'static str)> {
    let manifest = form.file("manifest");
    let (key, value) = (form.get("signatureKey").trim(), form.get("signature").trim());
    if manifest.is_empty() && key.is_empty() && value.is_empty() {
        return Ok(None);
    }
    let manifest = String::from_utf8(manifest.to_vec()).ok().filter(|text| !text.is_empty());
    let manifest = manifest.ok_or(("manifest", "The file of the manifest that was signed."))?;
    if key.is_empty() {
        return Err(("signatureKey", "The name of the operator's key."));
    }
    let signature = STANDARD.decode(value).ok().filter(|bytes| !bytes.is_empty());
    let signature = signature.ok_or(("signature", "The signature in base64."))?;
    Ok(Some(SignedManifest { manifest, key: key.to_owned(), signature }))
}

/// The form of an upload, or the reason why there is none.
pub(super) fn form(visit: &Visit<'_>, terms: &UploadTerms, errors: &[(&str, &str)]) -> Markup {
    if !terms.allowed {
        return note(Tone::Info, &html! { (NOT_ALLOWED) });
    }
    if !DEVELOPERS.contains(&visit.session.role) {
        return note(Tone::Info, &html! { "Owners and developers of your team upload versions." });
    }
    let sent = visit.form();
    let input = |kind: &'static str, name: &'static str, label: &'static str, hint: &str| {
        let error = errors.iter().find(|(at, _)| *at == name).map(|(_, text)| *text);
        let value = if kind == "file" { "" } else { sent.get(name) };
        let required = name == "component";
        field(&Field { kind, value, error, hint: Some(hint), required, ..Field::text(name, label) })
    };
    let kinds = PolicyKind::ALL.map(|kind| (kind.as_str(), label(kind)));
    let kib = visit.core.settings.policy.component_bytes >> 10;
    let component = format!(
        "A WebAssembly component of at most {kib} KiB. It is examined before it is stored."
    );
    visit.form_with_file_to(PATH, &html! {
        (select("kind", "Kind", sent.get("kind"), &kinds))
        (input("file", "component", "Component", &component))
        @if !terms.signature_required {
            (input("textarea", "config", "Configuration", "A JSON object, as the component declares it. That of the active version if empty."))
        }
        (input("text", "reason", "Reason", "For the history, at most 500 characters."))
        @if terms.signature_required {
            fieldset {
                legend { "Your policies need a manifest that an operator has signed; it has the configuration" }
                (input("file", "manifest", "Manifest", "The JSON text that was signed, byte for byte."))
                (input("text", "signatureKey", "Name of the operator's key", "As it is registered."))
                (input("text", "signature", "Signature", "In base64."))
            }
        }
        button.main type="submit" { "Upload and examine" }
    })
}

/// Shows why an upload was refused.
pub struct ShowRefused;

impl StaffPage for ShowRefused {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/policies/uploads/{id}";

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<Uuid>() else { return Ok(visit.not_found()) };
        let (core, client) = (visit.core, visit.session.client.id());
        let mut conn = core.db.acquire().await?;
        let refused = refused_uploads(&mut conn, client, Some(id)).await?;
        let Some(upload) = refused.first() else { return Ok(visit.not_found()) };
        let authors = Authors(staff::list(&mut conn, core, client).await?);
        drop(conn);
        Ok(visit.page(PATH, "Refused upload", &refused_body(upload, &authors)))
    }
}

fn refused_body(upload: &RefusedUpload, authors: &Authors) -> Markup {
    let kind = PolicyKind::from_name(&upload.kind).map_or("", label);
    html! {
        p { a href=(PATH) { "All policies" } }
        (toast(Tone::Bad, &format!("Refused: {}", upload.reason)))
        dl {
            dt { "Kind" } dd { (kind) }
            dt { "Component (SHA-256)" } dd { code { (upload.digest) } }
            dt { "Size" } dd { (upload.size) " bytes" }
            dt { "Uploaded by" } dd { (authors.member(upload.staff)) }
            dt { "Uploaded" } dd { (time(upload.created_at)) }
        }
        h2 { "Examination" }
        @match upload.check {
            Some(check) => { (examination::failed(check, &upload.reason)) }
            None => {
                p { "No check of the component has failed: it was refused for the reason above." }
            }
        }
        p { "Nothing was stored. " a href={ (PATH) "#upload" } { "Upload another one" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(form: &str) -> Vec<&'static str> {
        let read = UploadForm::read(&Form::read(form.as_bytes()));
        read.err().unwrap_or_default().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        assert_eq!(errors("kind=colour"), ["kind", "component"]);
        assert_eq!(errors("kind=fee&config=[]"), ["component", "config"]);
        assert_eq!(errors("kind=fee&signature=AA=="), ["component", "manifest"]);
        let long = format!("kind=fee&reason={}", "a".repeat(REASON_CHARS_MAX + 1));
        assert_eq!(errors(&long), ["component", "reason"]);
    }
}
