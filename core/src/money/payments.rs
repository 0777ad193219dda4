//! Payments: what providers, banks, chains and operators report of money and coins.
//!
//! A report is stored, with its entry in the books, before it is judged; an order's state follows
//! from it in the same transaction.
//!
//! - [`record`] takes a report
//! - `bookings` writes the payment and the entries of an order's change of state, whoever caused it

mod amounts;
pub(crate) mod bookings;
pub mod catch_up;
mod earlier;
pub mod locks;
pub mod matching;
pub mod record;
mod recording;
mod refund_confirmations;
mod refund_sources;
pub mod refund_sums;
pub(crate) mod refund_withdrawals;
pub mod refunds;
pub mod report;
pub(crate) mod reprice;
mod return_fees;
mod sent;
pub mod store;
pub(crate) mod terms;
mod timeline;
mod unwind;

pub use self::record::record;
pub use self::report::{PaymentKind, PaymentState, Recorded, Report};
