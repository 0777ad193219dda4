//! The card processor: what it says of a session in which a user has entered a card.
//!
//! Test clients have a simulated one. Live clients have none until one is connected; what needs it
//! is then refused.

use std::fmt::Write as _;

use crate::auth::caller::Client;
use crate::platform::crypto::digest_of;

/// Sessions with an outcome of their own in the sandbox. Any other one is a card that works.
const NOT_INSTANT: &str = "sandbox-not-instant";
const REFUSED: &str = "sandbox-refused";
const UNVERIFIABLE: &str = "sandbox-unverifiable";

/// Who can say what a card session holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {
    /// Simulated: the session's text decides.
    Sandbox,
}

/// A card as the processor shows it.
#[derive(Debug)]
pub(crate) struct Card {
    /// Masked number: six digits, six stars, four digits.
    pub(crate) masked: String,
    /// What the processor knows it by.
    pub(crate) token: String,
}

/// Why a session is no card for us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoCard {
    /// The card cannot be verified at once.
    NotInstant,
    /// The session is unknown, over, or its card was refused.
    Refused,
}

impl Processor {
    /// The client's processor.
    pub(crate) fn of(client: &Client) -> Option<Self> {
        client.tenant.is_test().then_some(Self::Sandbox)
    }

    /// The name under which verifications of it are told.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
        }
    }

    /// The card that was entered in a session.
    pub(crate) fn card(self, session: &str) -> Result<Card, NoCard> {
        match (self, session) {
            (Self::Sandbox, NOT_INSTANT) => Err(NoCard::NotInstant),
            (Self::Sandbox, REFUSED) => Err(NoCard::Refused),
            (Self::Sandbox, session) => {
                let mut masked = "411111******".to_owned();
                for byte in digest_of(session).iter().take(4) {
                    let _ = write!(masked, "{}", byte % 10);
                }
                Ok(Card { masked, token: session.to_owned() })
            }
        }
    }

    /// Starts to verify that the card is its holder's; `false` when that could not be started. The
    /// sandbox is done at once.
    pub(crate) fn verify(self, token: Option<&str>) -> bool {
        match self {
            Self::Sandbox => token != Some(UNVERIFIABLE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_always_the_same_card() {
        let card = |session| Processor::Sandbox.card(session).unwrap().masked;
        assert_eq!(card("session-1"), card("session-1"));
        assert_ne!(card("session-1"), card("session-2"));
        assert_eq!(card("session-1").len(), 16);
        assert_eq!(Processor::Sandbox.card(NOT_INSTANT).unwrap_err(), NoCard::NotInstant);
        assert_eq!(Processor::Sandbox.card(REFUSED).unwrap_err(), NoCard::Refused);
        assert!(!Processor::Sandbox.verify(Some(UNVERIFIABLE)));
        assert!(Processor::Sandbox.verify(None));
    }
}
