//! Wallet addresses and destination tags, validated by the rules of their chain.
//!
//! Coins sent to a wrong address are lost, so an address must be a complete mainnet address of its
//! chain: nothing is trimmed, repaired or guessed.

mod bitcoin_like;
mod cardano;
mod evm;
mod solana;
mod stellar;
mod tag;
mod xrp;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Serialize, Serializer};

pub use tag::{DestinationTag, InvalidTag, TagKind};

use super::checked_text::{refusal, text_form};

refusal!(
    /// The text is not a mainnet address of the chain (`ER014`).
    InvalidAddress,
    "not a mainnet wallet address of this chain"
);
refusal!(
    /// The name is not one of [`Chain::ALL`].
    UnknownChain,
    "unknown chain"
);

/// Longest address that is read, in characters; a Cardano address of the Byron era has 104.
const ADDRESS_CHARS_MAX: usize = 128;

/// A supported blockchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chain {
    /// Bitcoin.
    Bitcoin,
    /// Litecoin.
    Litecoin,
    /// Dogecoin.
    Dogecoin,
    /// Ethereum, and the tokens on it.
    Ethereum,
    /// The XRP Ledger.
    Xrp,
    /// Stellar.
    Stellar,
    /// Cardano.
    Cardano,
    /// Solana.
    Solana,
}

impl Chain {
    /// Every chain.
    pub const ALL: [Self; 8] = [
        Self::Bitcoin,
        Self::Litecoin,
        Self::Dogecoin,
        Self::Ethereum,
        Self::Xrp,
        Self::Stellar,
        Self::Cardano,
        Self::Solana,
    ];

    /// The name in the database and in the catalogue.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bitcoin => "bitcoin",
            Self::Litecoin => "litecoin",
            Self::Dogecoin => "dogecoin",
            Self::Ethereum => "ethereum",
            Self::Xrp => "xrp",
            Self::Stellar => "stellar",
            Self::Cardano => "cardano",
            Self::Solana => "solana",
        }
    }

    /// The kind of destination tag that its payments can carry.
    #[must_use]
    pub const fn tag_kind(self) -> TagKind {
        match self {
            Self::Xrp => TagKind::Number,
            Self::Stellar => TagKind::Memo,
            _ => TagKind::None,
        }
    }
}

impl FromStr for Chain {
    type Err = UnknownChain;

    fn from_str(text: &str) -> Result<Self, UnknownChain> {
        Self::ALL.into_iter().find(|chain| chain.as_str() == text).ok_or(UnknownChain)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

text_form!(Chain);

/// Case sensitivity of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// Case is significant.
    Exact,
    /// Case is insignificant.
    AnyCase,
}

/// A mainnet address of one chain, stored as given.
///
/// Two are equal when they name the same destination: the case of an EVM or Bech32 address is
/// ignored, as the chain does. Solana's addresses carry no checksum: a mistyped one may pass here,
/// so an interface should show the address back to the user.
#[derive(Clone, Debug)]
pub struct WalletAddress {
    chain: Chain,
    spelling: Spelling,
    text: String,
}

impl WalletAddress {
    /// Reads an address of a chain.
    ///
    /// # Errors
    /// When the text is not, to the character, a mainnet address of that chain.
    pub fn parse(chain: Chain, text: &str) -> Result<Self, InvalidAddress> {
        if text.len() > ADDRESS_CHARS_MAX || !text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err(InvalidAddress);
        }
        let spelling = match chain {
            Chain::Bitcoin => bitcoin_like::BITCOIN.check(text),
            Chain::Litecoin => bitcoin_like::LITECOIN.check(text),
            Chain::Dogecoin => bitcoin_like::DOGECOIN.check(text),
            Chain::Ethereum => evm::check(text),
            Chain::Xrp => xrp::check(text),
            Chain::Stellar => stellar::check(text),
            Chain::Cardano => cardano::check(text),
            Chain::Solana => solana::check(text),
        }?;
        Ok(Self { chain, spelling, text: text.to_owned() })
    }

    /// Reads an address of whichever chain takes it first; `None` when it is one of none.
    #[must_use]
    pub fn of_any_chain(text: &str) -> Option<Self> {
        Chain::ALL.into_iter().find_map(|chain| Self::parse(chain, text).ok())
    }

    /// The chain it is an address of.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }

    /// The address as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical spelling for comparison and lookup within its chain.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        match self.spelling {
            Spelling::Exact => Cow::Borrowed(&self.text),
            Spelling::AnyCase => Cow::Owned(self.text.to_ascii_lowercase()),
        }
    }

    /// The texts by which programs name it: as given, and where case is insignificant in lower case
    /// and in that of its chain's checksum, if that has one. Some may be the same.
    #[must_use]
    pub fn spellings(&self) -> Vec<String> {
        let mut spellings = vec![self.text.clone()];
        if self.spelling == Spelling::AnyCase {
            spellings.push(self.key().into_owned());
        }
        if self.chain == Chain::Ethereum {
            spellings.push(evm::checksummed(&self.text));
        }
        spellings
    }
}

impl PartialEq for WalletAddress {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key() == other.key()
    }
}

impl Eq for WalletAddress {}

impl Hash for WalletAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.chain.hash(state);
        self.key().hash(state);
    }
}

impl fmt::Display for WalletAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

crate::inline_schema!(WalletAddress, {"type": "string"});

impl Serialize for WalletAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
