//! The outcome of an attempt to send a mail.

/// SMTP reply codes that reject the mail for good (RFC 5321, section 4.2.3). Any other refusal may
/// be temporary.
const REJECTED: [u16; 5] = [501, 550, 551, 553, 554];
/// Those with which the server takes no mail at all (RFC 5321, RFC 4954).
const CLOSED: [u16; 7] = [421, 432, 454, 530, 534, 535, 538];

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendOutcome {
    Sent,
    /// The server will never accept it.
    Rejected,
    /// The server may accept it later, or an edge open it.
    Deferred,
    /// The server gives no answer, or takes no mail.
    Unavailable,
}

rampart_types::named_values! {
    pub(super) SendOutcome {
        Sent = "sent",
        Rejected = "rejected",
        Deferred = "deferred",
        Unavailable = "unavailable",
    }
}

impl SendOutcome {
    /// That of a mail that was not taken, by the code of the server's reply; `None` without one.
    pub(super) fn refused(code: Option<u16>) -> Self {
        match code {
            Some(code) if REJECTED.contains(&code) => Self::Rejected,
            Some(code) if !CLOSED.contains(&code) => Self::Deferred,
            _ => Self::Unavailable,
        }
    }
}
