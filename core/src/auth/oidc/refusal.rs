//! The reasons for which a login ends without an operator.

/// The reason nobody is logged in.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not the provider's, not for us, or not of now. The reason is for the log.
    Invalid(&'static str),
    /// The person is known and may do nothing here.
    NotPermitted {
        /// Issuer and subject, as those of [`Person`](super::Person).
        identity: String,
        /// The reason, for the person.
        sentence: String,
    },
    /// The provider cannot be asked. The reason is for the log.
    Unavailable(&'static str),
}
