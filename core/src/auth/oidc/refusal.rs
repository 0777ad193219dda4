//! The reasons for which a login ends without an operator.

/// The reason nobody is logged in.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not the provider's, not for us, or not of now. The reason is for the log.
    Invalid(&'static str),
    /// The provider has not given the code that came back, or not for this login.
    WrongCode,
    /// The person is known and may do nothing here.
    NotPermitted {
        /// Issuer and subject, as those of [`Person`](super::Person).
        identity: String,
        /// The reason, for the person.
        sentence: String,
    },
    /// The provider cannot be asked. A call that has failed is in the log with the reason.
    Unavailable(&'static str),
}
