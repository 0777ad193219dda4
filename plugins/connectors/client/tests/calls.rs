//! The calls against an edge that answers as told.

#![expect(clippy::unwrap_used, reason = "what a test cannot do must fail it")]

use rampart_connector::{Client, ClientError, EdgeSettings, Held, LeaseRequest, Outcome};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A client, and the bodies that its edge got when it has given all of these answers.
async fn edge(answers: Vec<(u16, Value)>) -> (Client, JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let mut heard = Vec::new();
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
            let (head, body) = loop {
                let count = stream.read(&mut part).await.unwrap();
                bytes.extend_from_slice(&part[..count]);
                let text = String::from_utf8(bytes.clone()).unwrap();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() == length.unwrap().parse::<usize>().unwrap() {
                    break (head.to_owned(), serde_json::from_str(body).unwrap());
                }
            };
            heard.push((head, body));
            let body = answer.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}",
                body.len()
            );
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        }
        heard
    });
    let token =
        std::env::temp_dir().join(format!("rampart-token-{}", url.rsplit(':').next().unwrap()));
    std::fs::write(&token, "rcn_test\n").unwrap();
    let settings = json!({ "url": url, "token": { "file": token } });
    let settings: EdgeSettings = serde_json::from_value(settings).unwrap();
    let client = Client::new(&settings).unwrap();
    std::fs::remove_file(token).unwrap();
    (client, heard)
}

fn leased() -> Value {
    json!([{"id": "7", "kind": "payout.send", "attempt": 1, "leaseToken": "lease",
        "createdAt": "2026-03-01T12:00:00Z", "leasedUntil": "2026-03-01T12:01:00Z",
        "checkpoint": {"nonce": 7}, "body": {"amount": 1}, "traceparent": TRACE}])
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const REQUEST: LeaseRequest<'_> =
    LeaseRequest { max: 1, wait_seconds: 0, lease_seconds: 10, kinds: &["payout.send"] };

#[tokio::test]
async fn a_command_goes_its_way_and_what_is_not_answered_is_asked_again() {
    let lost = json!({"error": "the lease is lost"});
    let (client, heard) = edge(vec![
        (503, Value::Null),
        (200, leased()),
        (200, json!({"leasedUntil": "2026-03-01T12:02:00Z"})),
        (200, json!({"state": "done", "retryAt": null})),
        (409, lost.clone()),
        (409, lost),
    ])
    .await;
    let command = client.lease(&REQUEST).await.unwrap().remove(0);
    assert_eq!(command.checkpoint::<Value>().unwrap(), Some(json!({"nonce": 7})));
    assert_eq!(client.checkpoint(&command, &json!([1]), 20).await.unwrap(), Held::Yes);
    let done = Outcome::Done { result: json!({"transactionId": "0x1"}) };
    assert_eq!(client.report(&command, &done).await.unwrap(), Held::Yes);
    assert_eq!(client.checkpoint(&command, &json!([1]), 20).await.unwrap(), Held::No);
    assert_eq!(client.report(&command, &done).await.unwrap(), Held::No);
    let heard = heard.await.unwrap();
    let (lines, bodies): (Vec<_>, Vec<_>) = heard.into_iter().unzip();
    assert!(lines[0].starts_with("POST /connectors/v1/commands/lease HTTP/1.1"), "{}", lines[0]);
    assert!(lines.iter().all(|head| head.contains("authorization: Bearer rcn_test")));
    let goes_on = lines.iter().map(|head| head.contains(&format!("traceparent: {TRACE}")));
    assert_eq!(goes_on.collect::<Vec<_>>(), [false, false, true, true, true, true]);
    assert_eq!(bodies[0], bodies[1], "asked again with the same words");
    assert_eq!(bodies[1]["kinds"], json!(["payout.send"]));
    assert!(lines[2].starts_with("PUT /connectors/v1/commands/7/checkpoint "));
    assert_eq!(bodies[2], json!({"leaseToken": "lease", "checkpoint": [1], "leaseSeconds": 20}));
    let result = json!({"transactionId": "0x1"});
    assert_eq!(bodies[3], json!({"leaseToken": "lease", "outcome": "done", "result": result}));
}

#[tokio::test]
async fn facts_are_known_again_and_refusals_are_told() {
    let (client, heard) = edge(vec![
        (200, json!({"duplicate": false})),
        (200, json!({"duplicate": true})),
        (409, json!({"error": "this id was reported with another body"})),
        (401, json!({"error": "the connector's token is missing or wrong"})),
    ])
    .await;
    let fact = json!({"id": "1", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z"});
    assert!(!client.event(&fact).await.unwrap());
    assert!(client.event(&fact).await.unwrap());
    let refused = client.event(&fact).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { status: 409, .. }), "{refused}");
    let refused = client.lease(&REQUEST).await.unwrap_err().to_string();
    assert!(refused.ends_with("the connector's token is missing or wrong"), "{refused}");
    assert_eq!(heard.await.unwrap().len(), 4);
}
