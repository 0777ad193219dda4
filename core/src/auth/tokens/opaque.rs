//! Opaque tokens that name their client, for the statements that look them up: its id, and a secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::platform::clock::{Clock, NoEntropy};
use crate::platform::db::tenant;
use rampart_types::ClientId;

/// Characters of the client's id: a UUID in bare hexadecimal.
const CLIENT_CHARS: usize = 32;
/// Random bytes of the secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// Generates a token of the client.
///
/// # Errors
/// Without entropy.
pub(crate) fn generate(clock: &Clock, client: ClientId) -> Result<String, NoEntropy> {
    let secret = URL_SAFE_NO_PAD.encode(clock.random_bytes::<SECRET_BYTES>()?);
    Ok(format!("{}{secret}", client.uuid().simple()))
}

/// The client in a token's text; not verified. `None` when it is malformed. The request is of that
/// client from now on, if it was of none.
pub(crate) fn parse_client(text: &str) -> Option<ClientId> {
    let (client, secret) = text.split_at_checked(CLIENT_CHARS)?;
    let client = Uuid::try_parse(client).ok().filter(|_| !secret.is_empty())?;
    tenant::enter(client.into());
    Some(client.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_names_its_client() {
        let clock = Clock::system();
        let client = ClientId::from(clock.uuid().unwrap());
        let token = generate(&clock, client).unwrap();
        assert_eq!(parse_client(&token), Some(client));
        assert_ne!(generate(&clock, client).unwrap(), token);
        assert_eq!(parse_client(&token[..CLIENT_CHARS]), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[0-9a-fé]{30,40}") {
            let _ = (parse_client(&text), parse_client(&near));
        }
    }
}
