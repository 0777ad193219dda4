//! ring has no key exchange that withstands a quantum computer: X25519MLKEM768 is X25519 of ring
//! beside ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem), as secure as the stronger of the two.

use ml_kem::kem::Encapsulate as _;
use ml_kem::{EncapsulationKey, Key, MlKem768};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Bytes of an X25519 share; the other part of either share comes before it.
const X25519_BYTES: usize = 32;

/// The group; it is for TLS 1.3 alone.
#[derive(Debug)]
pub(super) struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    /// Clients begin an exchange, and servers of TLS 1.2; the edge does neither with this group.
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Err(Error::General("X25519MLKEM768 is a server's alone".to_owned()))
    }

    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, x25519) = split(client_share)?;
        let key: &Key<EncapsulationKey<MlKem768>> = key.try_into().map_err(|_| invalid())?;
        let key = EncapsulationKey::<MlKem768>::new(key).map_err(|_| invalid())?;
        let x25519 = X25519.start_and_complete(x25519)?;
        let (ciphertext, secret) = key.encapsulate();
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &x25519.pub_key].concat(),
            secret: joined(&secret, &x25519.secret),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// The two parts of a share: that of ML-KEM, and that of X25519.
fn split(share: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let end = share.len().checked_sub(X25519_BYTES).ok_or_else(invalid)?;
    Ok(share.split_at(end))
}

fn joined(ml_kem: &[u8], x25519: &SharedSecret) -> SharedSecret {
    SharedSecret::from([ml_kem, x25519.secret_bytes()].concat())
}

fn invalid() -> Error {
    PeerMisbehaved::InvalidKeyShare.into()
}

#[cfg(test)]
mod tests {
    use ml_kem::kem::{Decapsulate as _, Kem as _, KeyExport as _};
    use ml_kem::{Ciphertext, DecapsulationKey};

    use super::*;

    /// A client that waits for the server's share.
    struct Client {
        x25519: Box<dyn ActiveKeyExchange>,
        secret: DecapsulationKey<MlKem768>,
        share: Vec<u8>,
    }

    impl Client {
        fn start() -> Self {
            let x25519 = X25519.start().unwrap();
            let (secret, public) = MlKem768::generate_keypair();
            let share = [&public.to_bytes()[..], x25519.pub_key()].concat();
            Self { x25519, secret, share }
        }

        fn complete(self, server_share: &[u8]) -> Result<SharedSecret, Error> {
            let (ciphertext, x25519) = split(server_share)?;
            let ciphertext: &Ciphertext<MlKem768> = ciphertext.try_into().map_err(|_| invalid())?;
            let secret = self.secret.decapsulate(ciphertext);
            Ok(joined(&secret, &self.x25519.complete(x25519)?))
        }
    }

    #[test]
    fn both_sides_have_the_same_secret_and_shares_of_the_registered_length() {
        let client = Client::start();
        assert_eq!(client.share.len(), 1_184 + 32);
        let server = X25519MlKem768.start_and_complete(&client.share).unwrap();
        assert_eq!(server.pub_key.len(), 1_088 + 32);
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
    }

    #[test]
    fn a_broken_share_is_refused() {
        let share = Client::start().share;
        let with_coefficients_too_large = [&[0xff; 1_184][..], &share[1_184..]].concat();
        let longer = [&share[..], b"x"].concat();
        for broken in [&share[1..], &longer, &[], &share[..31], &with_coefficients_too_large] {
            assert!(X25519MlKem768.start_and_complete(broken).is_err(), "{}", broken.len());
        }
        assert!(Client::start().complete(&share).is_err());
    }
}
