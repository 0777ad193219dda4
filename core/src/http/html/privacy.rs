//! The consent to the privacy statement, with the way to read it.

use maud::{Markup, html};

use super::brand::Brand;
use crate::http::language::Texts;
use crate::platform::settings::Pages;

/// The label of the box that agrees: a link to the privacy statement of the service or, where it has
/// none, of the partner. Without either it is plain text.
pub(crate) fn agreement(texts: Texts, settings: &Pages, brand: &Brand) -> Markup {
    let statement = texts.get("agree-privacy-statement");
    let sentence = texts.with("agree-privacy", &[("statement", &statement)]);
    let own = settings.privacy_url.as_ref().map(ToString::to_string);
    let url = own.or_else(|| brand.privacy_url.clone());
    let Some((url, (before, after))) = url.zip(sentence.split_once(&*statement)) else {
        return html! { (sentence) };
    };
    // Beside the form, which keeps what was typed.
    html! { (before) a href=(url) target="_blank" rel="noreferrer" { (statement) } (after) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;

    #[test]
    fn the_statement_is_a_link_to_that_of_the_service_or_else_of_the_partner() {
        let (service, partner) = ("https://legal.example/privacy", "https://acme.example/privacy");
        let own = Pages { privacy_url: service.to_owned().try_into().ok(), ..Pages::default() };
        let brand = Brand { privacy_url: Some(partner.to_owned()), ..Brand::default() };
        let (no_pages, no_brand) = (Pages::default(), Brand::default());
        for language in Language::ALL {
            let texts = language.texts();
            let plain = agreement(texts, &no_pages, &no_brand).into_string();
            assert!(!plain.contains('<') && !plain.contains('$'), "{plain}");
            for (settings, brand, url) in
                [(&own, &no_brand, service), (&own, &brand, service), (&no_pages, &brand, partner)]
            {
                let linked = agreement(texts, settings, brand).into_string();
                let link = format!("<a href=\"{url}\" target=\"_blank\" rel=\"noreferrer\">");
                assert!(linked.contains(&link), "{linked}");
                assert_eq!(linked.replace(&link, "").replace("</a>", ""), plain);
            }
        }
    }
}
