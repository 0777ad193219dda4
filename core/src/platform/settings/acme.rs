//! Settings of certificates from an authority.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Names;

/// Most names of one certificate; authorities have the same bound.
const DOMAINS_MAX: usize = 100;

/// `acme`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Acme {
    /// Directory of the authority that certificates are ordered from by ACME (RFC 8555), such as
    /// `https://acme-v02.api.letsencrypt.org/directory`.
    #[schemars(extend("x-default" = "none: no certificate is ordered"))]
    pub directory_url: Option<String>,
    /// Names that the certificate is for, none with a wildcard: each leads to edges whose public
    /// listener is reached at port 443, where the authority looks for its challenge (RFC 8737).
    #[schemars(extend("x-bounds" = "at most 100 names"))]
    pub domains: Names,
    /// Addresses that the authority writes to, such as `mailto:sre@example.com`.
    pub contacts: Names,
    /// True once somebody has read the authority's terms of service and agrees to them.
    pub terms_agreed: bool,
    /// PEM file with the authorities that the directory's own certificate is checked against.
    #[schemars(extend("x-default" = "none: the usual ones"))]
    pub ca: Option<PathBuf>,
}

impl Acme {
    /// True if a certificate is ordered.
    pub fn is_configured(&self) -> bool {
        !self.domains.0.is_empty()
    }

    /// Checks what no single key's bounds say.
    ///
    /// # Errors
    /// One sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        if !self.is_configured() {
            let alone = "'acme.directory_url' needs 'acme.domains'";
            return if self.directory_url.is_none() { Ok(()) } else { Err(alone.to_owned()) };
        }
        if self.domains.0.len() > DOMAINS_MAX {
            return Err(format!("'acme.domains' names more than {DOMAINS_MAX}"));
        }
        if let Some(wrong) = self.domains.0.iter().find(|name| !is_host(name)) {
            return Err(format!("'acme.domains': '{wrong}' is no name of a host in lower case"));
        }
        if !self.directory_url.as_ref().is_some_and(|url| url.starts_with("https://")) {
            return Err(
                "'acme.domains' needs 'acme.directory_url', which begins with https://".into()
            );
        }
        if !self.terms_agreed {
            return Err(
                "'acme.domains' needs 'acme.terms_agreed = true': read the authority's terms of \
                        service first"
                    .into(),
            );
        }
        Ok(())
    }
}

fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme(domains: &[&str]) -> Acme {
        Acme {
            directory_url: Some("https://ca.example/directory".to_owned()),
            domains: Names(domains.iter().map(|&name| name.to_owned()).collect()),
            terms_agreed: true,
            ..Acme::default()
        }
    }

    #[test]
    fn an_order_needs_names_a_directory_and_consent() {
        assert_eq!(Acme::default().check(), Ok(()));
        assert_eq!(acme(&["pay.example.com", "a-1.example"]).check(), Ok(()));
        for wrong in ["", "*.example.com", "Pay.example.com", "-a.example", "a..b", "a_b.example"] {
            let sentence = acme(&[wrong]).check().unwrap_err();
            assert!(sentence.starts_with("'acme.domains': '"), "{sentence}");
        }
        let refused = |acme: Acme| acme.check().unwrap_err();
        let without = Acme { directory_url: None, ..acme(&["a.example"]) };
        assert!(refused(without).contains("acme.directory_url"));
        let unread = Acme { terms_agreed: false, ..acme(&["a.example"]) };
        assert!(refused(unread).contains("acme.terms_agreed"));
        assert!(refused(acme(&[])).contains("acme.domains"));
        assert!(refused(acme(&["a.example"; 101])).contains("100"));
    }
}
