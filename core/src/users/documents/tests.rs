use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

fn png(size: usize) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(size, 7);
    STANDARD.encode(bytes)
}

#[test]
fn both_spellings_are_accepted() {
    let sample = json!({"documentType": "passport", "documentSide": "front", "data": png(64)});
    assert!(read_one(&sample, ReceivedImage::decode).unwrap().image.is_some());
    let schema = json!({"document_type": "passport", "document_side": "front",
        "uploaded_file": {"test": true, "original_name": "me.png"}});
    assert!(read_one(&schema, ReceivedImage::decode).unwrap().image.is_none());
    let codes = [
        (json!({"documentType": "passport"}), Code::RequestMalformed),
        (json!({"documentType": "a b", "documentSide": "front"}), Code::RequestMalformed),
        (json!("passport"), Code::RequestMalformed),
        (json!({"documentType": "p", "documentSide": "f", "data": 7}), Code::ImageInvalid),
        (json!({"documentType": "p", "documentSide": "f", "data": "AAAA"}), Code::ImageInvalid),
    ];
    for (item, code) in codes {
        assert_eq!(read_one(&item, ReceivedImage::decode).unwrap_err().0, code, "{item}");
    }
}
