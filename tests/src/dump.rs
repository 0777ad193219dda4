//! All that a database holds, as text to search in.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use sqlx::{AssertSqlSafe, PgPool};

/// Every row of every table, a line each; binary columns in hexadecimal.
pub async fn of(db: &PgPool) -> String {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables where table_schema = 'public'",
    )
    .fetch_all(db)
    .await
    .unwrap();
    assert!(tables.len() > 20 && tables.contains(&"end_user".to_owned()));
    let mut dump = String::new();
    for table in tables {
        let rows = AssertSqlSafe(format!("select t::text from \"{table}\" t"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(db).await.unwrap();
        for row in rows {
            dump.push_str(&row);
            dump.push('\n');
        }
    }
    dump
}

/// The forms in which a text may stand somewhere: in clear, in hexadecimal, percent-encoded, and in
/// base64 wherever in a longer text it begins.
pub fn forms(text: &str) -> Vec<String> {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = text.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    let mut forms = vec![text.to_owned(), hex.to_uppercase(), hex, percent.collect()];
    for before in 0..3 {
        let bytes = [&vec![0; before][..], text.as_bytes()].concat();
        // Characters that hold bits of nothing but the text.
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.push(encoded[from..to].to_owned());
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The form of the text that is found in `place`, if one is. Unoptimised, `contains` takes five times as
/// long as `find` for a short text.
pub fn found(place: &str, text: &str) -> Option<String> {
    forms(text).into_iter().find_map(|form| place.find(form.as_str()).map(|_| form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_every_form() {
        let text = "Zelda+1";
        for before in ["", "a", "bc", "def"] {
            let longer = format!("{before}{text}behind");
            let hex: String = longer.bytes().map(|byte| format!("{byte:02x}")).collect();
            for place in [longer.clone(), hex, STANDARD_NO_PAD.encode(&longer)] {
                assert!(found(&place, text).is_some(), "{place}");
            }
        }
        assert!(found("?name=Zelda%2B1", text).is_some());
        assert!(found("Zelda1", text).is_none());
    }
}
