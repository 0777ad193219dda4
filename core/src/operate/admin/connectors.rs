//! Connectors and their tokens.

pub mod card_element;
pub mod create;
pub mod read;
pub mod rotate;

use crate::endpoint::openapi::doc::{Kind, Member, required};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 63;
/// Most connectors, and most entries of each of their lists.
const CONNECTORS_MAX: i64 = 200;

/// The path's `{name}`.
const NAME: Member = required("name", Kind::Text, "The connector's name.");
