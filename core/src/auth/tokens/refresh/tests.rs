use proptest::prelude::*;

use super::*;

fn generated() -> (String, RefreshToken) {
    let clock = Clock::system();
    RefreshToken::generate(&clock, ClientId::from(clock.uuid().unwrap())).unwrap()
}

#[test]
fn a_generated_token_parses_back() {
    let (text, token) = generated();
    assert_eq!(text.len(), PREFIX.len() + CLIENT_CHARS + 1 + SECRET_CHARS);
    assert_eq!(RefreshToken::parse(&text), Some(token));
    assert_ne!(generated().1.digest, token.digest);
}

#[test]
fn a_malformed_refresh_token_is_refused() {
    let (text, _) = generated();
    let secret = &text[text.len() - SECRET_CHARS..];
    for bad in [
        String::new(),
        "rr_".to_owned(),
        text[1..].to_owned(),
        text[..text.len() - 1].to_owned(),
        format!("{text}A"),
        format!(" {text}"),
        text.replace("rr_", "rk_"),
        format!("rr_{}_{secret}", "g".repeat(CLIENT_CHARS)),
        // A secret may begin with the separator.
        format!("rr_{}{}_", "0".repeat(CLIENT_CHARS), secret.replace('_', "a")),
        format!("rr_{}_{}=", "0".repeat(CLIENT_CHARS), &secret[1..]),
        format!("rr_{}é_{secret}", "0".repeat(CLIENT_CHARS - 1)),
    ] {
        assert_eq!(RefreshToken::parse(&bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "(rr_)?[0-9a-f_é]{0,80}", other in ".*") {
        let _ = (RefreshToken::parse(&text), RefreshToken::parse(&other));
    }
}
