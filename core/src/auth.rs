//! Authentication: client credentials, user credentials, tokens, passwords.

pub mod caller;
pub mod client_credentials;
pub mod passwords;
pub mod tokens;
pub mod user_credentials;
