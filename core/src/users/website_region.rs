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
    /// Reads both halves or none, each of a supported region (ER081, ER083), and supported together
    /// (ER084). A change may have one of them. A null beside a half is a half that is wrong.
    pub(super) fn read(fields: &mut Fields<'_>, client: &Client, is_change: bool) -> Option<Self> {
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
        if !is_change {
            fields.refuse_with(Code::WebsiteRegionInvalid, half.name(), "not alone");
            return None;
        }
        Some(half)
    }

    /// Completes a half by the other one of the user's stored region.
    ///
    /// # Errors
    /// ER084 where there is none, or the two are not supported together.
    pub(super) fn complete(self, client: &Client, known: Option<&str>) -> Result<Self, Violation> {
        if self.locale().is_some() {
            return Ok(self);
        }
        let stored = known.and_then(|known| known.split_once('-'));
        let (language, country) = match (&self, stored) {
            (Self::Language(language), Some((_, country))) => (language.as_str(), country),
            (Self::Country(country), Some((language, _))) => (language, country.as_str()),
            (Self::Whole(_), _) | (_, None) => return Err(self.refusal("not alone")),
        };
        let locale = supported(client, WebsiteLocale::new(language, country).ok());
        locale.map(Self::Whole).ok_or_else(|| self.refusal("not with the other half as it is"))
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
