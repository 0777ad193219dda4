//! The tenant of what is no partner's.

use rampart_types::ClientId;
use uuid::Uuid;

/// Number of the house's id.
const HOUSE: u128 = 0x7000_8000_0000_0000_0001;

/// The tenant `house`, which a migration makes: payments of nobody who is known are in its book, and
/// the idempotency keys of operators are its rows.
#[must_use]
pub fn house() -> ClientId {
    Uuid::from_u128(HOUSE).into()
}
