//! Partners, with their API keys and secrets.

pub mod api_keys;
pub mod create;
pub mod read;
pub mod secrets;
pub mod staff;
pub mod update;
pub mod webhooks;

use ipnet::IpNet;

use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::operate::admin::line;
use crate::platform::error::{Denial, Result};
use crate::tenancy::tenants::{Mode, NETWORKS_MAX, SUBJECT_CHARS_MAX};
use rampart_types::{ClientId, Country};

/// Longest slug, in characters.
const SLUG_CHARS_MAX: usize = 63;
/// Most countries of one partner; there are fewer.
const COUNTRIES_MAX: usize = 300;

/// The path's `{slug}`.
pub(super) const SLUG: Member =
    required("slug", Kind::Sized(1, SLUG_CHARS_MAX), "The partner's slug.");

/// Checks the names of a new partner.
///
/// # Errors
/// 422 for one that is too long, empty or of other characters.
pub(super) fn check_names(slug: &str, name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if slug.is_empty() || slug.len() > SLUG_CHARS_MAX || !slug.chars().all(allowed) {
        return Err(Denial::unprocessable("slug: 1 to 63 of a-z, 0-9 and -").into());
    }
    line::check("name", name)
}

/// Checks the countries that a partner serves: every edge has them in memory.
///
/// # Errors
/// 422 with the first that is none, and for more than [`COUNTRIES_MAX`].
fn check_countries(codes: &[String]) -> Result<()> {
    if codes.len() > COUNTRIES_MAX {
        let reason = format!("allowedCountries: at most {COUNTRIES_MAX}");
        return Err(Denial::unprocessable(reason).into());
    }
    match codes.iter().find(|code| code.parse::<Country>().is_err()) {
        Some(bad) => {
            Err(Denial::unprocessable(format!("allowedCountries: {bad} is no country")).into())
        }
        None => Ok(()),
    }
}

/// Checks the number of allowed networks.
///
/// # Errors
/// 422 when there are more than [`NETWORKS_MAX`].
pub(super) fn check_networks(networks: &[IpNet]) -> Result<()> {
    match networks.len() <= NETWORKS_MAX {
        true => Ok(()),
        false => Err(Denial::unprocessable("allowedAddresses: at most 64 networks").into()),
    }
}

/// Checks the length of a certificate's subject.
///
/// # Errors
/// 422 when it is longer than [`SUBJECT_CHARS_MAX`].
pub(super) fn check_subject(subject: Option<&str>) -> Result<()> {
    match subject.is_none_or(|subject| subject.chars().count() <= SUBJECT_CHARS_MAX) {
        true => Ok(()),
        false => Err(Denial::unprocessable("certificateSubject: at most 1024 characters").into()),
    }
}

/// The partner with this slug. The house, whose book has what is nobody's, is none: a key of it, or a
/// member of its staff, would act there.
///
/// # Errors
/// 404 when there is none.
pub(super) async fn find(core: &Core, slug: &str) -> Result<(ClientId, Mode)> {
    let row = sqlx::query!(
        "select client_id, mode from client where slug = $1 and slug <> 'house'",
        slug,
    )
    .fetch_optional(&core.db)
    .await?
    .ok_or_else(|| Denial::not_found("partner"))?;
    Ok((row.client_id.into(), if row.mode == "live" { Mode::Live } else { Mode::Test }))
}
