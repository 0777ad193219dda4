//! The choice of a language on the account's page, which is kept with the account.

use maud::{Markup, html};

use super::view::View;
use crate::Core;
use crate::http::language::Language;
use crate::platform::error::Result;
use rampart_types::UserKey;

/// Keeps the website locale of a page's path as the user's. It is one of the catalogue's
/// `page_regions`.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn keep(core: &Core, key: UserKey, region: &str) -> Result<()> {
    sqlx::query!(
        "update end_user set region = $3 \
         where client_id = $1 and user_id = $2 and deleted_at is null",
        key.client.uuid(),
        key.user.uuid(),
        region,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

/// A button for each language that a region of the pages speaks. It leads to the page in that language.
pub(super) fn section(view: &View<'_>) -> Markup {
    let (texts, link) = (view.texts(), view.invited.link);
    html! {
        h2 { (texts.get("language-title")) }
        p { (texts.get("language-about")) }
        form.row method="post" {
            (view.challenge_input())
            @for (language, region) in choices(view) {
                button type="submit" name="action" value="language" lang=(language.code())
                    aria-current=[(language == texts.language()).then_some("true")]
                    formaction={ "/" (region) "/dashboard/" (link.session()) } {
                    (language.name())
                }
            }
        }
    }
}

/// Languages with a region of the pages each: the user's country's, if it speaks the language.
fn choices<'a>(view: &View<'a>) -> Vec<(Language, &'a str)> {
    let regions = &view.invited.client.catalogue.page_regions;
    let country = |region: &str| region.split('-').nth(1).map(str::to_owned);
    let own = view.account.region.as_deref().and_then(country);
    let choices = Language::ALL.into_iter().filter_map(|language| {
        let mut spoken =
            regions.iter().filter(|region| Language::from_tag(region) == Some(language));
        let first = spoken.clone().next()?;
        let of_country = spoken.find(|region| own.is_some() && country(region) == own);
        Some((language, of_country.unwrap_or(first).as_str()))
    });
    choices.collect()
}
