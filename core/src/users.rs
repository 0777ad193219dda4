//! End users, as far as the API proves and binds them.

pub mod credential;
