use super::*;
use crate::platform::crypto::Secret;

fn settings(url: &str) -> settings::Documents {
    settings::Documents {
        s3_url: Some(url.to_owned()),
        s3_access_key: Some(Secret::new("id".to_owned())),
        s3_secret_key: Some(Secret::new("canary-word".to_owned())),
        ..settings::Documents::default()
    }
}

#[test]
fn a_url_names_bucket_and_prefix() {
    for (url, bucket, prefix) in [
        ("s3://documents", "documents", ""),
        ("s3://documents/", "documents", ""),
        ("s3://my.documents-1/live/eu/", "my.documents-1", "live/eu"),
    ] {
        assert_eq!(parse(url).unwrap(), (bucket, Path::from(prefix)), "{url}");
        assert!(Client::new(&settings(url)).unwrap().is_some(), "{url}");
    }
    let long = format!("s3://{}", "a".repeat(64));
    for url in [
        "",
        "documents",
        "https://documents",
        "s3://",
        "s3://ab",
        "s3://Documents",
        "s3://user@documents",
        "s3://documents/a//b",
        "s3://documents/../b",
        "s3://documents/a?b",
        &long,
    ] {
        assert!(parse(url).is_none(), "{url}");
    }
}

#[test]
fn what_does_not_fit_together_is_named_and_not_shown() {
    let lonely = settings::Documents { s3_url: None, ..settings("") };
    let keyless = settings::Documents { s3_secret_key: None, ..settings("s3://documents") };
    let astray = settings::Documents {
        s3_endpoint: Some("http://canary-word@127.0.0.1".to_owned()),
        ..settings("s3://documents")
    };
    for (settings, begins) in [
        (lonely, "documents.s3_endpoint and its keys want"),
        (keyless, "documents.s3_url wants"),
        (astray, "documents.s3_endpoint is not a URL"),
        (settings("s3://canary-word@a"), "documents.s3_url is not a URL"),
    ] {
        let reason = Client::new(&settings).map(drop).unwrap_err();
        assert!(reason.starts_with(begins), "{reason}");
        assert!(!reason.contains("canary-word"), "{reason}");
    }
    assert!(Client::new(&settings::Documents::default()).unwrap().is_none());
}
