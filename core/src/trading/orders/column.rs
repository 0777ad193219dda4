//! Values as their columns have them.

use rampart_types::OrderId;

use crate::platform::error::{Error, Result};

/// The id of an order or a sale by its column.
///
/// # Errors
/// When the number is none; the edge never writes such a one.
pub fn id(number: i64) -> Result<OrderId> {
    OrderId::try_from(number).map_err(|error| Error::internal("read an order's id", error))
}
