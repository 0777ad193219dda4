//! An authenticator app in software (RFC 6238).

use rampart_core::platform::clock::Clock;
use ring::hmac;

/// The key that a page shows, as an app reads it (RFC 4648, base32).
pub fn shown_key(page: &str) -> Vec<u8> {
    let (_, rest) = page.split_once("<code>").expect("the page shows no key");
    let text = rest.split('<').next().unwrap();
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == letter);
        bits = (bits << 5) | u32::try_from(value.unwrap()).unwrap();
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).unwrap());
        }
    }
    bytes
}

/// The code that the app shows now.
pub fn code(clock: &Clock, key: &[u8]) -> String {
    let step = clock.now().timestamp() / 30;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let at = usize::from(tag.as_ref()[19] & 15);
    let word = u32::from_be_bytes(tag.as_ref()[at..at + 4].try_into().unwrap());
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}
