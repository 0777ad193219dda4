//! Branding, for owners: `GET` and `POST /portal/branding`. A logo comes as a file.

use http::{Method, StatusCode};
use maud::html;
use serde_json::json;

use super::page::{FORM_ERRORS, OWNERS, StaffPage, Visit, done};
use crate::http::form::Form;
use crate::http::html::allow_images;
use crate::http::html::components::{Field, error_summary, field, tick};
use crate::http::reply::Reply;
use crate::partners::staff::StaffRole;
use crate::platform::error::Result;
use crate::platform::revision;
use crate::tenancy::tenants::branding::{
    self, BrandingChange, Invalid, read_accent, read_logo, read_url,
};

const PATH: &str = "/portal/branding";
/// Names of the fields in the form, and on the page.
const LABELS: [(&str, &str); 5] = [
    ("logo", "Logo"),
    ("accentColor", "Accent colour"),
    ("supportUrl", "Help"),
    ("privacyUrl", "Privacy statement"),
    ("termsUrl", "Terms"),
];

/// Shows the branding.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = OWNERS;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        Ok(page(visit, &[]))
    }
}

/// Writes the branding.
pub struct Save;

impl StaffPage for Save {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ROLES: &'static [StaffRole] = OWNERS;
    const ACTION: Option<&'static str> = Some("Save the branding");

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let change = match read(visit.form()) {
            Ok(change) => change,
            Err(errors) => return Ok(page(visit, &errors)),
        };
        let client = visit.session.client.id();
        let mut tx = visit.begin().await?;
        revision::client_changed(&mut tx, client).await?;
        branding::update(&mut tx, client, &change).await?;
        let detail = json!({"logo": change.logo.is_some()});
        visit.record(&mut tx, "partner.brand", detail).await?;
        tx.commit().await?;
        visit.serve_committed().await;
        Ok(done(PATH, "saved"))
    }
}

/// The change that a form asks for: an empty field takes away, no file leaves the logo as it is.
fn read(form: &Form) -> Result<BrandingChange, Vec<Invalid>> {
    let mut errors = Vec::new();
    let mut text = |name: &'static str| {
        let text = form.get(name).trim();
        let read = match text.is_empty() {
            true => Ok(None),
            false => read_url(name, text).map(Some),
        };
        read.map_err(|error| errors.push(error)).ok()
    };
    let (support_url, privacy_url, terms_url) =
        (text("supportUrl"), text("privacyUrl"), text("termsUrl"));
    let colour = form.get("accentColor").trim();
    let accent = match colour.is_empty() {
        true => Some(None),
        false => read_accent(colour).map(Some).map_err(|error| errors.push(error)).ok(),
    };
    let logo = match (form.file("logo"), form.get("removeLogo")) {
        (_, "yes") => Some(None),
        ([], _) => None,
        (sent, _) => read_logo(sent).map(Some).map_err(|error| errors.push(error)).ok(),
    };
    match errors.is_empty() {
        true => Ok(BrandingChange { accent, logo, support_url, privacy_url, terms_url }),
        false => Err(errors),
    }
}

/// The label of a field.
fn label_of(name: &str) -> &'static str {
    LABELS.iter().find(|(known, _)| *known == name).map_or("", |(_, label)| *label)
}

/// A reason that operators' programs read, as a sentence.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

/// The page, with the errors of a form that was refused.
fn page(visit: &Visit<'_>, errors: &[Invalid]) -> Reply {
    let brand = &visit.session.client.tenant.brand;
    let public_url = &visit.core.settings.public_url;
    let sent = visit.form();
    let wrong: Vec<_> = errors.iter().map(|(name, reason)| (*name, sentence(reason))).collect();
    let error = |name: &str| wrong.iter().find(|(at, _)| *at == name).map(|(_, text)| &**text);
    let lines = wrong.iter().map(|(name, text)| (*name, format!("{} – {text}", label_of(name))));
    let lines: Vec<_> = lines.collect();
    let summary: Vec<_> = lines.iter().map(|(name, text)| (*name, &**text)).collect();
    let accent = brand.accent.map_or_else(String::new, |accent| accent.to_string());
    let stored = |name: &str| match name {
        "accentColor" => accent.as_str(),
        "supportUrl" => brand.support_url.as_deref().unwrap_or_default(),
        "privacyUrl" => brand.privacy_url.as_deref().unwrap_or_default(),
        "termsUrl" => brand.terms_url.as_deref().unwrap_or_default(),
        _ => "",
    };
    let input = |name: &'static str, hint: &'static str| {
        let value = if errors.is_empty() { stored(name) } else { sent.get(name) };
        let (error, hint) = (error(name), Some(hint));
        field(&Field { value, error, hint, required: false, ..Field::text(name, label_of(name)) })
    };
    let logo = Field {
        kind: "file",
        error: error("logo"),
        hint: Some(
            "At most 64 KiB: a PNG of at most 1024 × 1024 pixels, not interlaced, or an SVG of shapes and gradients.",
        ),
        required: false,
        ..Field::text("logo", label_of("logo"))
    };
    let is_removed = sent.get("removeLogo") == "yes";
    let body = html! {
        p { "Shoppers see this on the pages where they pay and verify themselves." }
        @if let Some(logo) = &brand.logo { p.brand { img src={ (public_url) (logo) } alt="Your logo"; } }
        (error_summary(FORM_ERRORS, &summary))
        (visit.form_with_file_to(PATH, &html! {
            (field(&logo))
            @if brand.logo.is_some() { (tick("removeLogo", is_removed, &html! { "Take the logo away" })) }
            (input("accentColor", "Of links and buttons, such as #0b57d0, in the light scheme. White text on it must be readable."))
            (input("supportUrl", "An https: or mailto: URL."))
            (input("privacyUrl", "An https: URL."))
            (input("termsUrl", "An https: URL."))
            button.main type="submit" { "Save" }
        }))
    };
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let mut reply = visit.page_with_status(status, PATH, "Branding", &body);
    allow_images(&mut reply, &format!("{public_url}/brand/"));
    reply
}
