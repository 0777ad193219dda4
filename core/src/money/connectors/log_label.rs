//! Texts of connectors as the log has them: a provider's own words may name a person, also in small
//! letters. References and ids of events are not logged at all.

/// Longest label, in bytes.
const LABEL_BYTES_MAX: usize = 64;

/// Words of which labels consist, none of them a name.
const WORDS: &str = "\
    a account and balance be blocked canceled cancelled cannot card charge charges check \
    closed completed connection credentials declined degraded disabled dispute disputed \
    disputes document done down duplicate error event events expired failed for found \
    fraudulent funds gone identity insufficient intent intents invalid is key lacks limit \
    lost low maintenance merchant missing network no node not of ok or over passed payment \
    payments payout pending permission provider rate read refund refunds refused rejected \
    request reversed review s stale stolen the timeout transaction transactions unavailable \
    unknown up verified";

/// The text if it is a label, such as `lost_or_stolen_card`: known words with a space, `_`, `-` or `'`
/// between them, at most 64 bytes. Any other is `other`.
pub(super) fn log_label(text: &str) -> &str {
    let is_known = |word: &str| WORDS.split(' ').any(|known| known == word);
    let is_label = text.len() <= LABEL_BYTES_MAX && text.split([' ', '_', '-', '\'']).all(is_known);
    if is_label { text } else { "other" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_alone_are_logged_as_they_are() {
        for label in [
            "event passed over",
            "refund failed",
            "lost_or_stolen_card",
            "expired_or_canceled_card",
            "charge_for_pending_refund_disputed",
            "insufficient_funds",
            "merchant_request",
            "the provider's key lacks the permission for disputes",
            "the provider's disputes cannot be read",
            "verified",
        ] {
            assert_eq!(log_label(label), label);
        }
        let too_long = "lost ".repeat(LABEL_BYTES_MAX / 5) + "funds";
        for other in [
            "",
            "Ada Lovelace",
            "ada lovelace",
            "ada_lovelace",
            "refund of ada lovelace failed",
            "lovelace",
            "refund  failed",
            "ada@example.com",
            "NL91ABNA0417164300",
            "+31612345678",
            "failed\n{\"level\":\"error\"}",
            "\u{1b}[2J",
            "zoë",
            &too_long,
        ] {
            assert_eq!(log_label(other), "other", "{other:?}");
        }
    }
}
