//! The region of the website that a user has chosen: a language and a country, supported together.

use crate::auth::caller::Client;
use crate::http::fields::{Fields, Member};
use crate::platform::error::{Code, Violation};
use rampart_types::{InvalidWebsiteLocale, WebsiteLocale};

/// Members of a request with the halves.
const LANGUAGE: &str = "websiteLanguage";
const COUNTRY: &str = "websiteCountry";

/// The region in a request.
#[derive(Debug)]
pub(super) enum WebsiteRegion {
    /// Both halves, supported together or those of a page.
    Whole(WebsiteLocale),
    /// The language of a supported region, for the country that is stored.
    Language(String),
    /// The country of a supported region, for the language that is stored.
    Country(String),
}

impl WebsiteRegion {
    /// Reads what is there of the two halves: each of a supported region (ER081, ER083), and both
    /// supported together (ER084). A null beside a half is a half that is wrong.
    pub(super) fn read(fields: &mut Fields<'_>, client: &Client) -> Option<Self> {
        let half = |name| fields.value(name).map(|value| value.as_str().unwrap_or_default());
        let is_sent = |name| fields.member(name) != Member::Absent;
        let half = match (half(LANGUAGE), half(COUNTRY)) {
            (None, None) => return None,
            (Some(language), None) if !is_sent(COUNTRY) => Self::Language(language.to_owned()),
            (None, Some(country)) if !is_sent(LANGUAGE) => Self::Country(country.to_owned()),
            (language, country) => {
                let language = language.unwrap_or_default().to_owned();
                let country = country.unwrap_or_default().to_owned();
                return both(fields, client, &language, &country).map(Self::Whole);
            }
        };
        if !half.is_known(client) {
            let code = match half {
                Self::Country(_) => Code::WebsiteCountryInvalid,
                Self::Whole(_) | Self::Language(_) => Code::WebsiteLanguageInvalid,
            };
            fields.refuse_member(code, half.name());
            return None;
        }
        Some(half)
    }

    /// Completes a half by the other one of the user's stored region, or without a supported one as
    /// [`Self::suggested`].
    ///
    /// # Errors
    /// ER084 where the two halves are not supported together.
    pub(super) fn complete(
        &self,
        client: &Client,
        known: Option<&str>,
        residence: Option<&str>,
    ) -> Result<Self, Violation> {
        // A page may have kept a region that partners neither know nor may send.
        let is_supported = |known: &&str| client.catalogue.regions.iter().any(|one| one == *known);
        let stored = known.filter(is_supported).and_then(|known| known.split_once('-'));
        let locale = match (self, stored) {
            (Self::Whole(locale), _) => return Ok(Self::Whole(*locale)),
            (Self::Language(_) | Self::Country(_), None) => self.suggested(client, residence),
            (Self::Language(language), Some((_, country))) => {
                supported(client, WebsiteLocale::new(language, country).ok())
            }
            (Self::Country(country), Some((language, _))) => {
                supported(client, WebsiteLocale::new(language, country).ok())
            }
        };
        locale.map(Self::Whole).ok_or_else(|| self.refusal("not with the other half as it is"))
    }

    /// The supported region with what is there: that of the country of residence if there is one, else
    /// the first one.
    pub(super) fn suggested(
        &self,
        client: &Client,
        residence: Option<&str>,
    ) -> Option<WebsiteLocale> {
        let has_halves = |locale: &WebsiteLocale| match self {
            Self::Whole(whole) => locale == whole,
            Self::Language(language) => locale.language().eq_ignore_ascii_case(language),
            Self::Country(country) => locale.country().as_str().eq_ignore_ascii_case(country),
        };
        let regions = client.catalogue.regions.iter();
        let locales = regions.filter_map(|region| region.parse::<WebsiteLocale>().ok());
        let fitting: Vec<WebsiteLocale> = locales.filter(has_halves).collect();
        let own = fitting.iter().find(|locale| residence == Some(locale.country().as_str()));
        own.or(fitting.first()).copied()
    }

    /// The region, if it is whole.
    pub(super) fn locale(&self) -> Option<&WebsiteLocale> {
        match self {
            Self::Whole(locale) => Some(locale),
            Self::Language(_) | Self::Country(_) => None,
        }
    }

    fn is_known(&self, client: &Client) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Language(language) => is_half(client, 0, language),
            Self::Country(country) => is_half(client, 1, country),
        }
    }

    /// The member that is there alone.
    fn name(&self) -> &'static str {
        if matches!(self, Self::Country(_)) { COUNTRY } else { LANGUAGE }
    }

    fn refusal(&self, detail: &'static str) -> Violation {
        let (code, detail) = (Code::WebsiteRegionInvalid, Some(detail.into()));
        Violation { code, field: Some(self.name()), detail }
    }
}

/// The region of two halves that were both sent.
fn both(
    fields: &mut Fields<'_>,
    client: &Client,
    language: &str,
    country: &str,
) -> Option<WebsiteLocale> {
    let locale = WebsiteLocale::new(language, country);
    let wrong_language =
        !is_half(client, 0, language) || locale == Err(InvalidWebsiteLocale::Language);
    let wrong_country =
        !is_half(client, 1, country) || locale == Err(InvalidWebsiteLocale::Country);
    let together = supported(client, locale.ok());
    if wrong_language {
        fields.refuse_member(Code::WebsiteLanguageInvalid, LANGUAGE);
    }
    if wrong_country {
        fields.refuse_member(Code::WebsiteCountryInvalid, COUNTRY);
    }
    if together.is_none() && !wrong_language && !wrong_country {
        let detail = "not together with websiteLanguage";
        fields.refuse_with(Code::WebsiteRegionInvalid, COUNTRY, detail);
    }
    together
}

/// True if a supported region has this half at this place.
fn is_half(client: &Client, index: usize, text: &str) -> bool {
    let half = |region: &String| region.split('-').nth(index).map(str::to_owned);
    let mut halves = client.catalogue.regions.iter().filter_map(half);
    halves.any(|half| half.eq_ignore_ascii_case(text))
}

fn supported(client: &Client, locale: Option<WebsiteLocale>) -> Option<WebsiteLocale> {
    locale.filter(|locale| client.catalogue.regions.contains(&locale.to_string()))
}
