//! A JSON text without what differs from run to run.

use serde_json::{Map, Value};

/// Members whose value is always the same, however random it looks.
const FIXED: [&str; 3] = ["caip19", "message", "solution"];
/// The member that is a time in seconds since 1970.
const SECONDS: &str = "iat";
/// Shortest text that is taken for a secret or a name that was drawn.
const DRAWN_MIN: usize = 20;
/// Shortest text that is taken for one although it has no capital or no digit in it.
const LONG_MIN: usize = 41;
/// Characters of a savings plan's code.
const PLAN_CHARS: usize = 12;
/// Beginnings of names behind which the harness counts.
const COUNTED: [&str; 7] =
    ["somebody", "password-of-somebody", "nobody", "linked", "Ann-", "shared-", "token-"];
/// The mask in the middle of a card number.
const MASK: &str = "******";
/// Least number that is taken for an order's.
const ORDER_MIN: u64 = 1_000_000_000_000;

/// The value with `<what it is>` in the place of ids, times and tokens.
pub(super) fn normal(value: &Value) -> Value {
    match value {
        Value::String(text) => normal_text(text).into(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let fixed = FIXED.contains(&name.as_str());
                let name = if name.contains(MASK) { normal_part(name) } else { name.clone() };
                let value = match value {
                    value if fixed => value.clone(),
                    _ if name == SECONDS => "<time>".into(),
                    value => normal(value),
                };
                (name, value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Number(number) if number.as_u64().is_some_and(|n| n >= ORDER_MIN) => {
            "<order>".into()
        }
        other => other.clone(),
    }
}

fn normal_text(text: &str) -> String {
    if chrono::DateTime::parse_from_rfc3339(text).is_ok() {
        return "<time>".to_owned();
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    let mut normal = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (part, after) = rest.split_at(end);
        normal += &normal_part(part);
        rest = after;
    }
    normal
}

/// A word, or a step of a path.
fn normal_part(part: &str) -> String {
    if part.parse::<uuid::Uuid>().is_ok() && part.len() > 32 {
        return "<uuid>".to_owned();
    }
    if part.parse().is_ok_and(|number: u64| number >= ORDER_MIN) {
        return "<order>".to_owned();
    }
    if let Some((known, _)) = part.split_once(MASK) {
        return format!("{known}{MASK}<digits>");
    }
    for name in COUNTED {
        if let Some(count) = part.strip_prefix(name)
            && count.starts_with(|c: char| c.is_ascii_digit())
        {
            return format!("{name}<n>");
        }
    }
    let digit = part.bytes().any(|byte| byte.is_ascii_digit());
    let upper = part.bytes().any(|byte| byte.is_ascii_uppercase());
    let all_upper = part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    match part.len() {
        PLAN_CHARS if all_upper => "<plan>".to_owned(),
        LONG_MIN.. if upper || digit => "<drawn>".to_owned(),
        DRAWN_MIN.. if upper && digit => "<drawn>".to_owned(),
        _ if part.starts_with("payer-") => "payer-<drawn>".to_owned(),
        _ => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::normal;

    #[test]
    fn what_is_drawn_is_named_and_the_rest_stays() {
        let value = json!({
            "id": "0190b5d8-7a3c-7c3e-9d8a-3f1f6a1f2b3c", "orderId": 1_234_567_890_123_456_u64,
            "at": "2026-03-01T12:00:00Z", "price": 87.12, "name": "Ada Lovelace",
            "url": "https://pay.example.com/checkout/AZyfXnwKfVKdPyuKTm8ccA?identifier=s1.AbC0_defghijklmnopqr",
            "iban": "NL91ABNA0417164300", "card": "411111******1234", "code": "7K2M9QXT4B8D",
            "email": "somebody12@mail.example.com",
        });
        let expected = json!({
            "id": "<uuid>", "orderId": "<order>", "at": "<time>", "price": 87.12,
            "name": "Ada Lovelace",
            "url": "https://pay.example.com/checkout/<drawn>?identifier=<drawn>",
            "iban": "NL91ABNA0417164300", "card": "411111******<digits>", "code": "<plan>",
            "email": "somebody<n>@mail.example.com",
        });
        assert_eq!(normal(&value), expected);
    }
}
