//! The form of a provider that takes a card on the pay page. An operator allows it for a connector:
//! its script runs on our page, so it is not the connector's to name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Longest URL, origin or key, in characters.
const TEXT_CHARS_MAX: usize = 255;
/// Most further origins.
const ORIGINS_MAX: usize = 8;

/// A provider's form for cards.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
// One schema stands for what is sent and what is answered, and may be sent without `origins`.
#[schemars(extend("required" = ["scriptUrl", "publicKey"]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CardElement {
    /// URL of the provider's script, such as `https://js.stripe.com/v3/`; plain HTTP on loopback
    /// only. At most 255 characters.
    pub script_url: String,
    /// The account's public key, at most 255 characters.
    pub public_key: String,
    /// Further origins that the script calls and shows frames of, such as `https://api.stripe.com`
    /// or `https://*.js.stripe.com`; at most 8.
    #[serde(default)]
    pub origins: Vec<String>,
}

impl CardElement {
    /// Checks what an operator sent.
    ///
    /// # Errors
    /// One sentence that names the member.
    pub fn check(&self) -> Result<(), String> {
        if self.script_origin().is_none() {
            return Err("scriptUrl: an https URL, or http on loopback".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=TEXT_CHARS_MAX).contains(&self.public_key.len())
            || !self.public_key.chars().all(plain)
        {
            return Err("publicKey: 1 to 255 of A-Z, a-z, 0-9, _ and -".to_owned());
        }
        // A secret key here would stand in every payer's page.
        if self.public_key.starts_with("sk_") || self.public_key.starts_with("rk_") {
            return Err("publicKey: this is a secret key".to_owned());
        }
        if self.origins.len() > ORIGINS_MAX || !self.origins.iter().all(|origin| is_origin(origin))
        {
            return Err(format!("origins: at most {ORIGINS_MAX}, such as https://api.example.com"));
        }
        Ok(())
    }

    /// The origin of the script; `None` if no page may load it.
    fn script_origin(&self) -> Option<String> {
        let url = Some(&self.script_url).filter(|url| url.len() <= TEXT_CHARS_MAX)?;
        let url = Url::parse(url).ok()?;
        let named = url.username().is_empty() && url.password().is_none();
        (named && is_safe(&url)).then(|| url.origin().ascii_serialization())
    }

    /// Every origin that the page lets in, the script's first; empty if no page may load the script.
    pub(crate) fn sources(&self) -> Vec<String> {
        let Some(script) = self.script_origin() else { return Vec::new() };
        let further = self.origins.iter().filter(|origin| is_origin(origin)).cloned();
        std::iter::once(script).chain(further).collect()
    }
}

/// True if the text is an origin and nothing else; its host may begin with `*.`.
fn is_origin(text: &str) -> bool {
    // As a source of a content security policy it must not end it or begin another.
    let exact = text.replacen("://*.", "://", 1);
    let url = Url::parse(&exact).ok().filter(is_safe);
    text.len() <= TEXT_CHARS_MAX
        && url.is_some_and(|url| url.origin().ascii_serialization() == exact)
}

/// True for https, and for http on loopback.
fn is_safe(url: &Url) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    match (url.scheme(), url.host()) {
        ("https", Some(Host::Domain(domain))) => domain.bytes().all(plain),
        ("https", Some(Host::Ipv4(_))) => true,
        ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
        ("http", Some(Host::Domain(domain))) => domain == "localhost",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element() -> CardElement {
        CardElement {
            script_url: "https://js.example.com/v3/".to_owned(),
            public_key: "pk_test_1".to_owned(),
            origins: vec!["https://api.example.com".to_owned(), "https://*.example.com".to_owned()],
        }
    }

    #[test]
    fn its_sources_are_origins() {
        let sources = element().sources();
        let expected =
            ["https://js.example.com", "https://api.example.com", "https://*.example.com"];
        assert_eq!(sources, expected);
        assert!(element().check().is_ok());
        let local = CardElement { script_url: "http://localhost:84/js".to_owned(), ..element() };
        assert_eq!(local.sources()[0], "http://localhost:84");
    }

    #[test]
    fn what_could_let_anybody_in_is_refused() {
        let scripts =
            ["http://js.example.com/", "javascript:alert(1)", "//x", "", "data:text/plain,"];
        for script in scripts.into_iter().chain(["https://a;script-src/", "https://u:p@a.example/"])
        {
            let wrong = CardElement { script_url: script.to_owned(), ..element() };
            assert!(wrong.check().unwrap_err().starts_with("scriptUrl"), "{script}");
            assert!(wrong.sources().is_empty(), "{script}");
        }
        for key in ["", "sk_live_1", "rk_live_1", "pk 1", "pk\"", &"p".repeat(256)] {
            let wrong = CardElement { public_key: key.to_owned(), ..element() };
            assert!(wrong.check().unwrap_err().starts_with("publicKey"), "{key}");
        }
        for origin in [
            "*",
            "https:",
            "https://*",
            "https://a.example/path",
            "http://a.example",
            "https://a.example; script-src *",
            "https://a.example https://b.example",
            "'unsafe-inline'",
        ] {
            let wrong = CardElement { origins: vec![origin.to_owned()], ..element() };
            assert!(wrong.check().unwrap_err().starts_with("origins"), "{origin}");
            assert_eq!(wrong.sources().len(), 1, "{origin}");
        }
        let many = vec!["https://a.example".to_owned(); ORIGINS_MAX + 1];
        assert!(CardElement { origins: many, ..element() }.check().is_err());
    }
}
