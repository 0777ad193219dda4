//! `pages`: our pages for people.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `pages`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pages {
    /// Serves the gallery of components at `/_design`: for a demo.
    pub gallery: bool,
    /// Legal entity that operates the service, at the foot of every page for shoppers.
    #[schemars(extend("x-default" = "none: the foot names nobody"))]
    pub legal_entity: Option<String>,
    /// Page with the imprint, which the foot links to.
    #[schemars(extend("x-default" = "none: no link"))]
    pub imprint_url: Option<PageUrl>,
    /// Page with the privacy statement, which the foot and the consent to it link to.
    #[schemars(extend("x-default" = "none: no link"))]
    pub privacy_url: Option<PageUrl>,
    /// Page with the terms, which the foot links to.
    #[schemars(extend("x-default" = "none: no link"))]
    pub terms_url: Option<PageUrl>,
}

/// A URL of a page that ours link to: `https://`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct PageUrl(String);

impl TryFrom<String> for PageUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = url::Url::parse(&text).ok();
        match url.is_some_and(|url| url.scheme() == "https") {
            true => Ok(Self(text)),
            false => Err("the URL of a page begins with https://"),
        }
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_at_the_foot_leads_to_a_page_over_tls() {
        for (text, is_read) in [
            ("https://legal.example/privacy", true),
            ("http://legal.example/", false),
            ("javascript:alert(1)", false),
            ("privacy", false),
        ] {
            assert_eq!(PageUrl::try_from(text.to_owned()).is_ok(), is_read, "{text}");
        }
    }
}
