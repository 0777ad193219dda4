//! The outcome of an attempt to send a mail.

/// Enhanced status codes that refuse the recipient for good (RFC 3463, RFC 7505). Any other refusal
/// may be temporary, or one of the sender, whose settings can be mended.
const REJECTED: [&str; 6] = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"];
/// Reply codes with which the server takes no mail for now (RFC 5321, RFC 4954).
const CLOSED: [u16; 3] = [421, 432, 454];
/// The reply code of a server without room for mail (RFC 5321); with an enhanced status code it may
/// be the recipient's mailbox that has none.
const NO_ROOM: u16 = 452;
/// Beginning of the enhanced status codes of passing failures (RFC 3463, section 2).
const PASSING: &str = "4.";
/// Beginning of those of them that are about the mail system itself (RFC 3463, section 3.4).
const OF_SYSTEM: &str = "4.3.";
/// The least reply code of a permanent refusal (RFC 5321, section 4.2.1).
const PERMANENT_MIN: u16 = 500;

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendOutcome {
    Sent,
    /// The recipient will never get it.
    Rejected,
    /// The server may accept it later, or an edge open it.
    Deferred,
    /// The server gives no answer, or takes no mail of ours.
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
    /// That of a mail that was not taken, by the code and the text of the server's reply, if there
    /// was one.
    pub(super) fn refused(code: Option<u16>, text: &str) -> Self {
        let status = text.split_whitespace().next().unwrap_or_default();
        match code {
            Some(PERMANENT_MIN..) if REJECTED.contains(&status) => Self::Rejected,
            // It may be the recipient or this sender: an alert would tell of a mistyped address.
            Some(550 | 551 | 553) if !status.starts_with("5.") => Self::Deferred,
            Some(code) if code < PERMANENT_MIN && !is_closed(code, status) => Self::Deferred,
            _ => Self::Unavailable,
        }
    }
}

/// True if the server takes no mail for now, whoever it is to.
fn is_closed(code: u16, status: &str) -> bool {
    CLOSED.contains(&code)
        || status.starts_with(OF_SYSTEM)
        || code == NO_ROOM && !status.starts_with(PASSING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_the_recipient_is_for_good() {
        for (code, text, outcome) in [
            (550, "5.1.1 no such user", SendOutcome::Rejected),
            (550, "5.2.1 disabled", SendOutcome::Rejected),
            (556, "5.1.10 takes no mail", SendOutcome::Rejected),
            (550, "no such user", SendOutcome::Deferred),
            (550, "5.1.8 the sender's domain", SendOutcome::Unavailable),
            (550, "5.7.1 relaying denied", SendOutcome::Unavailable),
            (554, "no service for you", SendOutcome::Unavailable),
            (501, "5.5.4 invalid EHLO", SendOutcome::Unavailable),
            (535, "5.7.8 login", SendOutcome::Unavailable),
            (421, "4.3.2 too busy", SendOutcome::Unavailable),
            (450, "4.2.1 greylisted", SendOutcome::Deferred),
            (451, "later", SendOutcome::Deferred),
            (452, "4.2.2 the mailbox is full", SendOutcome::Deferred),
            (452, "insufficient system storage", SendOutcome::Unavailable),
            (452, "4.3.1 insufficient system storage", SendOutcome::Unavailable),
            (451, "4.3.0 local error", SendOutcome::Unavailable),
        ] {
            assert_eq!(SendOutcome::refused(Some(code), text), outcome, "{code} {text}");
        }
        assert_eq!(SendOutcome::refused(None, ""), SendOutcome::Unavailable);
    }
}
