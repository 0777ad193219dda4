use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prometheus::IntGauge;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::http::fields;
use crate::http::upload::body::placeholder_index;

fn stream() -> Box<JsonStream> {
    let folder = format!("rampart-reading-{}", std::process::id());
    let available = IntGauge::new("available", "1 while the folder can be written to").unwrap();
    let store = DocumentStore::in_folder(std::env::temp_dir().join(folder), available);
    Box::new(JsonStream::new(store, Clock::system()))
}

fn read(body: &[u8], size: usize) -> Result<ParsedBody, UploadError> {
    let mut stream = stream();
    for chunk in body.chunks(size) {
        stream.push(chunk)?;
    }
    Ok(stream.finish().unwrap())
}

/// The document, with the sizes of the images in place of their placeholders.
fn document(body: &[u8], size: usize) -> Option<Value> {
    let parsed = read(body, size).unwrap();
    let mut value = fields::parse(&parsed.text).ok()?;
    for member in value.as_object_mut().into_iter().flatten() {
        if let Some(index) = member.1.as_str().and_then(placeholder_index) {
            let image = parsed.images.get(index).and_then(Option::as_ref);
            *member.1 = json!(image.map(|image| image.info.size));
        }
    }
    Some(value)
}

fn png(size: usize) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(size, 7);
    STANDARD.encode(bytes)
}

#[test]
fn a_long_string_is_an_image_or_none() {
    let escaped = png(30_000).replace('/', "\\/").replace('A', "\\u0041");
    let long = "x".repeat(40_000);
    let body = format!(
        r#"{{"a": "{}", "short": "\"x\\",
             "b":"data:image/png;base64,{}" , "c":"{escaped}", "d": "{long}", "e": [1.50, true]}}"#,
        png(100_001),
        png(20_000),
    );
    let expected = json!({"a": 100_001, "short": "\"x\\", "b": 20_000, "c": 30_000, "d": null});
    for size in [7, 1_000, 16_385, body.len()] {
        let mut found = document(body.as_bytes(), size).unwrap();
        assert_eq!(found["e"].to_string(), "[1.50,true]");
        found.as_object_mut().unwrap().remove("e");
        assert_eq!(found, expected, "by {size}");
    }
}

#[test]
fn malformed_json_is_refused_in_a_long_string_too() {
    let long = png(30_000);
    let bad = [
        format!(r#"{{"a":"{long}","a":1}}"#),
        format!(r#"{{"a":"{long}"#),
        format!(r#"{{"a":"{long}"}} x"#),
        format!(r#"{{"a":"{long}" "b":1}}"#),
        format!("{{\"a\":\"{long}\n\"}}"),
        format!(r#"{{"a":"{long}\x"}}"#),
        format!(r#"{{"a":"{long}\ud800"}}"#),
        format!(r#"{{"a":"{long}","b":1 2}}"#),
        format!(r#"{}"{long}"{}"#, "[".repeat(33), "]".repeat(33)),
        format!(r#"{{"a":"{long}", "{}": 1, "{}": 2}}"#, "n".repeat(20_000), "n".repeat(20_000)),
    ];
    for body in bad {
        assert_eq!(document(body.as_bytes(), 10_000), None, "{}", &body[body.len() - 20..]);
    }
    let not_utf8 = [b"{\"a\":\"", long.as_bytes(), b"\xff\"}"].concat();
    assert_eq!(document(&not_utf8, 10_000), None);
    let deepest = format!(r#"{}"{long}"{}"#, "[".repeat(32), "]".repeat(32));
    assert!(document(deepest.as_bytes(), 10_000).is_some());
}

#[test]
fn only_images_may_be_large() {
    let numbers = format!("[{}0]", "1,".repeat(BODY_BYTES_MAX));
    assert_eq!(read(numbers.as_bytes(), 10_000).err(), Some(UploadError::TooLarge));
    let name = format!(r#"{{"{}":1}}"#, "n".repeat(BODY_BYTES_MAX));
    assert_eq!(read(name.as_bytes(), 10_000).err(), Some(UploadError::TooLarge));
    let blanks = format!("{{{}}}", " \n".repeat(BODY_BYTES_MAX));
    assert_eq!(document(blanks.as_bytes(), 10_000), Some(json!({})));
}

#[test]
fn an_image_beyond_the_limit_is_ignored() {
    let members: Vec<_> =
        (0..=IMAGES_MAX).map(|n| format!(r#""m{n}":"{}""#, png(15_000))).collect();
    let found = document(format!("{{{}}}", members.join(",")).as_bytes(), 50_000).unwrap();
    let images = found.as_object().unwrap().values().filter(|size| **size == json!(15_000)).count();
    assert_eq!(images, IMAGES_MAX);
}

#[test]
fn a_placeholder_sent_by_a_client_has_no_image() {
    let parsed = read(br#"{"a":"\u00000"}"#, 100).unwrap();
    assert!(parsed.images.is_empty());
}

#[test]
fn fuzz_streamed_json() {
    rampart_fuzz::fuzz("json", |input| {
        // A long string is a document, which other tests are about.
        if input.len() >= LONG_STRING_BYTES {
            return;
        }
        let parsed: Vec<_> =
            [1, 7, input.len().max(1)].map(|size| read(input, size).unwrap().text).into();
        assert!(parsed.iter().all(|text| *text == parsed[0]), "it depends on how it is cut");
        assert_eq!(fields::parse(&parsed[0]).ok(), fields::parse(input).ok());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_body_is_read_as_by_the_strict_parser(
        body in r#"(\{|\}|\[|\]|,|:|"a"|"b\\""|"\\u0061"|1\.0|true| |\n|é|"){0,14}"#,
        size in 1usize..9,
    ) {
        let parsed = read(body.as_bytes(), size).unwrap();
        prop_assert_eq!(fields::parse(&parsed.text).ok(), fields::parse(body.as_bytes()).ok());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&body, 7).is_ok());
    }
}
