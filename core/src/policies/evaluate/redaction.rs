//! Redaction of policies' own messages.

/// Longest word of a message that is logged, in bytes.
const WORD_BYTES_MAX: usize = 24;
/// Most digits of a word that is logged: more may be an account, a card or a telephone number.
const WORD_DIGITS_MAX: usize = 5;

/// A policy's message without words that may be personal data or secrets: addresses, URLs, long
/// words, many digits. The message is one bounded line already.
pub(crate) fn redacted(message: &str) -> String {
    let words = message.split(' ').map(|word| if is_harmless(word) { word } else { "…" });
    words.collect::<Vec<_>>().join(" ")
}

fn is_harmless(word: &str) -> bool {
    word.len() <= WORD_BYTES_MAX
        && !word.contains('@')
        && !word.contains("://")
        && word.bytes().filter(u8::is_ascii_digit).count() <= WORD_DIGITS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifying_words_are_removed_from_a_message() {
        for (message, logged) in [
            ("unsupported: XOF in tier-2", "unsupported: XOF in tier-2"),
            ("bad mail jo@example.com given", "bad mail … given"),
            ("see https://acme.example/?t=1", "see …"),
            ("to bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "to …"),
            ("account 0049123456 fails", "account … fails"),
        ] {
            assert_eq!(redacted(message), logged);
        }
    }
}
