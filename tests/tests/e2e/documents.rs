//! Documents in a bucket of S3: sealed before they leave, gone with their user, and nothing half
//! stored while the store is away, hangs or refuses.

use std::pin::pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use http::Method;
use nix::sys::signal::Signal;
use rampart_tests::answer::Answer;
use rampart_tests::caller::Caller;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, after, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::s3_server::S3Server;
use rampart_tests::user::{image, registration};
use serde_json::{Value, json};
use tokio::time::interval;

/// Shorter than the time of a call that is not answered.
const WAITED_MIN: Duration = Duration::from_secs(3);
/// From one read to the next beside uploads.
const READ_PAUSE: Duration = Duration::from_millis(50);
/// Until what came to its end after it was given up has been deleted as well.
const CLEAN: Duration = Duration::from_secs(120);

async fn edge_over(server: &S3Server) -> Edge {
    Edge::with(|setup| server.configure(setup)).await
}

/// A registration with the front of a passport.
fn with_passport(name: &str, image: &[u8]) -> Value {
    let mut body = registration(name);
    body["identityDocument"] = json!([{"documentType": "passport", "documentSide": "front",
        "data": STANDARD.encode(image)}]);
    body
}

/// Registers a user with the front of a passport; her id.
async fn registered(partner: &Caller, name: &str, image: &[u8]) -> String {
    let session = partner.register(&with_passport(name, image)).await;
    session["uuid"].as_str().unwrap().to_owned()
}

/// A registration that cannot be stored, and the time it took.
async fn refused(partner: &Caller, name: &str) -> Duration {
    let began = now();
    let answer = partner.post("/api/v2/user", with_passport(name, &image(200_000))).await;
    answer.assert_status(503).assert_codes(&["ER999"]);
    began.elapsed()
}

#[expect(clippy::disallowed_methods, reason = "a test measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Calls that the edge has made to store documents, and that have ended.
async fn puts(edge: &Edge) -> u64 {
    let metrics = edge.ops("/metrics").await.text().to_owned();
    let counts = metrics.lines().filter_map(|line| {
        let labels = line.strip_prefix("rampart_document_call_duration_seconds_count{")?;
        labels.contains(r#"operation="put""#).then(|| labels.rsplit(' ').next().unwrap())
    });
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// Requires that a registration is refused without the store being asked.
async fn refused_at_once(edge: &Edge, partner: &Caller, name: &str) {
    let before = puts(edge).await;
    refused(partner, name).await;
    assert_eq!(puts(edge).await, before, "the store was asked");
}

/// The image of a user's passport, as operators see it.
async fn shown(edge: &Edge, user: &str) -> Answer {
    let path = format!("/admin/v1/users/{user}");
    let row = edge.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    let id = row["documents"][0]["id"].as_str().unwrap();
    edge.admin(Method::GET, &format!("{path}/documents/{id}"), json!({})).await
}

/// Waits until the edge says that it can use the bucket, or why it cannot.
async fn is_usable(edge: &Edge, problem: Option<&str>) {
    let state = if problem.is_some() { "degraded" } else { "ok" };
    let gauge = format!("rampart_documents_available {}\n", u8::from(problem.is_none()));
    until(&format!("documents are {state}: {problem:?}"), SOON, async || {
        let ready = edge.ops("/readyz").await;
        assert_eq!(ready.status(), 200, "an edge serves without documents");
        let body = ready.json();
        let checks = body["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "documents").unwrap();
        let says = check["detail"].as_str().unwrap().ends_with(problem.unwrap_or_default());
        let metrics = edge.ops("/metrics").await.text().to_owned();
        (check["status"] == state && says && metrics.contains(&gauge)).then_some(())
    })
    .await;
}

/// Waits until the bucket holds as many documents.
async fn holds(server: &S3Server, count: usize) {
    until(&format!("the bucket holds {count} documents"), CLEAN, async || {
        (server.documents().await.len() == count).then_some(())
    })
    .await;
}

/// Runs `rampart doctor` and returns what it prints.
async fn doctor(setup: &Setup) -> String {
    let process = setup.run("doctor");
    process.ended_within(SOON).await;
    process.out().join("\n")
}

#[tokio::test]
async fn documents_are_sealed_objects_until_their_user_is_erased() {
    let server = S3Server::start().await;
    let edge = edge_over(&server).await;
    is_usable(&edge, None).await;
    let partner = edge.partner("acme").await;
    // One within an ordinary body, one beyond: the second comes as an upload.
    let images = [image(1_000), image(700_000)];
    let users = [
        registered(&partner, "small", &images[0]).await,
        registered(&partner, "large", &images[1]).await,
    ];
    let stored = server.documents().await;
    assert_eq!(stored.len(), 2);
    for object in stored.values() {
        assert!(!object.windows(16).any(|piece| piece == [7; 16]), "it is stored in clear");
    }
    assert!(doctor(&edge.setup()).await.contains("ok      documents"));

    // Another process knows nothing but the database and the bucket.
    let setup = edge.setup();
    edge.process.kill();
    let edge = Edge::of(setup).await;
    for (user, image) in users.iter().zip(&images) {
        assert!(shown(&edge, user).await.assert_status(200).bytes() == image);
    }
    // What the database refuses leaves nothing.
    let again = with_passport("small", &images[0]);
    assert_ne!(partner.at(edge.address).post("/api/v2/user", again).await.status(), 200);
    holds(&server, 2).await;

    for user in &users {
        let path = format!("/admin/v1/users/{user}");
        let erased = json!({"deleted": true});
        edge.admin(Method::PATCH, &path, erased).await.assert_status(200);
    }
    // One that starts removes at once what waits.
    let _other = edge.beside().await;
    holds(&server, 0).await;
}

#[tokio::test]
async fn a_store_that_hangs_is_unavailable_and_nothing_is_half_stored() {
    let server = S3Server::start().await;
    let edge = edge_over(&server).await;
    is_usable(&edge, None).await;
    let partner = edge.partner("acme").await;
    let ada = registered(&partner, "ada", &image(1_000)).await;

    server.signal(Signal::SIGSTOP);
    let before = puts(&edge).await;
    refused(&partner, "late").await;
    assert_eq!(puts(&edge).await, before + 1, "the call was given up");
    is_usable(&edge, Some("the store does not answer in time")).await;
    refused_at_once(&edge, &partner, "later").await;
    shown(&edge, &ada).await.assert_status(503);
    // What needs no document is served.
    partner.post("/api/v2/user", registration("plain")).await.assert_status(200);

    server.signal(Signal::SIGCONT);
    is_usable(&edge, None).await;
    holds(&server, 1).await;
    shown(&edge, &ada).await.assert_status(200);
    registered(&partner, "late", &image(200_000)).await;
    holds(&server, 2).await;
}

#[tokio::test]
async fn uploads_that_wait_for_the_store_hold_no_connection_to_postgres() {
    let server = S3Server::start().await;
    let edge = Edge::with(|setup| {
        server.configure(setup);
        setup.set("database.acquire_timeout_ms", "1000");
    })
    .await;
    is_usable(&edge, None).await;
    let partner = edge.partner("acme").await;

    server.signal(Signal::SIGSTOP);
    // As many as there are connections for requests.
    let names: Vec<String> = (0..8).map(|number| format!("late{number}")).collect();
    let mut uploads = pin!(join_all(names.iter().map(|name| refused(&partner, name))));
    let mut pace = interval(READ_PAUSE);
    let took = loop {
        let read = async {
            pace.tick().await;
            partner.get("/api/v2/webhooks").await
        };
        tokio::select! {
            biased;
            took = &mut uploads => break took,
            answer = read => {
                answer.assert_status(200);
            }
        }
    };
    assert!(took.into_iter().any(|took| took >= WAITED_MIN), "no upload has waited");
    server.signal(Signal::SIGCONT);
}

#[tokio::test]
async fn a_store_that_is_killed_amid_an_upload_is_used_again_when_it_is_back() {
    let mut server = S3Server::start().await;
    let edge = edge_over(&server).await;
    is_usable(&edge, None).await;
    let partner = edge.partner("acme").await;

    server.signal(Signal::SIGSTOP);
    let upload = refused(&partner, "ada");
    let kill = async {
        after(Duration::from_secs(1)).await;
        server.kill();
    };
    tokio::join!(upload, kill);
    is_usable(&edge, Some("the store cannot be reached")).await;

    server.restart().await;
    is_usable(&edge, None).await;
    registered(&partner, "ada", &image(200_000)).await;
    holds(&server, 1).await;
}

#[tokio::test]
async fn a_store_that_refuses_or_lacks_the_bucket_is_named_and_no_secret_is() {
    let server = S3Server::start().await;
    let refuses = "the store refuses the access key, or its right to put, get, delete or list";
    for (key, value, problem) in [
        ("documents.s3_secret_key", "canary-word", refuses),
        ("documents.s3_access_key", "AKIACANARYWORD000000", refuses),
        ("documents.s3_url", "s3://nothing-here", "there is no such bucket"),
        ("documents.s3_endpoint", "http://127.0.0.1:1", "the store cannot be reached"),
    ] {
        let edge = Edge::with(|setup| {
            server.configure(setup);
            setup.set(key, value);
        })
        .await;
        is_usable(&edge, Some(problem)).await;
        let partner = edge.partner("acme").await;
        refused_at_once(&edge, &partner, "ada").await;
        let seen = doctor(&edge.setup()).await;
        assert!(seen.contains("warning documents: ") && seen.contains(problem), "{seen}");
        let logged = [edge.process.out(), edge.process.err(), vec![seen]].concat().join("\n");
        for word in ["canary", "CANARY", "SignatureDoesNotMatch", "<Error>"] {
            assert!(!logged.contains(word), "{word}: {logged}");
        }
        assert!(logged.contains(problem), "{logged}");
    }
    assert!(server.documents().await.is_empty());
}

#[tokio::test]
async fn settings_that_contradict_each_other_stop_the_start() {
    let refusals = [
        (
            "documents.folder",
            "/tmp/canary-word",
            "documents.folder and documents.s3_url are both set",
        ),
        ("documents.s3_url", "https://canary-word", "documents.s3_url is not a URL such as s3://"),
        (
            "documents.s3_endpoint",
            "ftp://canary-word",
            "documents.s3_endpoint is not a URL such as",
        ),
    ];
    for (key, value, reason) in refusals {
        let mut setup = Setup::over(&cluster::database().await).under_roles().await;
        setup.unset("documents.folder").set("documents.s3_url", "s3://documents");
        setup.set("documents.s3_access_key", "id").set("documents.s3_secret_key", "secret");
        setup.set(key, value);
        let process = setup.spawn();
        assert_eq!(process.ended().await.code(), Some(2));
        let said = [process.out(), process.err()].concat().join("\n");
        assert!(said.contains(reason), "{said}");
        assert!(!said.contains("canary-word"), "{said}");
    }
}
