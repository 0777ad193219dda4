//! One type per identifier, so that an offer's id cannot be passed for an order's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::checked_text::refusal;

refusal!(
    /// The text is not an identifier of this kind.
    InvalidId,
    "not a valid identifier"
);

/// Characters of a UUID in its one accepted spelling (RFC 9562: 8-4-4-4-12).
const UUID_CHARS: usize = 36;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The bare UUID, for a column or a policy.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        crate::inline_schema!($name, {"type": "string", "format": "uuid"});

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Reads the hyphenated form only; braces, `urn:uuid:` and bare hex are refused.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if text.len() != UUID_CHARS {
                    return Err(InvalidId);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId)
            }
        }
    )+};
}

uuid_ids! {
    /// A tenant (`client_id` in columns and on the wire); every statement is scoped by it.
    ClientId;
    /// An API key of a partner.
    ApiKeyId;
    /// An end user.
    UserId;
    /// A person of a partner who works in the portal.
    StaffId;
    /// A stored offer.
    OfferId;
    /// A quote: the `jti` inside its token.
    QuoteId;
    /// A checkout session.
    CheckoutId;
    /// A wallet address that a user has saved.
    WalletEntryId;
    /// A document or proof in the object store.
    DocumentId;
    /// The refresh tokens issued from one login; reuse revokes them together.
    TokenFamilyId;
    /// An event in a tenant's log, and the `webhook-id` of its deliveries.
    EventId;
    /// The delivery of one event to one endpoint.
    DeliveryId;
    /// A registered webhook endpoint.
    WebhookEndpointId;
    /// One uploaded version of a tenant's policy.
    PolicyVersionId;
}

/// An order's number: an integer from 1 to 2^53 - 1, so that it is exact in every JSON reader
/// (contract, section 1, Ids).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "i64", into = "i64")]
#[sqlx(transparent)]
pub struct OrderId(i64);

crate::inline_schema!(
    OrderId,
    {"type": "integer", "minimum": 1, "maximum": 9_007_199_254_740_991_i64}
);

impl OrderId {
    /// The first number that is too large, 2^53.
    const END: i64 = 1 << 53;
    /// Lower bound of new numbers: all of them have sixteen digits.
    const FIRST_NEW: i64 = 1_000_000_000_000_000;

    /// An order number from outside or from the database; `None` outside 1 to 2^53 - 1.
    #[must_use]
    pub const fn new(number: i64) -> Option<Self> {
        if number > 0 && number < Self::END { Some(Self(number)) } else { None }
    }

    /// A new number in 10^15 to 2^53 - 1 from 64 random bits, each number equally likely (to
    /// within one part in 2000). Unrelated inputs give unrelated numbers: none is guessable.
    #[must_use]
    pub fn from_entropy(random: u64) -> Self {
        let span = i128::from(Self::END - Self::FIRST_NEW);
        let offset = (i128::from(random) * span) >> u64::BITS;
        // The product of a 64-bit number and the span, less 64 bits, is below the span.
        Self(Self::FIRST_NEW + i64::try_from(offset).unwrap_or_default())
    }

    /// The bare number, for a column or JSON.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl From<OrderId> for i64 {
    fn from(id: OrderId) -> Self {
        id.0
    }
}

impl TryFrom<i64> for OrderId {
    type Error = InvalidId;

    fn try_from(number: i64) -> Result<Self, InvalidId> {
        Self::new(number).ok_or(InvalidId)
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderId({})", self.0)
    }
}

impl FromStr for OrderId {
    type Err = InvalidId;

    /// Reads plain decimal digits: no sign, blank or leading zero, so that one order has one
    /// spelling.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        if !plain {
            return Err(InvalidId);
        }
        text.parse().ok().and_then(Self::new).ok_or(InvalidId)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_numbers_keep_inside_their_bounds_at_the_ends_of_entropy() {
        assert_eq!(OrderId::from_entropy(0).number(), 1_000_000_000_000_000);
        assert_eq!(OrderId::from_entropy(u64::MAX).number(), (1 << 53) - 1);
    }

    #[test]
    fn an_order_number_has_one_spelling() {
        assert_eq!("1234567890123456".parse(), Ok(OrderId(1_234_567_890_123_456)));
        for text in ["", "0", "01", "+1", "-1", " 1", "1 ", "1.0", "1e3", "9007199254740992", "١"]
        {
            assert_eq!(text.parse::<OrderId>(), Err(InvalidId), "{text:?}");
        }
        assert!("9".repeat(400).parse::<OrderId>().is_err());
    }

    #[test]
    fn an_order_number_is_a_json_integer_and_checked_when_read() {
        let id = OrderId::new(42).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "42");
        assert_eq!(serde_json::from_str::<OrderId>("42").unwrap(), id);
        assert!(serde_json::from_str::<OrderId>("9007199254740992").is_err());
        assert!(serde_json::from_str::<OrderId>("0").is_err());
    }

    #[test]
    fn a_uuid_id_is_read_in_its_hyphenated_form_only() {
        let text = "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c";
        let id: OfferId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
        assert_eq!(format!("{id:?}"), format!("OfferId({text})"));
        for other in [
            "0190b5d87a3c7c3e9d8a3f1f6a1f2b3c",
            "{0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c}",
            "urn:uuid:0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c",
            "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3g",
            "",
        ] {
            assert!(other.parse::<OfferId>().is_err(), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn every_new_order_number_parses_back(random: u64) {
            let id = OrderId::from_entropy(random);
            prop_assert!((OrderId::FIRST_NEW..OrderId::END).contains(&id.number()));
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*") {
            let _ = (text.parse::<OrderId>(), text.parse::<UserId>());
        }
    }
}
