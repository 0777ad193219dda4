//! Quote tokens: JWE in compact serialization (RFC 7516, section 7.1) with `alg` `dir` and `enc`
//! `A256GCM` (RFC 7518, sections 4.5 and 5.3).
//!
//! The header is not negotiated. There is one header per key, byte for byte, and a token with any
//! other header is refused before anything is decoded: no `zip`, `crit`, unknown, repeated or
//! reordered member ever reaches a parser. The lengths of nonce and tag are checked here too,
//! because `josekit` would verify a shortened tag.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use josekit::jwe::{self, Dir};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::platform::clock::Clock;
use crate::platform::crypto::KEY_BYTES;
use crate::platform::error::{Error, Result};

/// Longest token that is sealed or opened, in bytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 4 * 1024;

const TYP: &str = "quote+jwe";
/// Base64url characters of a nonce of 96 bits.
const NONCE_CHARS: usize = 16;
/// Base64url characters of a tag of 128 bits.
const TAG_CHARS: usize = 22;
/// Bytes of a token other than its header and ciphertext.
const PARTS_BYTES: usize = NONCE_CHARS + TAG_CHARS + 4;

/// A key with the encoded header of its tokens.
#[derive(Debug)]
pub(crate) struct SealingKey {
    header: String,
    key: LessSafeKey,
}

impl SealingKey {
    /// A key with this key id, which must be digits.
    ///
    /// # Errors
    /// Never for [`KEY_BYTES`]; the library's type says it could.
    pub(crate) fn new(key_id: &str, key: &[u8; KEY_BYTES]) -> Result<Self> {
        let key =
            UnboundKey::new(&AES_256_GCM, key).map_err(|_| Error::invariant("seal a quote"))?;
        Ok(Self { header: encoded_header(key_id), key: LessSafeKey::new(key) })
    }

    /// Encrypts `text`. Every quote is sealed and few are opened, so sealing is implemented here: with
    /// `josekit`, which opens them, a quote takes 1.3 to 1.45 times the CPU time (row c of
    /// `make bench`).
    ///
    /// # Errors
    /// When the token would be longer than [`TOKEN_BYTES_MAX`], or without entropy for the nonce.
    pub(crate) fn seal(&self, clock: &Clock, mut text: Vec<u8>) -> Result<String> {
        let nonce: [u8; NONCE_LEN] = clock.nonce()?;
        // The encoded header is the additional authenticated data (RFC 7516, 5.1).
        let aad = Aad::from(self.header.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(unique, aad, &mut text)
            .map_err(|_| Error::invariant("seal a quote"))?;
        let mut token = String::with_capacity(self.header.len() + 2 * text.len() + PARTS_BYTES);
        token.push_str(&self.header);
        // The encrypted key is empty with `dir`.
        token.push('.');
        for part in [&nonce[..], &text, tag.as_ref()] {
            token.push('.');
            URL_SAFE_NO_PAD.encode_string(part, &mut token);
        }
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Error::invariant("keep a quote within its longest length"));
        }
        Ok(token)
    }
}

/// A well-formed token that is not decrypted yet.
#[derive(Debug)]
pub(crate) struct Sealed<'a> {
    token: &'a str,
}

impl<'a> Sealed<'a> {
    /// Checks the token's header against this key id and the form of its parts.
    pub(crate) fn parse(token: &'a str, key_id: &str) -> Option<Self> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let mut parts = token.split('.');
        let mut next = || parts.next();
        let (header, key, nonce, _, tag) = (next()?, next()?, next()?, next()?, next()?);
        let well_formed = parts.next().is_none()
            && key.is_empty()
            && nonce.len() == NONCE_CHARS
            && tag.len() == TAG_CHARS
            && header == encoded_header(key_id);
        well_formed.then_some(Self { token })
    }

    /// The plaintext; `None` when the token was altered or sealed under another key.
    pub(crate) fn open(&self, key: &[u8; KEY_BYTES]) -> Option<Vec<u8>> {
        let decrypter = Dir.decrypter_from_bytes(key).ok()?;
        jwe::deserialize_compact(self.token, &decrypter).ok().map(|(plain, _)| plain)
    }
}

fn encoded_header(key_id: &str) -> String {
    let header = format!(r#"{{"alg":"dir","enc":"A256GCM","typ":"{TYP}","kid":"{key_id}"}}"#);
    URL_SAFE_NO_PAD.encode(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn sealed(key_id: &str, plain: &[u8]) -> Result<String> {
        SealingKey::new(key_id, &KEY)?.seal(&Clock::system(), plain.to_vec())
    }

    fn with_header(header: &str) -> String {
        let token = sealed("1", b"plain").unwrap();
        let rest = token.split_once('.').unwrap().1;
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
    }

    #[test]
    fn the_header_is_as_documented() {
        let token = sealed("20000", b"").unwrap();
        let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        let text = r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"20000"}"#;
        assert_eq!(str::from_utf8(&header).unwrap(), text);
        assert!(Sealed::parse(&token, "20000").is_some());
        assert!(Sealed::parse(&token, "20001").is_none());
    }

    #[test]
    fn any_other_header_is_refused_before_decryption() {
        let exact = r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#;
        assert!(Sealed::parse(&with_header(exact), "1").is_some());
        for header in [
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1","zip":"DEF"}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1","crit":["exp"]}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1","x":1}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1","kid":"1"}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1","jku":"https://a.example"}"#,
            r#"{"alg":"none","alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"A256KW","enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"RSA1_5","enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"PBES2-HS256+A128KW","p2c":2000000000,"enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"dir","enc":"A128CBC-HS256","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"dir","enc":"A128GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"JWT","kid":"1"}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":1}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"../1"}"#,
            r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe"}"#,
            r#"{"alg":"dir","enc":"A256GCM","kid":"1"}"#,
            r#"{"enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            r#"{"alg":"dir","typ":"quote+jwe","kid":"1"}"#,
            r#" {"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"1"}"#,
            "{}",
            "",
        ] {
            assert!(Sealed::parse(&with_header(header), "1").is_none(), "{header}");
        }
    }

    #[test]
    fn parts_of_another_count_or_length_are_refused() {
        let token = sealed("1", b"plain").unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let [header, _, nonce, text, tag] = parts[..] else { panic!("{token}") };
        for bad in [
            String::new(),
            "....".to_owned(),
            format!("{header}..{nonce}.{text}"),
            format!("{header}.{nonce}.{text}.{tag}"),
            format!("{token}."),
            format!("{token}.{tag}"),
            format!("{header}.AAAA.{nonce}.{text}.{tag}"),
            format!("{header}..{}.{text}.{tag}", &nonce[..12]),
            format!("{header}...{text}.{tag}"),
            format!("{header}..{nonce}.{text}.{}", &tag[..2]),
            format!("{header}..{nonce}.{text}."),
            format!("{header}..{nonce}.{text}.{tag}=="),
            format!("{header}..{nonce}.{}.{tag}", "A".repeat(TOKEN_BYTES_MAX)),
        ] {
            assert!(Sealed::parse(&bad, "1").is_none(), "{bad}");
        }
    }

    #[test]
    fn a_shortened_tag_would_pass_the_library_and_does_not_pass_here() {
        let token = sealed("1", b"plain").unwrap();
        let short = &token[..token.len() - 6];
        assert!(Sealed { token: short }.open(&KEY).is_some());
        assert!(Sealed::parse(short, "1").is_none());
    }

    #[test]
    fn a_plain_text_too_long_for_a_token_is_an_internal_error() {
        assert!(sealed("1", &[b'a'; 2_900]).is_ok());
        assert!(sealed("1", &[b'a'; TOKEN_BYTES_MAX]).is_err());
    }
}
