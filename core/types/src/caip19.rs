//! Chain-agnostic asset ids (CAIP-19) in one spelling per asset.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use super::checked_text::{refusal, text_form};

refusal!(
    /// The text does not follow the CAIP-19 grammar, or its namespace's own profile.
    InvalidCaip19,
    "not a CAIP-19 asset id"
);

/// Lengths by CAIP-2 and CAIP-19, in characters.
const NAMESPACE_CHARS: RangeInclusive<usize> = 3..=8;
const CHAIN_REFERENCE_CHARS: RangeInclusive<usize> = 1..=32;
const ASSET_REFERENCE_CHARS: RangeInclusive<usize> = 1..=128;
const TOKEN_ID_CHARS: RangeInclusive<usize> = 1..=78;

/// An asset id such as `eip155:1/slip44:60` or `swift:0/iso4217:EUR`.
///
/// CAIP-19 leaves spelling to each namespace, so parsing brings an id to the canonical form that is
/// emitted and compared: fiat codes in capitals, EVM token addresses in lower case (their case is a
/// checksum only), and Solana's `spl:` as the registered `token:`. Equality is equality of assets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caip19(Arc<str>);

impl Caip19 {
    /// The id in canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Caip19 {
    type Err = InvalidCaip19;

    fn from_str(text: &str) -> Result<Self, InvalidCaip19> {
        let id = Parts::split(text).filter(Parts::is_grammatical).ok_or(InvalidCaip19)?;
        id.canonical().map(|text| Self(text.into())).ok_or(InvalidCaip19)
    }
}

impl fmt::Display for Caip19 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_form!(Caip19, borrowed, pattern "^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}/[-a-z0-9]{3,8}:[-.%a-zA-Z0-9]{1,128}");

/// The parts of an id: `chain:chain_reference/asset:asset_reference[/token_id]`.
struct Parts<'a> {
    chain: &'a str,
    chain_reference: &'a str,
    asset: &'a str,
    asset_reference: &'a str,
    token_id: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let (chain_id, rest) = text.split_once('/')?;
        let (asset_name, token_id) = match rest.split_once('/') {
            Some((asset_name, token_id)) => (asset_name, Some(token_id)),
            None => (rest, None),
        };
        let (chain, chain_reference) = chain_id.split_once(':')?;
        let (asset, asset_reference) = asset_name.split_once(':')?;
        Some(Self { chain, chain_reference, asset, asset_reference, token_id })
    }

    fn is_grammatical(&self) -> bool {
        let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let chain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let asset = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'%');
        consists_of(self.chain, NAMESPACE_CHARS, lower)
            && consists_of(self.chain_reference, CHAIN_REFERENCE_CHARS, chain)
            && consists_of(self.asset, NAMESPACE_CHARS, lower)
            && consists_of(self.asset_reference, ASSET_REFERENCE_CHARS, asset)
            && self.token_id.is_none_or(|id| consists_of(id, TOKEN_ID_CHARS, asset))
    }

    /// The canonical form; `None` where the namespace's profile forbids the reference.
    fn canonical(&self) -> Option<String> {
        let reference = self.asset_reference;
        let (asset, reference) = match (self.chain, self.asset) {
            ("swift", "iso4217") => {
                let code =
                    reference.len() == 3 && reference.bytes().all(|b| b.is_ascii_alphabetic());
                (self.asset, code.then(|| reference.to_ascii_uppercase())?)
            }
            ("eip155", "erc20" | "erc721" | "erc1155") => {
                (self.asset, reference.to_ascii_lowercase())
            }
            ("solana", "spl") => ("token", reference.to_owned()),
            _ => (self.asset, reference.to_owned()),
        };
        let tail = self.token_id.map(|id| format!("/{id}")).unwrap_or_default();
        Some(format!("{}:{}/{asset}:{reference}{tail}", self.chain, self.chain_reference))
    }
}

fn consists_of(text: &str, chars: RangeInclusive<usize>, allowed: impl Fn(u8) -> bool) -> bool {
    chars.contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EMITTED: [&str; 16] = [
        "swift:0/iso4217:EUR",
        "bip122:000000000019d6689c085ae165831e93/slip44:0",
        "bip122:12a765e31ffd4059bada1e25190f6e98/slip44:2",
        "bip122:1a91e3dace36e2be3bf030a65679fe82/slip44:3",
        "bip122:000000000000000000651ef99cb9fcbe/slip44:145",
        "eip155:1/slip44:60",
        "eip155:1/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
        "eip155:56/slip44:714",
        "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/slip44:501",
        "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
        "xrpl:0/slip44:144",
        "stellar:pubnet/slip44:148",
        "cip34:1-764824073/slip44:1815",
        "algorand:wGHE2Pwdvd7S12BL5FaOP20EGYesN73k/slip44:283",
        "polkadot:91b171bb158e2d3848fa23a9f1c25182/slip44:354",
        "cosmos:cosmoshub-4/slip44:118",
    ];

    #[test]
    fn fuzz_caip19() {
        rampart_fuzz::fuzz("caip19", |input| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let Ok(id) = text.parse::<Caip19>() else { return };
            assert_eq!(id.as_str().parse(), Ok(id.clone()), "the canonical form is its own");
            assert!(id.as_str().is_ascii() && id.as_str().len() <= text.len() + "token".len());
        });
    }

    #[test]
    fn every_id_of_the_catalogue_is_its_own_canonical_form() {
        for text in EMITTED {
            assert_eq!(text.parse::<Caip19>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn aliases_name_the_same_asset() {
        for (alias, emitted) in [
            ("swift:0/iso4217:eur", "swift:0/iso4217:EUR"),
            (
                "eip155:1/erc20:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
                "eip155:1/erc20:0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
            ),
            (
                "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/spl:EPjF",
                "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:EPjF",
            ),
            ("eip155:1/erc721:0xAB/771769", "eip155:1/erc721:0xab/771769"),
        ] {
            let (alias, emitted): (Caip19, Caip19) =
                (alias.parse().unwrap(), emitted.parse().unwrap());
            assert_eq!(alias, emitted);
        }
    }

    #[test]
    fn case_matters_where_no_profile_says_otherwise() {
        let solana = |token: &str| {
            format!("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:{token}").parse::<Caip19>()
        };
        assert_ne!(solana("EPjF").unwrap(), solana("epjf").unwrap());
    }

    #[test]
    fn an_invalid_asset_id_is_refused() {
        let long = |chars: usize| format!("eip155:1/erc20:{}", "a".repeat(chars));
        assert!(long(128).parse::<Caip19>().is_ok());
        for text in [
            "",
            "EUR",
            "iso4217:EUR",
            "swift:0",
            "swift:0/",
            "swift:0/iso4217",
            "swift:0/iso4217:",
            "swift:0/iso4217:EURO",
            "swift:0/iso4217:E1R",
            "SWIFT:0/iso4217:EUR",
            " swift:0/iso4217:EUR",
            "swift:0/iso4217:EUR ",
            "swift:0/iso4217:EUR/",
            "swift:0/iso4217:EUR/1/2",
            "swift::0/iso4217:EUR",
            "ei:1/slip44:60",
            "eip155eip155:1/slip44:60",
            "eip155:1/slip44:60\n",
            "eip155:1/slip44:6_0",
            "eip155:/slip44:60",
            "eip155:123456789012345678901234567890123/slip44:60",
            "eip155:1/slip44:é",
            &long(129),
        ] {
            assert!(text.parse::<Caip19>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_id_parses_back(
            chain in "swift|eip155|solana|[-a-z0-9]{3,8}",
            reference in "[-_a-zA-Z0-9]{1,32}",
            asset in "iso4217|erc20|spl|token|[-a-z0-9]{3,8}",
            asset_reference in "[a-zA-Z]{3}|[-.%a-zA-Z0-9]{1,128}",
            token_id in prop::option::of("[-.%a-zA-Z0-9]{1,78}"),
        ) {
            let tail = token_id.map(|id| format!("/{id}")).unwrap_or_default();
            let text = format!("{chain}:{reference}/{asset}:{asset_reference}{tail}");
            if let Ok(id) = text.parse::<Caip19>() {
                prop_assert_eq!(id.to_string().parse::<Caip19>().unwrap(), id);
            } else {
                prop_assert_eq!((chain.as_str(), asset.as_str()), ("swift", "iso4217"));
            }
        }

        #[test]
        fn garbage_never_panics(text in ".*", near in "[a-z0-9:/é]{0,20}") {
            let _ = (text.parse::<Caip19>(), near.parse::<Caip19>());
        }
    }
}
