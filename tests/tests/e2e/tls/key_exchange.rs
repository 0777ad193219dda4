//! The key exchange that withstands a quantum computer, with a client whose ML-KEM is its own.

use std::sync::Arc;

use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::edge::Edge;
use rampart_tests::wire::Wire;
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{ClientConfig, Error, NamedGroup, ProtocolVersion, RootCertStore};
use sha3::{Digest as _, Sha3_256, Sha3_512};

use super::REQUEST;

/// Bytes of an encapsulation key of ML-KEM-768 (FIPS 203, section 8).
const KEY_BYTES: usize = 1_184;
/// Bytes of a ciphertext.
const CIPHERTEXT_BYTES: usize = 1_088;
/// Bytes of its second part, which hides the message.
const MESSAGE_PART_BYTES: usize = 128;

/// X25519MLKEM768 under an encapsulation key of zeros, which hides nothing: this client reads the
/// message without a decapsulation key, and so without any code that the edge has too.
#[derive(Debug)]
struct Hybrid;

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let x25519 = X25519.start()?;
        let share = [&[0_u8; KEY_BYTES][..], x25519.pub_key()].concat();
        Ok(Box::new(Started { x25519, share }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct Started {
    x25519: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, x25519) = server_share.split_at(CIPHERTEXT_BYTES);
        let part = &ciphertext[CIPHERTEXT_BYTES - MESSAGE_PART_BYTES..];
        let coefficients = part.iter().flat_map(|byte| [byte & 0xf, byte >> 4]);
        let mut message = [0_u8; 32];
        for (place, coefficient) in coefficients.enumerate() {
            // A one is half of the modulus, which is written as 8 of 16.
            message[place / 8] |= u8::from(coefficient == 8) << (place % 8);
        }
        let key = Sha3_256::digest([0_u8; KEY_BYTES]);
        let secret = Sha3_512::digest([&message[..], &key[..]].concat());
        let x25519 = self.x25519.complete(x25519)?;
        Ok(SharedSecret::from([&secret[..32], x25519.secret_bytes()].concat()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

#[tokio::test]
async fn the_hybrid_one_is_taken_where_a_client_offers_it() {
    let edge = Edge::shared().await;
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFICATE.der().clone()).unwrap();
    let mut provider = rustls::crypto::ring::default_provider();
    let without = Arc::new(provider.clone());
    provider.kx_groups.insert(0, &Hybrid);
    for (provider, group) in
        [(Arc::new(provider), NamedGroup::X25519MLKEM768), (without, NamedGroup::X25519)]
    {
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let client = builder.with_root_certificates(roots.clone()).with_no_client_auth();
        let mut wire = Wire::try_open_as(edge.address, &Arc::new(client)).await.unwrap();
        wire.exchange(REQUEST).await.unwrap().assert_status(404);
        let negotiated = wire.tls().negotiated_key_exchange_group().unwrap();
        assert_eq!(negotiated.name(), group);
    }
}
