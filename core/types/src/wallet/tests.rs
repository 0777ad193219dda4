use bech32::{Bech32, Bech32m, Hrp};
use bs58::Alphabet;
use proptest::prelude::*;

use super::*;

const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

const BITCOIN: [&str; 7] = [
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    "BC1SW50QGDZ25J",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
];
const ETHEREUM: [&str; 8] = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
];
const XRP: [&str; 3] = [
    "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh",
    "rrrrrrrrrrrrrrrrrrrrrhoLvTp",
    "rPEPPER7kfTD9w2To4CQk6UCfuHM9c6GDY",
];
const STELLAR: [&str; 2] = [
    "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
    "GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7",
];
const SHELLEY: [&str; 3] = [
    "addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x",
    "addr1gx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrzqf96k",
    "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8",
];
const BYRON: [&str; 2] = [
    "DdzFFzCqrht7PQiAhzrn6rNNoADJieTWBt8KeK9BZdUsGyX9ooYD9NpMCTGjQoUKcHN47g8JMXhvKogsGpQHtiQ65fZwiypjrC6d3a4Q",
    "Ae2tdPwUPEZLs4HtbuNey7tK4hTKrwNwYtGqp7bDfCy2WdR3P6735W5Yfpe",
];
const SOLANA: [&str; 2] =
    ["EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "So11111111111111111111111111111111111111112"];

fn accepts(chain: Chain, text: &str) -> bool {
    WalletAddress::parse(chain, text).is_ok()
}

fn samples() -> Vec<(Chain, String)> {
    let pairs = |chain, texts: &[&str]| -> Vec<(Chain, String)> {
        texts.iter().map(|text| (chain, (*text).to_owned())).collect()
    };
    [
        pairs(Chain::Bitcoin, &BITCOIN),
        pairs(Chain::Ethereum, &ETHEREUM),
        pairs(Chain::Xrp, &XRP),
        pairs(Chain::Stellar, &STELLAR),
        pairs(Chain::Cardano, &SHELLEY),
        pairs(Chain::Cardano, &BYRON),
        pairs(Chain::Solana, &SOLANA),
        vec![(Chain::Litecoin, base58(0x30, Alphabet::BITCOIN))],
        vec![(Chain::Litecoin, segwit("ltc", 0, 20))],
        vec![(Chain::Dogecoin, base58(0x1e, Alphabet::BITCOIN))],
    ]
    .concat()
}

/// A Base58Check address of some 20-byte hash.
fn base58(version: u8, alphabet: &Alphabet) -> String {
    let payload = [&[version][..], &[0x5a; 20]].concat();
    bs58::encode(payload).with_alphabet(alphabet).with_check().into_string()
}

fn segwit(prefix: &str, version: u8, program: usize) -> String {
    let version = bech32::Fe32::try_from(version).unwrap();
    bech32::segwit::encode(Hrp::parse(prefix).unwrap(), version, &vec![0x5a; program]).unwrap()
}

#[test]
fn known_addresses_are_accepted_by_their_own_chain_and_kept_as_given() {
    for (chain, text) in samples() {
        let address = WalletAddress::parse(chain, &text).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!((address.chain(), address.as_str()), (chain, text.as_str()));
    }
}

#[test]
fn an_address_of_another_chain_is_refused() {
    for (chain, text) in samples() {
        for other in Chain::ALL.into_iter().filter(|other| *other != chain) {
            // Litecoin's older script addresses are, character for character, Bitcoin's.
            let shared = other == Chain::Litecoin && text.starts_with('3');
            assert_eq!(accepts(other, &text), shared, "{text} as {other}");
        }
    }
}

#[test]
fn an_address_is_neither_trimmed_nor_completed() {
    for (chain, text) in samples() {
        for spaced in
            [format!(" {text}"), format!("{text} "), format!("{text}\n"), format!("\u{feff}{text}")]
        {
            assert!(!accepts(chain, &spaced), "{spaced:?}");
        }
        // A Solana address cut short may still be 32 bytes: it has no checksum.
        let cut = chain != Chain::Solana && accepts(chain, &text[1..]);
        assert!(!cut && !accepts(chain, "") && !accepts(chain, &text.repeat(4)), "{text}");
    }
}

#[test]
fn base58_versions_are_exactly_the_mainnet_ones() {
    for version in 0..=u8::MAX {
        let text = base58(version, Alphabet::BITCOIN);
        assert_eq!(accepts(Chain::Bitcoin, &text), [0x00, 0x05].contains(&version));
        assert_eq!(accepts(Chain::Litecoin, &text), [0x30, 0x32, 0x05].contains(&version));
        assert_eq!(accepts(Chain::Dogecoin, &text), [0x1e, 0x16].contains(&version));
        assert_eq!(accepts(Chain::Xrp, &base58(version, Alphabet::RIPPLE)), version == 0);
    }
}

#[test]
fn witness_addresses_follow_bip_173_and_350() {
    for text in [
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
        "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
        "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
        "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
        "bc1pw5dgrnzv",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
        "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
        "bc1gmk9yu",
        "bc1Qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
        "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    ] {
        assert!(!accepts(Chain::Bitcoin, text), "{text}");
    }
    for (version, program) in [(0, 20), (0, 32), (1, 32)] {
        assert!(accepts(Chain::Litecoin, &segwit("ltc", version, program)));
        assert!(!accepts(Chain::Litecoin, &segwit("tltc", version, program)));
        assert!(!accepts(Chain::Litecoin, &segwit("bc", version, program)));
        assert!(!accepts(Chain::Dogecoin, &segwit("doge", version, program)));
    }
}

#[test]
fn ethereum_addresses_pass_in_one_case_or_in_the_checksum_s() {
    for text in ETHEREUM {
        let digits = &text[2..];
        let (lower, upper) = (digits.to_lowercase(), digits.to_uppercase());
        assert!(accepts(Chain::Ethereum, &format!("0x{lower}")));
        assert!(accepts(Chain::Ethereum, &format!("0x{upper}")));
        assert!(!accepts(Chain::Ethereum, &format!("0X{lower}")));
        assert!(!accepts(Chain::Ethereum, digits));
    }
}

#[test]
fn an_ethereum_address_is_spelled_in_lower_case_and_by_its_checksum() {
    for text in &ETHEREUM[..4] {
        let lower = text.to_lowercase();
        for given in [*text, &*lower] {
            let spellings = WalletAddress::parse(Chain::Ethereum, given).unwrap().spellings();
            assert_eq!(spellings, [given, &*lower, *text]);
        }
    }
}

#[test]
fn a_letter_in_the_wrong_case_breaks_the_ethereum_checksum() {
    for text in &ETHEREUM[..4] {
        for index in (2..text.len()).filter(|index| text.as_bytes()[*index].is_ascii_alphabetic()) {
            let mut bytes = text.as_bytes().to_vec();
            bytes[index] ^= 0x20;
            assert!(
                !accepts(Chain::Ethereum, &String::from_utf8(bytes).unwrap()),
                "{text} {index}"
            );
        }
    }
}

#[test]
fn ledger_and_stellar_addresses_with_a_tag_inside_are_refused() {
    assert!(!accepts(Chain::Xrp, "XVLhHMPHU98es4dbozjVtdWzVrDjtV5AqEL4xcZj5whKbmc"));
    assert!(!accepts(
        Chain::Stellar,
        "MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ"
    ));
    let seed = stellar_strkey::ed25519::PrivateKey([7; 32]).to_string();
    assert!(seed.starts_with('S') && !accepts(Chain::Stellar, &seed));
    assert!(!accepts(Chain::Stellar, &STELLAR[0].to_lowercase()));
}

#[test]
fn cardano_takes_mainnet_payment_addresses_only() {
    for text in [
        "stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw",
        "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae",
        "37btjrVyb4KDXBNC4haBVPCrro8AQPHwvCMp3RFhhSVWwfFmZ6wwzSK6JK1hY6wHNmtrpTf1kdbva8TCneM2YsiXT7mrzT21EacHnPpz5YyUdj64na",
    ] {
        assert!(!accepts(Chain::Cardano, text), "{text}");
    }
    let shelley = |prefix: &str, header: u8, hashes: usize| {
        let bytes = [vec![header], vec![0x5a; hashes]].concat();
        bech32::encode::<Bech32>(Hrp::parse(prefix).unwrap(), &bytes).unwrap()
    };
    for kind in 0..16_u8 {
        for network in 0..16_u8 {
            let header = kind << 4 | network;
            let hashes = if kind < 4 { 56 } else { 28 };
            // Kinds 4 and 5 end in a pointer, 8 to 13 do not exist, 14 and 15 are stake addresses.
            let payment = matches!(kind, 0..=3 | 6..=7) && network == 1;
            assert_eq!(accepts(Chain::Cardano, &shelley("addr", header, hashes)), payment);
            assert!(!accepts(Chain::Cardano, &shelley("addr_test", header, hashes)));
            assert!(!accepts(Chain::Cardano, &shelley("addr", header, hashes + 1)));
            assert!(!accepts(Chain::Cardano, &shelley("addr", header, hashes - 1)));
        }
    }
    let modern = [vec![0x61], vec![0x5a; 28]].concat();
    let modern = bech32::encode::<Bech32m>(Hrp::parse("addr").unwrap(), &modern).unwrap();
    assert!(!accepts(Chain::Cardano, &modern));
    assert!(!accepts(Chain::Cardano, &"1".repeat(ADDRESS_CHARS_MAX)));
}

#[test]
fn a_solana_address_is_exactly_32_bytes() {
    for bytes in 0..=ADDRESS_CHARS_MAX / 2 {
        for fill in [0x00, 0x5a, 0xff] {
            let text = bs58::encode(vec![fill; bytes]).into_string();
            assert_eq!(accepts(Chain::Solana, &text), bytes == 32, "{text}");
        }
    }
}

#[test]
fn one_wrong_character_is_refused_where_there_is_a_checksum() {
    for (chain, text) in samples() {
        let alphabet = match chain {
            Chain::Solana | Chain::Ethereum => continue,
            Chain::Stellar => BASE32,
            _ if text.to_lowercase().starts_with("bc1") => BECH32,
            _ if text.starts_with("ltc1") || text.starts_with("addr1") => BECH32,
            _ => BASE58,
        };
        let upper = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        for index in 0..text.len() {
            for wrong in alphabet.bytes() {
                let mut bytes = text.as_bytes().to_vec();
                bytes[index] = if upper { wrong.to_ascii_uppercase() } else { wrong };
                if bytes != text.as_bytes() {
                    let changed = String::from_utf8(bytes).unwrap();
                    assert!(!accepts(chain, &changed), "{changed} for {text}");
                }
            }
        }
    }
}

#[test]
fn addresses_are_equal_when_they_name_the_same_destination() {
    let parse = |chain, text: &str| WalletAddress::parse(chain, text).unwrap();
    for (chain, left, right) in [
        (Chain::Bitcoin, BITCOIN[2], BITCOIN[3]),
        (Chain::Ethereum, ETHEREUM[0], &ETHEREUM[0].to_lowercase()),
        (Chain::Cardano, SHELLEY[2], &SHELLEY[2].to_uppercase()),
    ] {
        assert_eq!(parse(chain, left), parse(chain, right));
        assert_eq!(parse(chain, left).key(), parse(chain, right).key());
    }
    assert_ne!(parse(Chain::Bitcoin, BITCOIN[0]), parse(Chain::Bitcoin, BITCOIN[1]));
    assert_ne!(parse(Chain::Bitcoin, BITCOIN[1]), parse(Chain::Litecoin, BITCOIN[1]));
}

#[test]
fn every_chain_parses_back_and_has_a_tag_kind() {
    for chain in Chain::ALL {
        assert_eq!(chain.as_str().parse(), Ok(chain));
        let kind = match chain {
            Chain::Xrp => TagKind::Number,
            Chain::Stellar => TagKind::Memo,
            _ => TagKind::None,
        };
        assert_eq!(chain.tag_kind(), kind);
    }
    assert_eq!("Bitcoin".parse::<Chain>(), Err(UnknownChain));
}

#[test]
fn fuzz_addresses() {
    rampart_fuzz::fuzz("addresses", |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        for chain in Chain::ALL {
            let Ok(address) = WalletAddress::parse(chain, text) else { continue };
            // Nothing is trimmed, repaired or guessed: coins go to exactly what was sent.
            assert_eq!(address.as_str(), text);
            assert!(
                text.len() <= ADDRESS_CHARS_MAX && text.bytes().all(|b| b.is_ascii_alphanumeric())
            );
            // An address of Solana has neither a checksum nor one length.
            if chain != Chain::Solana {
                assert!(WalletAddress::parse(chain, &format!("{text}1")).is_err());
                assert!(WalletAddress::parse(chain, &text[1..]).is_err());
            }
        }
    });
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(
        text in ".*",
        base58 in "[1-9A-HJ-NP-Za-km-z]{0,130}",
        bech32 in "(bc1|ltc1|addr1|ADDR1)[02-9ac-hj-np-z]{0,120}",
        hex in "0x[0-9a-fA-F]{38,42}",
        ones in "1{0,130}[1-9A-HJ-NP-Za-km-z]{0,10}",
    ) {
        for text in [text, base58, bech32, hex, ones] {
            for chain in Chain::ALL {
                let _ = WalletAddress::parse(chain, &text);
            }
        }
    }

    #[test]
    fn any_bytes_in_a_valid_envelope_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..70),
    ) {
        let shelley = bech32::encode::<Bech32>(Hrp::parse("addr").unwrap(), &bytes).unwrap();
        let base58 = bs58::encode(&bytes).into_string();
        let checked = bs58::encode(&bytes).with_check().into_string();
        for text in [shelley, base58, checked] {
            for chain in Chain::ALL {
                let _ = WalletAddress::parse(chain, &text);
            }
        }
    }
}
