//! Branding: the partner's name, logo, colour and links on the pages for shoppers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::http::fields::strict::present;
use crate::http::html::brand::{Accent, Brand, InvalidAccent};
use crate::http::images::logo::{self, LOGO_BYTES_MAX};
use crate::http::images::svg;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Longest URL, in bytes.
const URL_BYTES_MAX: usize = 2_048;
/// Bytes of a logo's digest in its path.
const PATH_DIGEST_BYTES: usize = 16;

/// A change of a partner's branding, as operators send it. What is left out stays, `null` takes it
/// away.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "BrandingUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct BrandingMembers {
    /// Colour of links and main buttons, such as `#0b57d0`: at least 4.5:1 against `#f4f5f7`.
    #[serde(deserialize_with = "present")]
    accent_color: Option<Option<String>>,
    /// In base64: a PNG of at most 1024 × 1024 pixels, not interlaced, or an SVG of shapes and
    /// gradients alone; at most 64 KiB.
    #[serde(deserialize_with = "present")]
    logo: Option<Option<String>>,
    /// Help for shoppers: an `https:` or `mailto:` URL.
    #[serde(deserialize_with = "present")]
    support_url: Option<Option<String>>,
    /// The partner's privacy statement: `https:`.
    #[serde(deserialize_with = "present")]
    privacy_url: Option<Option<String>>,
    /// The partner's terms: `https:`.
    #[serde(deserialize_with = "present")]
    terms_url: Option<Option<String>>,
}

/// A valid change: what is `None` stays, what is `Some(None)` is taken away.
#[derive(Debug, Default)]
pub struct BrandingChange {
    /// Accent colour.
    pub accent: Option<Option<Accent>>,
    /// Logo.
    pub logo: Option<Option<Logo>>,
    /// Page for support.
    pub support_url: Option<Option<String>>,
    /// Privacy statement.
    pub privacy_url: Option<Option<String>>,
    /// Terms.
    pub terms_url: Option<Option<String>>,
}

/// A logo, written anew from what was sent.
#[derive(Debug)]
pub struct Logo {
    content: Vec<u8>,
    /// True for an SVG, false for a PNG.
    is_svg: bool,
}

/// A member and what is wrong with it.
pub type Invalid = (&'static str, &'static str);

impl BrandingMembers {
    /// Checks every member.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check(&self) -> Result<BrandingChange, Invalid> {
        let logo = |text: &String| {
            let content = STANDARD.decode(text).map_err(|_| ("logo", "not base64"))?;
            read_logo(&content)
        };
        Ok(BrandingChange {
            accent: each(&self.accent_color, |text| read_accent(text))?,
            logo: each(&self.logo, logo)?,
            support_url: each(&self.support_url, |text| read_url("supportUrl", text))?,
            privacy_url: each(&self.privacy_url, |text| read_url("privacyUrl", text))?,
            terms_url: each(&self.terms_url, |text| read_url("termsUrl", text))?,
        })
    }
}

fn each<T>(
    member: &Option<Option<String>>,
    read: impl FnOnce(&String) -> Result<T, Invalid>,
) -> Result<Option<Option<T>>, Invalid> {
    match member {
        None => Ok(None),
        Some(None) => Ok(Some(None)),
        Some(Some(text)) => read(text).map(|value| Some(Some(value))),
    }
}

/// Reads a colour.
///
/// # Errors
/// [`Invalid`] says why.
pub fn read_accent(text: &str) -> Result<Accent, Invalid> {
    text.parse().map_err(|error| match error {
        InvalidAccent::Malformed => ("accentColor", "# and six hexadecimal digits"),
        InvalidAccent::LowContrast => {
            ("accentColor", "its contrast to the ground of pages, #f4f5f7, is below 4.5:1")
        }
    })
}

/// Reads a logo and writes it anew.
///
/// # Errors
/// [`Invalid`] says why.
pub fn read_logo(sent: &[u8]) -> Result<Logo, Invalid> {
    let png = logo::sanitise(sent).map(|content| Logo { content, is_svg: false });
    let clean = png.or_else(|| {
        let content = svg::sanitise(sent)?;
        Some(Logo { content, is_svg: true })
    });
    let clean = clean.filter(|clean| clean.content.len() <= LOGO_BYTES_MAX);
    clean.ok_or((
        "logo",
        "a PNG of at most 64 KiB and 1024 x 1024 pixels, not interlaced, or an SVG of at most \
         64 KiB with nothing but shapes and gradients",
    ))
}

/// Reads the URL of a link.
///
/// # Errors
/// [`Invalid`] says why.
pub fn read_url(member: &'static str, text: &str) -> Result<String, Invalid> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= URL_BYTES_MAX);
    let is_link = url.is_some_and(|url| {
        url.scheme() == "https" || member == "supportUrl" && url.scheme() == "mailto"
    });
    let reason = if member == "supportUrl" { "an https: or mailto: URL" } else { "an https: URL" };
    if is_link { Ok(text.to_owned()) } else { Err((member, reason)) }
}

/// Writes a change. Its caller raises the client's revision.
pub async fn update(
    conn: &mut Connection,
    client: ClientId,
    change: &BrandingChange,
) -> Result<()> {
    let text = |member: &Option<Option<String>>| (member.is_some(), member.clone().flatten());
    let (support, privacy, terms) =
        (text(&change.support_url), text(&change.privacy_url), text(&change.terms_url));
    let logo = change.logo.as_ref().map(Option::as_ref);
    let logo_digest = logo.flatten().map(|logo| sha256(&logo.content));
    sqlx::query!(
        "update client set \
             accent_color = case when $2 then $3 else accent_color end, \
             support_url = case when $4 then $5 else support_url end, \
             privacy_url = case when $6 then $7 else privacy_url end, \
             terms_url = case when $8 then $9 else terms_url end, \
             logo_digest = case when $10 then $11 else logo_digest end, \
             logo_is_svg = case when $10 then $12 else logo_is_svg end \
         where client_id = $1",
        client.uuid(),
        change.accent.is_some(),
        change.accent.flatten().map(|accent| accent.to_string()),
        support.0,
        support.1,
        privacy.0,
        privacy.1,
        terms.0,
        terms.1,
        logo.is_some(),
        logo_digest.as_ref().map(<[u8; 32]>::as_slice),
        logo.flatten().is_some_and(|logo| logo.is_svg),
    )
    .execute(&mut *conn)
    .await?;
    match logo {
        None => {}
        Some(None) => {
            sqlx::query!("delete from client_logo where client_id = $1", client.uuid())
                .execute(conn)
                .await?;
        }
        Some(Some(logo)) => {
            sqlx::query!(
                "insert into client_logo (client_id, png, created_at) \
                 values ($1, $2, rampart_now()) \
                 on conflict (client_id) do update set png = excluded.png, \
                     created_at = excluded.created_at",
                client.uuid(),
                logo.content,
            )
            .execute(conn)
            .await?;
        }
    }
    Ok(())
}

/// The branding of a partner, as operators see it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Branding")]
#[serde(rename_all = "camelCase")]
pub struct Branding {
    /// Colour of links and main buttons.
    accent_color: Option<String>,
    /// Path of the logo on the public listener.
    logo_path: Option<String>,
    /// Page where shoppers find help.
    support_url: Option<String>,
    /// The partner's privacy statement.
    privacy_url: Option<String>,
    /// The partner's terms.
    terms_url: Option<String>,
}

impl From<Brand> for Branding {
    fn from(brand: Brand) -> Self {
        Self {
            accent_color: brand.accent.map(|accent| accent.to_string()),
            logo_path: brand.logo,
            support_url: brand.support_url,
            privacy_url: brand.privacy_url,
            terms_url: brand.terms_url,
        }
    }
}

/// The columns of `client` that make a [`Brand`].
pub struct BrandRow {
    /// Accent colour, as `#rrggbb`.
    pub accent_color: Option<String>,
    /// Page for support.
    pub support_url: Option<String>,
    /// Privacy statement.
    pub privacy_url: Option<String>,
    /// Terms.
    pub terms_url: Option<String>,
    /// SHA-256 of the logo.
    pub logo_digest: Option<Vec<u8>>,
    /// True if the logo is an SVG.
    pub logo_is_svg: bool,
}

impl BrandRow {
    /// The brand of the partner with this slug.
    pub fn brand(self, slug: &str) -> Brand {
        let path = |digest: Vec<u8>| {
            let kind = if self.logo_is_svg { "svg" } else { "png" };
            format!("/brand/{slug}/{}.{kind}", path_digest(&digest))
        };
        Brand {
            accent: self.accent_color.and_then(|accent| accent.parse().ok()),
            logo: self.logo_digest.map(path),
            support_url: self.support_url,
            privacy_url: self.privacy_url,
            terms_url: self.terms_url,
        }
    }
}

/// The part of a logo's path that is its own.
fn path_digest(digest: &[u8]) -> String {
    hex::encode(digest.get(..PATH_DIGEST_BYTES).unwrap_or(digest))
}

/// True if this is the path of a logo with this content.
pub fn is_path_of(path: &str, content: &[u8]) -> bool {
    path.contains(&path_digest(&sha256(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(members: serde_json::Value) -> Result<BrandingChange, &'static str> {
        let members: BrandingMembers = serde_json::from_value(members).unwrap();
        members.check().map_err(|(member, _)| member)
    }

    #[test]
    fn what_is_left_out_stays_and_null_takes_away() {
        let change = check(serde_json::json!({"supportUrl": null})).unwrap();
        assert_eq!((change.support_url, change.terms_url), (Some(None), None));
    }

    #[test]
    fn a_wrong_member_is_named() {
        for (member, value) in [
            ("accentColor", "#ffff00"),
            ("accentColor", "blue"),
            ("logo", "iVBORw0KGgo="),
            ("logo", "?"),
            ("supportUrl", "javascript:alert(1)"),
            ("privacyUrl", "mailto:a@b.example"),
            ("termsUrl", "http://acme.example"),
        ] {
            assert_eq!(check(serde_json::json!({ member: value })).err(), Some(member), "{value}");
        }
        assert!(check(serde_json::json!({"supportUrl": "mailto:help@acme.example"})).is_ok());
    }
}
