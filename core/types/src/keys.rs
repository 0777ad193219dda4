//! Keys of rows that belong to one partner: the partner first, as in every primary key.

use super::{ClientId, OrderId, UserId};

/// The key of an order or a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey {
    /// The partner whose order it is.
    pub client: ClientId,
    /// The order's number.
    pub order: OrderId,
}

/// The key of an end user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserKey {
    /// The partner whose user it is.
    pub client: ClientId,
    /// The user's id.
    pub user: UserId,
}
