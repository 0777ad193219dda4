//! Texts of connectors as the log has them: a provider's own words may name a person.

/// Longest label, in bytes.
const LABEL_BYTES_MAX: usize = 64;

/// The text if it is a label, such as `lost_or_stolen_card`: 1 to 64 small letters, spaces, `_`, `-` and
/// `'`. Any other is `other`, as names, addresses and numbers are written, or a line of its own.
pub(super) fn log_label(text: &str) -> &str {
    let in_label = |byte: u8| byte.is_ascii_lowercase() || b" _-'".contains(&byte);
    let is_label = (1..=LABEL_BYTES_MAX).contains(&text.len()) && text.bytes().all(in_label);
    if is_label { text } else { "other" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_alone_are_logged_as_they_are() {
        let longest = "a".repeat(LABEL_BYTES_MAX);
        let forbidden = "the provider's key lacks the permission for disputes";
        for label in ["event passed over", "lost_or_stolen_card", forbidden, &longest] {
            assert_eq!(log_label(label), label);
        }
        let too_long = "a".repeat(LABEL_BYTES_MAX + 1);
        for other in [
            "",
            "Ada Lovelace",
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
