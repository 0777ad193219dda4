//! Languages of our pages and their texts, which are Fluent files beside this one (`texts/`): one a
//! language, all with the same messages.

mod numbers;

use std::borrow::Cow;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource};
use http::HeaderMap;

use crate::http::request::{Input, single_header};

/// Longest `Accept-Language` that is read, in bytes; a longer one is none.
const ACCEPT_LANGUAGE_BYTES_MAX: usize = 512;

/// A language that every page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `en`, the default.
    English,
    /// `nl`
    Dutch,
    /// `de`
    German,
    /// `fr`
    French,
    /// `es`
    Spanish,
    /// `pt`
    Portuguese,
    /// `it`
    Italian,
    /// `pl`
    Polish,
}

impl Language {
    pub(crate) const ALL: [Self; 8] = [
        Self::English,
        Self::Dutch,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
        Self::Italian,
        Self::Polish,
    ];

    /// The code of ISO 639-1, for the `lang` of a page.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Dutch => "nl",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Portuguese => "pt",
            Self::Italian => "it",
            Self::Polish => "pl",
        }
    }

    /// The name in the language itself.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Dutch => "Nederlands",
            Self::German => "Deutsch",
            Self::French => "Français",
            Self::Spanish => "Español",
            Self::Portuguese => "Português",
            Self::Italian => "Italiano",
            Self::Polish => "Polski",
        }
    }

    /// The website locale of its pages where no supported region speaks it.
    const fn own_region(self) -> &'static str {
        match self {
            Self::English => "en-gb",
            Self::Dutch => "nl-nl",
            Self::German => "de-de",
            Self::French => "fr-fr",
            Self::Spanish => "es-es",
            Self::Portuguese => "pt-pt",
            Self::Italian => "it-it",
            Self::Polish => "pl-pl",
        }
    }

    /// Website locales in the paths of pages: the supported regions, and one for each language that
    /// none of them speaks.
    pub(crate) fn page_regions(supported: &[String]) -> Vec<String> {
        let added = Self::ALL
            .into_iter()
            .filter(|language| language.texts().spoken_region(supported).is_none())
            .map(|language| language.own_region().to_owned());
        supported.iter().cloned().chain(added).collect()
    }

    const fn source(self) -> &'static str {
        match self {
            Self::English => include_str!("texts/en.ftl"),
            Self::Dutch => include_str!("texts/nl.ftl"),
            Self::German => include_str!("texts/de.ftl"),
            Self::French => include_str!("texts/fr.ftl"),
            Self::Spanish => include_str!("texts/es.ftl"),
            Self::Portuguese => include_str!("texts/pt.ftl"),
            Self::Italian => include_str!("texts/it.ftl"),
            Self::Polish => include_str!("texts/pl.ftl"),
        }
    }

    /// The language of a reader who is not known, as [`Texts::of`].
    pub fn of(input: &Input) -> Self {
        Texts::of(input).language()
    }

    /// The language of a tag such as `pt-BR`.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let code = tag.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(code))
    }

    /// The language of a user with this website locale; English for one without.
    pub(crate) fn of_region(region: Option<&str>) -> Self {
        region.and_then(Self::from_tag).unwrap_or(Self::English)
    }

    /// The language of the greatest weight (RFC 9110, 12.5.4), and of equal ones the first.
    fn accepted(header: &str) -> Option<Self> {
        let header = Some(header).filter(|text| text.len() <= ACCEPT_LANGUAGE_BYTES_MAX)?;
        let weighted = header.split(',').filter_map(|range| {
            let (tag, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = weight_of(weight).filter(|weight| *weight > 0)?;
            Some((weight, Self::from_tag(tag.trim())?))
        });
        // Of equal ones `max_by_key` gives the last.
        weighted.rev().max_by_key(|(weight, _)| *weight).map(|(_, language)| language)
    }

    /// The texts in this language.
    pub const fn texts(self) -> Texts {
        Texts { language: self, is_of_page: false }
    }
}

/// The weight that a parameter such as `q=0.5` gives a language or a media type, in thousandths.
pub(crate) fn weight_of(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    let (whole, part) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_weight = name.trim().eq_ignore_ascii_case("q")
        && part.len() <= 3
        && part.bytes().all(|byte| byte.is_ascii_digit());
    let part: u16 = format!("{part:0<3}").parse().ok().filter(|_| is_weight)?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1000),
        _ => None,
    }
}

/// The messages of one language.
type Bundle = FluentBundle<FluentResource>;

static BUNDLES: LazyLock<Vec<Bundle>> =
    LazyLock::new(|| Language::ALL.into_iter().map(bundle).collect());

/// Reads a file. A message that is not well formed is left out, which a test refuses.
fn bundle(language: Language) -> Bundle {
    let mut bundle = Bundle::new_concurrent(vec![language.code().parse().unwrap_or_default()]);
    // The marks around arguments are for texts of both directions, which none of ours is.
    bundle.set_use_isolating(false);
    let resource = FluentResource::try_new(language.source().to_owned());
    bundle.add_resource_overriding(resource.unwrap_or_else(|(resource, _)| resource));
    bundle
}

/// The texts of pages in one language.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    language: Language,
    /// True if the page's URL names the language, which then counts for every reader.
    is_of_page: bool,
}

impl Texts {
    /// The texts for a reader who is not known: in the language of the website locale in the path
    /// (`nl-be`), else the one that `Accept-Language` prefers of those there are, else English.
    pub(crate) fn of(input: &Input) -> Self {
        Self::asked(input.param("region"), &input.head.headers)
    }

    /// The same by the website locale in the path, which may be none, and the request's headers.
    pub(crate) fn asked(region: &str, headers: &HeaderMap) -> Self {
        let of_page = Language::from_tag(region);
        let accepted = || single_header(headers, "accept-language").and_then(Language::accepted);
        let language = of_page.or_else(accepted).unwrap_or(Language::English);
        Self { language, is_of_page: of_page.is_some() }
    }

    /// The same for a page whose URL names the language in another place than the path.
    pub(crate) const fn of_page(self) -> Self {
        Self { is_of_page: true, ..self }
    }

    /// The texts for a user who is known: a URL that names no language leaves it to the website
    /// locale of the account, if there is one.
    pub(crate) fn of_account(self, region: Option<&str>) -> Self {
        match region.and_then(Language::from_tag) {
            Some(language) if !self.is_of_page => language.texts(),
            _ => self,
        }
    }

    pub(crate) const fn language(self) -> Language {
        self.language
    }

    /// The website locale in this language, of those there are.
    pub(crate) fn spoken_region(self, regions: &[String]) -> Option<&str> {
        let spoken = |region: &&String| Language::from_tag(region) == Some(self.language);
        regions.iter().find(spoken).map(String::as_str)
    }

    /// The message of this id; the id itself if there is none.
    pub fn get(self, id: &'static str) -> String {
        self.with(id, &[])
    }

    /// The same, with values for the placeables of these names.
    pub(crate) fn with(self, id: &'static str, values: &[(&str, &str)]) -> String {
        let args: FluentArgs<'_> = values.iter().map(|(n, v)| (*n, Cow::Borrowed(*v))).collect();
        let bundle = BUNDLES.get(self.language as usize);
        let pattern = bundle.and_then(|bundle| Some((bundle, bundle.get_message(id)?.value()?)));
        match pattern {
            Some((bundle, pattern)) => {
                bundle.format_pattern(pattern, Some(&args), &mut Vec::new()).into_owned()
            }
            None => id.to_owned(),
        }
    }

    /// A time in UTC, to the minute, in the language's order of date.
    pub(crate) fn time(self, at: DateTime<Utc>) -> String {
        let pattern = match self.language {
            // Of the day and the month, English has either first.
            Language::English => "%Y-%m-%d %H:%M UTC",
            Language::Dutch => "%d-%m-%Y %H:%M UTC",
            Language::German | Language::Polish => "%d.%m.%Y %H:%M UTC",
            Language::French | Language::Spanish | Language::Portuguese | Language::Italian => {
                "%d/%m/%Y %H:%M UTC"
            }
        };
        at.format(pattern).to_string()
    }
}

#[cfg(test)]
mod tests;
