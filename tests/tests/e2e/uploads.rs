//! Large and slow bodies: what they cost in memory, and that they delay nobody.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::join_all;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::user::{image, registration};
use rampart_tests::wire::Wire;
use serde_json::json;
use tokio::time::interval;

const PATH: &str = "/api/v1/user/verify/iban/photo";
/// Uploads at once.
const UPLOADS: usize = 16;
/// Characters of each proof, in base64: 63 MB (API document, limits).
const PROOF_CHARS: usize = 63_000_000;
/// Memory that the process may take with all of them, in kB.
const RESIDENT_MAX_KB: u64 = 256 * 1024;
/// Characters that a slow upload sends at a time, and the pause between two times: more than the 10 kB in
/// ten seconds for which it is waited.
const PIECE_CHARS: usize = 20_000;
const PIECE_PAUSE: Duration = Duration::from_secs(2);

/// A proof of so many characters.
fn proof(chars: usize) -> String {
    STANDARD.encode(image(chars / 4 * 3))
}

fn body(proof: &str) -> Bytes {
    format!(r#"{{"name": "Ada Lovelace", "iban": "NL91ABNA0417164300", "proof": "{proof}"}}"#)
        .into()
}

/// Registers users and gives their identifiers.
async fn users(partner: &Caller, count: usize) -> Vec<String> {
    let mut identifiers = Vec::new();
    for number in 0..count {
        let body = registration(&format!("uploader{number}"));
        partner.post("/api/v2/user", body.clone()).await.assert_status(200);
        identifiers.push(body["identifier"].as_str().unwrap().to_owned());
    }
    identifiers
}

async fn upload(partner: &Caller, user: &str, body: Bytes) -> Answer {
    let request = partner.request(Method::POST, PATH).header("user-identifier", user);
    request.header("content-type", "application/json").body(body).send().await
}

/// The most memory that the edge's process ever had, in kB.
fn peak_kb(edge: &Edge) -> u64 {
    let status = format!("/proc/{}/status", edge.process.id());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn sixteen_proofs_of_63_mb_at_once_stay_within_256_mib() {
    let edge = Edge::start().await;
    let partner = edge.partner("large").await;
    let users = users(&partner, UPLOADS).await;
    let body = body(&proof(PROOF_CHARS));
    // Half of them over HTTP/1.1, half over HTTP/2 on one connection.
    let callers = [partner.over(Protocol::Http1), partner.over(Protocol::Http2)];
    let uploads = users.iter().enumerate();
    let uploads = uploads.map(|(n, user)| upload(&callers[n % 2], user, body.clone()));
    for answer in join_all(uploads).await {
        answer.assert_status(200);
    }
    let peak = peak_kb(&edge);
    assert!(peak < RESIDENT_MAX_KB, "the edge took {peak} kB");
    let stored: u64 = stored(&edge).iter().sum();
    assert!(stored > (UPLOADS * PROOF_CHARS / 4 * 3) as u64, "{stored} bytes are stored");
}

/// The sizes of the files in the store.
fn stored(edge: &Edge) -> Vec<u64> {
    let folder = edge.setup().folder().join("documents");
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    entries.map(|entry| entry.metadata().unwrap().len()).collect()
}

/// Sends more of each upload now and then, until it is dropped.
async fn go_on(slow: &mut [Wire], piece: &[u8]) {
    let mut pace = interval(PIECE_PAUSE);
    loop {
        pace.tick().await;
        for wire in &mut *slow {
            wire.send(piece).await;
        }
    }
}

#[tokio::test]
async fn slow_uploads_delay_nobody() {
    let edge = Edge::start().await;
    let partner = edge.partner("slow").await;
    let users = users(&partner, 2).await;
    let (key, secret) = partner.credential();
    // More than a part of it has come, and then little at a time.
    let start = proof(600_000);
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\n{key}: {secret}\r\nUser-Identifier: {}\r\n\
         Content-Length: {PROOF_CHARS}\r\n\r\n{{\"proof\":\"{start}",
        users[0]
    );
    let mut slow = Vec::new();
    for _ in 0..4 * UPLOADS {
        let mut wire = Wire::open(edge.address).await;
        wire.send(head.as_bytes()).await;
        slow.push(wire);
    }
    let others = async {
        upload(&partner, &users[1], body(&proof(2_000_000))).await.assert_status(200);
        for answer in join_all((0..50).map(|_| partner.get("/api/v1/prices"))).await {
            answer.assert_status(200);
        }
    };
    // Whoever waits for one of them gets no answer: they end once the others have theirs.
    tokio::select! {
        () = others => {}
        () = go_on(&mut slow, &start.as_bytes()[..PIECE_CHARS]) => {}
    }
    for mut wire in slow {
        wire.answer().await.expect("a slow upload gets an answer").assert_status(408);
    }
    assert_eq!(stored(&edge).len(), 1, "what was not finished is gone");
}

/// The beginning of a request without a credential whose body takes the least share of an address.
fn unfinished() -> String {
    let head = "POST /api/v1/authenticate HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n";
    format!("{head}{}", " ".repeat(250_000))
}

/// The answer to a body without a credential.
async fn post(caller: &Caller) -> Answer {
    let request = caller.anonymous(Method::POST, "/api/v1/authenticate");
    request.body(vec![b' '; 100_000]).send().await
}

#[tokio::test]
async fn bodies_of_one_address_leave_memory_to_the_others() {
    // Half of it is for ordinary bodies, a quarter of that for addresses, and of that for one.
    let edge = Edge::with(|setup| _ = setup.set("edge.body_memory_bytes", "8388608")).await;
    let partner = edge.partner("neighbour").await;
    let mut slow = Vec::new();
    // One that came beside a whole body was refused itself: another takes its place.
    until("a second body of the address is refused", SOON, async || {
        let mut wire = Wire::open(edge.address).await;
        wire.send(unfinished().as_bytes()).await;
        slow.push(wire);
        Some(post(&partner).await).filter(|answer| answer.status() == 503)
    })
    .await;
    let elsewhere = partner.from(Ipv4Addr::new(127, 0, 0, 2).into()).over(Protocol::Http1);
    post(&elsewhere).await.assert_status(400);
    let quote = partner.request(Method::POST, "/api/v1/buy/quote").body(vec![b' '; 100_000]);
    quote.send().await.assert_status(400);
}

#[tokio::test]
async fn bodies_of_addresses_leave_memory_to_partners() {
    let edge = Edge::with(|setup| _ = setup.set("edge.body_memory_bytes", "2097152")).await;
    let partner = edge.partner("neighbour").await;
    let elsewhere = partner.from(Ipv4Addr::new(127, 0, 0, 2).into()).over(Protocol::Http1);
    let mut own = Ipv4Addr::new(127, 0, 0, 2).to_bits();
    let mut slow = Vec::new();
    // Of bodies that came beside one another each may have been refused: another takes their place.
    until("a body of another address is refused", SOON, async || {
        own += 1;
        let mut wire = Wire::try_open_from(Ipv4Addr::from_bits(own), edge.address).await.unwrap();
        wire.send(unfinished().as_bytes()).await;
        slow.push(wire);
        Some(post(&elsewhere).await).filter(|answer| answer.status() == 503)
    })
    .await;
    let quote = partner.request(Method::POST, "/api/v1/buy/quote").body(vec![b' '; 100_000]);
    quote.send().await.assert_status(400);
}

#[tokio::test]
async fn a_broken_upload_is_answered_like_a_small_body_and_leaves_nothing() {
    let edge = Edge::start().await;
    let partner = edge.partner("broken").await;
    let users = users(&partner, 1).await;
    let before = stored(&edge).len();
    let proof = proof(1_000_000);
    let bodies = [
        (format!(r#"{{"proof":"{proof}","proof":"{proof}"}}"#), 400, "ER048"),
        (format!(r#"{{"proof":"{proof}"}} x"#), 400, "ER048"),
        (format!("{{\"proof\":\"{proof}\n\"}}"), 400, "ER048"),
        (format!(r#"{{"name":"A","iban":"NL91ABNA0417164300","proof":"{proof}!"}}"#), 400, "ER078"),
        (
            format!(r#"{{"name":"{proof}","iban":"NL91ABNA0417164300","proof":"{proof}"}}"#),
            400,
            "ER185",
        ),
        (format!(r#"{{"unknown":[{}1]}}"#, "1,".repeat(500_000)), 413, "ER078"),
    ];
    for (body, status, code) in bodies {
        let answer = upload(&partner, &users[0], body.into()).await;
        answer.assert_status(status).assert_codes(&[code]);
        assert!(answer.header("ratelimit").is_some(), "the client is known: {code}");
    }
    assert_eq!(stored(&edge).len(), before);
    let body = json!({"email": "large@mail.example.com", "country": "NL",
        "identifier": "0123456789abcdef0123456789abcdef0123", "identityDocument": [
            {"documentType": "passport", "documentSide": "front", "data": &proof},
            {"documentType": "passport", "documentSide": "back", "data": &proof}]});
    partner.post("/api/v2/user", body).await.assert_status(200);
    assert_eq!(stored(&edge).len(), before + 2);
}
