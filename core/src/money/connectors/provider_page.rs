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

/// True if a result of `payment.create` leads its payer to nothing but a URL that is not allowed, or a
/// token that no form takes.
pub(crate) fn is_wrong(result: &Value, has_card_form: bool) -> bool {
    let (url, token) = (&result["redirectUrl"], &result["clientToken"]);
    let is_there = url.as_str().is_some_and(is_allowed) || (has_card_form && token.is_string());
    let names_any = !url.is_null() || !token.is_null();
    names_any && !is_there && result["bankTransfer"].is_null()
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
            (json!({"redirectUrl": "/pay", "bankTransfer": {}}), false),
            (json!({"redirectUrl": null}), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            for has_card_form in [false, true] {
                assert_eq!(is_wrong(&result, has_card_form), wrong, "{result}");
            }
        }
    }

    #[test]
    fn a_token_leads_to_a_form_where_there_is_one() {
        for (result, without, with) in [
            (json!({"clientToken": "t"}), true, false),
            (json!({"clientToken": 1}), true, true),
            (json!({"clientToken": "t", "redirectUrl": "/pay"}), true, false),
            (json!({"clientToken": "t", "redirectUrl": "https://psp.example/pay"}), false, false),
            (json!({"clientToken": "t", "bankTransfer": {}}), false, false),
        ] {
            assert_eq!(is_wrong(&result, false), without, "{result}");
            assert_eq!(is_wrong(&result, true), with, "{result}");
        }
    }
}
