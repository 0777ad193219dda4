//! Checkouts: an offer with a hosted page, to which a partner sends its user (section 6.5 of the
//! contract).
//!
//! - [`create`]: the endpoint; a checkout's terms are read and stored as those of an offer
//! - [`show`]: the page, at the signed URL that `session` generates; `stored` is the checkout as it
//!   shows it, `shopper` who buys, `purchase` the quote and the confirm, `resume` the mailed link to go
//!   on with elsewhere, `page` the HTML with its `price`
//! - `share_token`: the partner's token of an identity check elsewhere, until a check is given it
//!
//! The URL carries the partner's own identifier of the user, sealed (`identifiers.rs`).

pub mod create;
mod page;
mod price;
mod purchase;
mod resume;
mod session;
pub mod share_token;
mod shopper;
pub mod show;
mod stored;
