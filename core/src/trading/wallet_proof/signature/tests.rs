use proptest::prelude::*;
use secp256k1::ecdsa::RecoverableSignature;
use secp256k1::{Message, PublicKey, SecretKey};
use sha3::{Digest as _, Keccak256};

use super::*;

fn genuine(chain: Chain, address: &str, message: &str, signature: &str) -> bool {
    is_genuine(&WalletAddress::parse(chain, address).unwrap(), message, signature)
}

/// Signatures made by other programs: web3.js, bitcoinjs-message, and those of BIP-322.
const VECTORS: [(Chain, &str, &str, &str); 5] = [
    (
        Chain::Ethereum,
        "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23",
        "Some data",
        "0xb91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c",
    ),
    (
        Chain::Bitcoin,
        "1F3sAm6ZtwLAUnj7d38pGFxtP3RVEvtsbV",
        "This is an example of a signed message.",
        "H9L5yLFjti0QTHhPyFrZCT1V/MMnBtXKmoiKDZ78NDBjERki6ZTQZdSMCtkgoNmp17By9ItJr8o7ChX0XxY91nk=",
    ),
    (
        Chain::Bitcoin,
        "bc1q9vza2e8x573nczrlzms0wvx3gsqjx7vavgkx0l",
        "Hello World",
        "AkcwRAIgZRfIY3p7/DoVTty6YZbWS71bc5Vct9p9Fia83eRmw2QCICK/ENGfwLtptFluMGs2KsqoNSk89pO7F29zJLUx9a/sASECx/EgAxlkQpQ9hYjgGu6EBCPMVPwVIVJqO4XCsMvViHI=",
    ),
    (
        Chain::Bitcoin,
        "bc1q9vza2e8x573nczrlzms0wvx3gsqjx7vavgkx0l",
        "",
        "AkcwRAIgM2gBAQqvZX15ZiysmKmQpDrG83avLIT492QBzLnQIxYCIBaTpOaD20qRlEylyxFSeEA2ba9YOixpX8z46TSDtS40ASECx/EgAxlkQpQ9hYjgGu6EBCPMVPwVIVJqO4XCsMvViHI=",
    ),
    (
        Chain::Bitcoin,
        "bc1ppv609nr0vr25u07u95waq5lucwfm6tde4nydujnu8npg4q75mr5sxq8lt3",
        "Hello World",
        "AUHd69PrJQEv+oKTfZ8l+WROBHuy9HKrbFCJu7U1iK2iiEy1vMU5EfMtjc+VSHM7aU0SDbak5IUZRVno2P5mjSafAQ==",
    ),
];

#[test]
fn signatures_of_other_programs_are_genuine() {
    for (chain, address, message, signature) in VECTORS {
        assert!(genuine(chain, address, message, signature), "{address} {message:?}");
    }
}

#[test]
fn another_message_another_address_or_another_signature_is_none() {
    let others =
        ["bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"];
    for (chain, address, message, signature) in VECTORS {
        assert!(!genuine(chain, address, &format!("{message}."), signature), "{address}");
        if chain == Chain::Bitcoin {
            for other in others {
                assert!(!genuine(chain, other, message, signature), "{address}");
            }
        }
        // A byte in the middle is of `r` or `s`.
        let mut altered = signature.to_owned().into_bytes();
        let middle = altered.len() / 2;
        altered[middle] = if altered[middle] == b'1' { b'2' } else { b'1' };
        assert!(!genuine(chain, address, message, &String::from_utf8(altered).unwrap()));
    }
}

/// A key, the same in every run.
fn key() -> SecretKey {
    SecretKey::from_secret_bytes([7; 32]).unwrap()
}

/// Its signature of a hash, and the number by which its public key is recovered.
fn sign(hash: [u8; 32]) -> ([u8; 64], u8) {
    let message = Message::from_digest(hash);
    let signature = RecoverableSignature::sign_ecdsa_recoverable(message, &key());
    let (recovery, bytes) = signature.serialize_compact();
    (bytes, recovery.to_u8())
}

#[test]
fn an_account_signs_in_every_spelling_of_its_signature() {
    let public = PublicKey::from_secret_key(&key()).serialize_uncompressed();
    let account = Keccak256::digest(&public[1..]);
    let address = format!("0x{}", hex::encode(&account[12..]));
    let (rs, v) = sign(evm::hash("mine"));
    let rs = hex::encode(rs);
    for text in
        [format!("0x{rs}{:02x}", v + 27), format!("{rs}{v:02x}"), format!(" 0x{rs}{v:02x}\n")]
    {
        assert!(genuine(Chain::Ethereum, &address, "mine", &text), "{text}");
        assert!(!genuine(Chain::Ethereum, &address, "yours", &text));
    }
    for text in ["", "0x", "0xzz", &rs, &format!("0x{rs}{:02x}", v + 31)] {
        assert!(!genuine(Chain::Ethereum, &address, "mine", text), "{text}");
    }
}

#[test]
fn a_key_signs_for_each_of_its_addresses() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let hash = bitcoin::hash160(&PublicKey::from_secret_key(&key()).serialize());
    let base58 = |version: u8, hash: [u8; 20]| {
        bs58::encode([&[version][..], &hash].concat()).with_check().into_string()
    };
    let wrapped = bitcoin::hash160(&[&[0x00, 0x14][..], &hash].concat());
    let prefix = bech32::Hrp::parse("bc").unwrap();
    let addresses = [
        (base58(0x00, hash), Chain::Bitcoin, &bitcoin::BITCOIN),
        (base58(0x05, wrapped), Chain::Bitcoin, &bitcoin::BITCOIN),
        (bech32::segwit::encode_v0(prefix, &hash).unwrap(), Chain::Bitcoin, &bitcoin::BITCOIN),
        (base58(0x30, hash), Chain::Litecoin, &bitcoin::LITECOIN),
        (base58(0x1e, hash), Chain::Dogecoin, &bitcoin::DOGECOIN),
    ];
    for (address, chain, format) in addresses {
        let (signature, recovery) = sign(bitcoin::hash(format, "mine"));
        let text = |header: u8| {
            let bytes = [&[header + recovery][..], &signature].concat();
            STANDARD.encode(bytes)
        };
        for header in [31, 35, 39] {
            assert!(genuine(chain, &address, "mine", &text(header)), "{address} {header}");
        }
        assert!(!genuine(chain, &address, "mine", &text(27)), "of the uncompressed key");
        assert!(!genuine(chain, &address, "yours", &text(31)));
    }
}

#[test]
fn a_solana_account_signs_with_its_own_key() {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let address = bs58::encode(pair.public_key()).into_string();
    let signature = bs58::encode(pair.sign(b"mine")).into_string();
    assert!(genuine(Chain::Solana, &address, "mine", &signature));
    assert!(!genuine(Chain::Solana, &address, "yours", &signature));
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,200}", bytes: Vec<u8>) {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        for (chain, address, message, _) in VECTORS {
            prop_assert!(!genuine(chain, address, message, &text));
            prop_assert!(!genuine(chain, address, message, &encoded));
        }
    }
}
