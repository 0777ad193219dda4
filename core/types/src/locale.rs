//! Languages and locales of responses, of users, and of the website's regions.

use std::fmt;
use std::str::FromStr;

use oxilangtag::LanguageTag;

use super::Country;
use super::checked_text::{refusal, text_form};

refusal!(
    /// The text is not a language tag (RFC 5646) in a language the service speaks.
    InvalidLocale,
    "not a locale in nl, en, de, fr or es"
);

/// Longest locale that is read, in characters (RFC 5646, section 4.4.1).
const LOCALE_CHARS_MAX: usize = 35;

/// A language the service speaks (API document, sell onboarding; AMLD5 questions).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Dutch.
    Nl,
    /// English, the default.
    #[default]
    En,
    /// German.
    De,
    /// French.
    Fr,
    /// Spanish.
    Es,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 5] = [Self::Nl, Self::En, Self::De, Self::Fr, Self::Es];

    /// The ISO 639-1 code, lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nl => "nl",
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Es => "es",
        }
    }
}

impl FromStr for Language {
    type Err = InvalidLocale;

    /// Reads the code in either case.
    fn from_str(text: &str) -> Result<Self, InvalidLocale> {
        let same = |language: &Self| language.as_str().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(same).ok_or(InvalidLocale)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

text_form!(Language);

/// An IETF locale (RFC 5646) in one of the service's languages; case and region are free. The text
/// is stored as given, because a signature may cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locale {
    text: String,
    language: Language,
}

impl Locale {
    /// The text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its language.
    #[must_use]
    pub const fn language(&self) -> Language {
        self.language
    }
}

impl FromStr for Locale {
    type Err = InvalidLocale;

    fn from_str(text: &str) -> Result<Self, InvalidLocale> {
        if text.len() > LOCALE_CHARS_MAX {
            return Err(InvalidLocale);
        }
        let tag = LanguageTag::parse(text).map_err(|_| InvalidLocale)?;
        let language = tag.primary_language().parse()?;
        Ok(Self { text: text.to_owned(), language })
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_form!(Locale);

/// The invalid half of a website locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidWebsiteLocale {
    /// The language is not two letters (`ER081`).
    Language,
    /// The country is not ISO 3166-1 alpha-2 (`ER083`).
    Country,
}

impl fmt::Display for InvalidWebsiteLocale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Language => "the language is not two letters",
            Self::Country => "the country is not ISO 3166-1 alpha-2",
        })
    }
}

impl std::error::Error for InvalidWebsiteLocale {}

/// A website locale such as `nl-be`: language and country, read in either case, written lower case.
/// The catalogue decides if the website serves it (`supportedRegions`, `ER084`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WebsiteLocale {
    language: [u8; 2],
    country: Country,
}

impl WebsiteLocale {
    /// A locale of a language code and an ISO 3166-1 alpha-2 country.
    ///
    /// # Errors
    /// Says which of the two is wrong; the language when both are.
    pub fn new(language: &str, country: &str) -> Result<Self, InvalidWebsiteLocale> {
        let lower = language.to_ascii_lowercase();
        let language = <[u8; 2]>::try_from(lower.as_bytes())
            .ok()
            .filter(|letters| letters.iter().all(u8::is_ascii_lowercase))
            .ok_or(InvalidWebsiteLocale::Language)?;
        let country = country.parse().map_err(|_| InvalidWebsiteLocale::Country)?;
        Ok(Self { language, country })
    }

    /// The language code, lower case.
    #[must_use]
    pub fn language(&self) -> &str {
        // Two ASCII letters, so the default is never taken.
        str::from_utf8(&self.language).unwrap_or_default()
    }

    /// The country.
    #[must_use]
    pub const fn country(&self) -> Country {
        self.country
    }
}

impl FromStr for WebsiteLocale {
    type Err = InvalidWebsiteLocale;

    fn from_str(text: &str) -> Result<Self, InvalidWebsiteLocale> {
        let (language, country) = text.split_once('-').ok_or(InvalidWebsiteLocale::Country)?;
        Self::new(language, country)
    }
}

impl fmt::Display for WebsiteLocale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.language(), self.country.as_str().to_ascii_lowercase())
    }
}

text_form!(WebsiteLocale);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_locale_has_a_spoken_language_and_a_free_region() {
        for (text, language) in [
            ("nl", Language::Nl),
            ("en-GB", Language::En),
            ("EN-gb", Language::En),
            ("de-XX", Language::De),
            ("fr-Latn-CH", Language::Fr),
            ("es-419", Language::Es),
        ] {
            let locale: Locale = text.parse().unwrap();
            assert_eq!((locale.language(), locale.as_str()), (language, text));
        }
        for text in
            ["", "it", "it-IT", "en_GB", "en-", "-en", "en GB", "e", "x-en", "nld", "i-enochian"]
        {
            assert_eq!(text.parse::<Locale>(), Err(InvalidLocale), "{text:?}");
        }
        assert!(format!("en-{}", "abcdefgh-".repeat(9)).parse::<Locale>().is_err());
    }

    #[test]
    fn a_website_locale_says_which_half_is_wrong() {
        assert_eq!("NL-be".parse::<WebsiteLocale>().unwrap().to_string(), "nl-be");
        let new = |language, country| WebsiteLocale::new(language, country).map(|l| l.to_string());
        assert_eq!(new("en", "GB"), Ok("en-gb".to_owned()));
        assert_eq!(new("eng", "GB"), Err(InvalidWebsiteLocale::Language));
        assert_eq!(new("é", "GB"), Err(InvalidWebsiteLocale::Language));
        assert_eq!(new("en", "XX"), Err(InvalidWebsiteLocale::Country));
        for text in ["", "nl", "nl_be", "nl-", "-be", "nl-be-x", "nl-BEL"] {
            assert!(text.parse::<WebsiteLocale>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_language_reads_back() {
        for language in Language::ALL {
            assert_eq!(language.as_str().parse(), Ok(language));
        }
        assert_eq!(Language::default(), Language::En);
    }

    proptest! {
        #[test]
        fn a_language_with_any_region_keeps_its_text(
            language in "[nN][lL]|[eE][nN]|[dD][eE]|[fF][rR]|[eE][sS]",
            region in "(-[a-zA-Z]{2}|-[0-9]{3})?",
        ) {
            let text = format!("{language}{region}");
            let locale: Locale = text.parse().unwrap();
            prop_assert_eq!(locale.as_str(), &text);
            prop_assert_eq!(locale.language().as_str(), language.to_lowercase());
        }

        #[test]
        fn no_other_language_is_spoken(language in "[a-z]{2,3}", region in "(-[A-Z]{2})?") {
            let spoken = Language::ALL.iter().any(|known| known.as_str() == language);
            prop_assert_eq!(format!("{language}{region}").parse::<Locale>().is_ok(), spoken);
        }

        #[test]
        fn a_website_locale_has_one_spelling(language in "[a-zA-Z]{2}", country in "[a-zA-Z]{2}") {
            if let Ok(locale) = WebsiteLocale::new(&language, &country) {
                let written = locale.to_string();
                prop_assert_eq!(&written, &format!("{language}-{country}").to_lowercase());
                prop_assert_eq!(written.parse::<WebsiteLocale>(), Ok(locale));
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[a-zA-Z0-9_-]{0,40}") {
            for text in [text, near] {
                let _ = (text.parse::<Locale>(), text.parse::<WebsiteLocale>());
            }
        }
    }
}
