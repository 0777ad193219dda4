//! URLs of providers' pages, as connectors name them.

use serde_json::Value;
use url::{Host, Url};

/// True if our pages may lead to it: https, or http at a loopback address, where the simulator of a
/// provider runs. A connector is trusted with money and identities, not with where people are led.
pub(crate) fn is_allowed(text: &str) -> bool {
    // The parser mends `https:pay`, which a browser takes for a path of ours.
    Url::parse(text).is_ok_and(|url| match (url.scheme(), url.host()) {
        ("https", Some(_)) => text.starts_with("https://"),
        ("http", Some(Host::Ipv4(address))) => text.starts_with("http://") && address.is_loopback(),
        _ => false,
    })
}

/// True if a result of `payment.create` leads its payer to nothing but a URL that is not allowed.
pub(crate) fn is_wrong(result: &Value) -> bool {
    let others = [&result["bankTransfer"], &result["clientToken"]];
    let url = &result["redirectUrl"];
    !url.is_null()
        && others.iter().all(|other| other.is_null())
        && !url.as_str().is_some_and(is_allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_of_https_or_on_this_machine() {
        for (url, allowed) in [
            ("https://psp.example/pay?a=1", true),
            ("http://127.0.0.1:8080/pay", true),
            ("http://127.0.0.1.evil.example/pay", false),
            ("http://127.0.0.1@evil.example/pay", false),
            ("http://psp.example/pay", false),
            ("javascript:alert(1)", false),
            ("https:pay", false),
            (" https://psp.example/pay", false),
            ("/pay", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(url), allowed, "{url}");
        }
    }

    #[test]
    fn a_wrong_page_is_told_from_none() {
        for (result, wrong) in [
            (json!({"redirectUrl": "javascript:alert(1)"}), true),
            (json!({"redirectUrl": 1}), true),
            (json!({"redirectUrl": "https://psp.example/pay"}), false),
            (json!({"redirectUrl": "/pay", "clientToken": "t"}), false),
            (json!({"redirectUrl": null}), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            assert_eq!(is_wrong(&result), wrong, "{result}");
        }
    }
}
