//! The ring of master keys, and public keys: of partners, which their policies may name, and of operators, which sign
//! manifests; keys of receipts.

pub mod receipts;
pub mod rotation;
pub mod signing;
pub mod verification;

use crate::endpoint::openapi::doc::{Kind, Member, required};

/// The path's `{name}`.
const NAME: Member = required("name", Kind::Text, "The key's name.");
