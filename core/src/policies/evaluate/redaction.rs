//! Redaction of policies' own messages and answers.

use serde_json::Value;

/// Longest word of a message that is logged, in bytes.
const WORD_BYTES_MAX: usize = 24;
/// Most digits of a word that is logged: more may be an account, a card or a telephone number.
const WORD_DIGITS_MAX: usize = 5;
/// Members of an answer that a policy fills from a short list of words, or that are redacted.
const BOUNDED: [&str; 3] = ["verdict", "reason", "failure"];

/// A policy's message without words that may be personal data or secrets: addresses, URLs, long
/// words, many digits. The message is one bounded line already.
pub(crate) fn redacted(message: &str) -> String {
    let words = message.split(' ').map(|word| if is_harmless(word) { word } else { "…" });
    words.collect::<Vec<_>>().join(" ")
}

/// The details `{input, active, candidate}` of a comparison. Without an input, the request may name a
/// person: the answers then have no member that a policy could have copied from it.
pub fn redacted_comparison(mut detail: Value) -> Value {
    if detail["input"].is_null() {
        for answer in ["active", "candidate"] {
            if let Some(answer) = detail.get_mut(answer) {
                *answer = redacted_answer(answer.take());
            }
        }
    }
    detail
}

/// An answer to a request that may name a person, without the members that a policy could have copied
/// from it.
pub(crate) fn redacted_answer(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut() {
        members.retain(|name, _| BOUNDED.contains(&name.as_str()));
    }
    answer
}

fn is_harmless(word: &str) -> bool {
    word.len() <= WORD_BYTES_MAX
        && !word.contains('@')
        && !word.contains("://")
        && word.bytes().filter(u8::is_ascii_digit).count() <= WORD_DIGITS_MAX
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_beside_a_hidden_request_have_nothing_of_it() {
        let signed = json!({"verdict": "authentic", "signer": {"replayToken": "Ada"}});
        let failed = json!({"failure": {"cause": "trap", "message": "unreachable"}});
        let hidden = json!({"input": null, "active": signed, "candidate": failed});
        let told = json!({"input": null, "active": {"verdict": "authentic"}, "candidate": failed});
        assert_eq!(redacted_comparison(hidden), told);
        for whole in [
            json!({"input": null, "active": null, "candidate": {"reason": "stale"}}),
            json!({"input": {"country": "FR"}, "active": {"rule": "r"}, "candidate": signed}),
        ] {
            assert_eq!(redacted_comparison(whole.clone()), whole);
        }
    }

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
