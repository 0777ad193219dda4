//! Authentication: client credentials, user credentials, tokens, passwords, operators' roles and
//! approvals.

pub mod approval;
pub mod caller;
pub mod client_credentials;
pub mod login_failures;
pub mod oidc;
pub mod passwords;
pub mod roles;
pub mod tokens;
pub mod totp;
pub mod user_credentials;
pub(crate) mod webauthn;
