//! The card processor, which provides the card of a session in which a user has entered it.
//!
//! Test clients have a simulated one, unless a route of cards names them. The others' is a connector.

use std::fmt::Write as _;

use super::AccountType;
use crate::auth::caller::Client;
use crate::platform::crypto::sha256;
use crate::trading::catalogue::{Direction, Leg};

/// Sessions of the sandbox with a special outcome. Any other is a valid card.
const NOT_INSTANT: &str = "sandbox-not-instant";
const REFUSED: &str = "sandbox-refused";
const UNVERIFIABLE: &str = "sandbox-unverifiable";
const DISABLED: &str = "sandbox-disabled";

/// A card processor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {
    /// Simulated: the session's text decides.
    Sandbox,
}

/// A card, as reported by the processor.
#[derive(Debug)]
pub(crate) struct Card {
    /// Masked number: six digits, six stars, four digits.
    pub(crate) masked: String,
    /// The processor's token of the card.
    pub(crate) token: String,
    /// True if its account is disabled from the start.
    pub(crate) disabled: bool,
}

/// The reason a session provides no card.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CardError {
    /// The card cannot be verified instantly.
    NotInstant,
    /// The session is unknown, expired, or its card was refused.
    Refused,
}

impl Processor {
    /// The client's simulated processor; `None` if a connector is asked.
    pub(crate) fn for_client(client: &Client) -> Option<Self> {
        let partner = (&*client.tenant.slug, client.tenant.is_test());
        let cards = Leg::Method(AccountType::CreditCard.as_str());
        let route = client.catalogue.routes.connector(partner, Direction::In, cards);
        (client.tenant.is_test() && route.is_none()).then_some(Self::Sandbox)
    }

    /// The reported type of its verifications.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
        }
    }

    /// The card of a session.
    pub(crate) fn card(self, session: &str) -> Result<Card, CardError> {
        match (self, session) {
            (Self::Sandbox, NOT_INSTANT) => Err(CardError::NotInstant),
            (Self::Sandbox, REFUSED) => Err(CardError::Refused),
            (Self::Sandbox, session) => {
                let mut masked = "411111******".to_owned();
                for byte in sha256(session).iter().take(4) {
                    let _ = write!(masked, "{}", byte % 10);
                }
                Ok(Card { masked, token: session.to_owned(), disabled: session == DISABLED })
            }
        }
    }

    /// Starts the verification of a card; `false` when it could not be started. The sandbox verifies
    /// instantly.
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
    fn a_session_always_has_the_same_card() {
        let card = |session| Processor::Sandbox.card(session).unwrap().masked;
        assert_eq!(card("session-1"), card("session-1"));
        assert_ne!(card("session-1"), card("session-2"));
        assert_eq!(card("session-1").len(), 16);
        assert_eq!(Processor::Sandbox.card(NOT_INSTANT).unwrap_err(), CardError::NotInstant);
        assert_eq!(Processor::Sandbox.card(REFUSED).unwrap_err(), CardError::Refused);
        assert!(!Processor::Sandbox.verify(Some(UNVERIFIABLE)));
        assert!(Processor::Sandbox.verify(None));
    }
}
