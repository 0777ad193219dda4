//! `limits.upstream`: the one route that goes to a backend, whatever is spoken on either side.

mod backend;

use futures::future::join_all;
use http::{Method, Request};
use rampart_tests::answer::Answer;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::certificate::CERTIFICATE;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::user::registration;
use rampart_tests::wire::Wire;
use tokio::time::timeout;

use self::backend::{Backend, Behaviour, LARGE, Spoken};
use crate::slow_readers::narrow;

const PATH: &str = "/api/v2/user/limit";
const ANSWER: &str = r#"{"limits": {},   "of": "the backend"}"#;
/// Requests of a partner that may be in flight, and as many at the backend.
const IN_FLIGHT: usize = 2;

struct Ground {
    edge: Edge,
    partner: Caller,
    user: String,
    backend: Backend,
}

impl Ground {
    async fn new(spoken: Spoken) -> Self {
        Self::with(spoken, |_| {}).await
    }

    async fn with(spoken: Spoken, change: impl FnOnce(&mut Setup)) -> Self {
        let backend = Backend::start(spoken).await;
        let edge = Edge::with(|setup| {
            CERTIFICATE.write(setup.folder());
            let authority = setup.folder().join("cert.pem").display().to_string();
            setup.set("limits.upstream", format!("{}/base", backend.url()));
            setup.set("limits.upstream_ca", authority);
            change(setup);
        })
        .await;
        let partner = edge.partner("passing").await;
        let body = registration("passed");
        partner.post("/api/v2/user", body.clone()).await.assert_status(200);
        let user = body["identifier"].as_str().unwrap().to_owned();
        Self { edge, partner, user, backend }
    }

    async fn ask(&self, protocol: Protocol, query: &str) -> Answer {
        self.try_ask(protocol, query).await.expect("an answer")
    }

    async fn try_ask(&self, protocol: Protocol, query: &str) -> Option<Answer> {
        let request = self.partner.over(protocol).request(Method::GET, &format!("{PATH}{query}"));
        let request = request.header("user-identifier", &self.user).header("cookie", "a=b");
        request.header("x-request-id", "asked").try_send().await.ok()
    }
}

#[tokio::test]
async fn the_answer_comes_back_unchanged_over_every_protocol() {
    for spoken in [Spoken::Http1, Spoken::Http2, Spoken::Http1OverTls, Spoken::Http2OverTls] {
        let ground = Ground::new(spoken).await;
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let answer = ground.ask(protocol, "?groups=userLimits,accountLimits&a=%20b").await;
            assert_eq!(answer.assert_status(200).text(), ANSWER, "{spoken:?} {protocol:?}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("x-of-the-backend"), Some("kept"));
            assert_eq!(answer.header("x-request-id"), Some("asked"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert!(answer.header("ratelimit").is_some());
            assert_eq!(answer.header("x-of-the-connection"), None, "nominated by Connection");
        }
        ground.backend.behave(Behaviour::Trailers);
        for protocol in [Protocol::Http1, Protocol::Http2] {
            assert_eq!(ground.ask(protocol, "").await.assert_status(200).text(), ANSWER);
        }
        ground.backend.behave(Behaviour::Status(418));
        ground.ask(Protocol::Http1, "").await.assert_status(418);
        ground.backend.behave(Behaviour::Answer);
        let info = ground.partner.request(Method::GET, "/api/v1/user/info");
        info.header("user-identifier", &ground.user).send().await.assert_status(200);
        let heard = ground.backend.heard();
        assert_eq!(heard.len(), 5, "no other route goes there");
        assert_eq!(
            heard[0].target,
            "/base/api/v2/user/limit?groups=userLimits,accountLimits&a=%20b"
        );
        assert_eq!(ground.backend.connections(), 1, "{spoken:?}: the connection is kept");
    }
}

#[tokio::test]
async fn unread_answers_hold_no_permit_of_the_core_and_each_one_at_the_backend() {
    for spoken in [Spoken::Http1, Spoken::Http2] {
        let ground = Ground::with(spoken, |setup| {
            setup.set("edge.in_flight_per_partner_max", IN_FLIGHT.to_string());
        })
        .await;
        ground.backend.behave(Behaviour::Large);
        let sender = narrow(&ground.edge).await;
        let (name, value) = ground.partner.credential();
        let ask = async || {
            let request = Request::get(ground.edge.url(PATH)).header(name, value);
            let request = request.header("user-identifier", &ground.user).body(()).unwrap();
            let mut sender = sender.clone().ready().await.unwrap();
            sender.send_request(request, true).unwrap().0.await.unwrap()
        };
        let mut unread = Vec::new();
        for _ in 0..IN_FLIGHT {
            unread.push(ask().await);
        }
        assert!(unread.iter().all(|answer| answer.status() == 200), "{spoken:?}");
        ground.partner.get("/api/v1/prices").await.assert_status(200);
        // Each is given up after a while.
        until("no further one goes to the backend", SOON, async || {
            unread.push(ask().await);
            unread.last().filter(|answer| answer.status() != 200).map(|_| ())
        })
        .await;
    }
}

#[tokio::test]
async fn an_answer_for_which_there_is_no_memory_comes_whole() {
    for spoken in [Spoken::Http1, Spoken::Http2] {
        let ground = Ground::with(spoken, |setup| {
            // Half of it is for such answers.
            setup.set("edge.body_memory_bytes", "1048576");
        })
        .await;
        ground.backend.behave(Behaviour::Large);
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let answer = ground.ask(protocol, "").await;
            let length = answer.assert_status(200).text().len();
            assert_eq!(length, LARGE.len(), "{spoken:?} {protocol:?}");
        }
    }
}

#[tokio::test]
async fn the_backend_learns_who_asks_and_no_credential() {
    let ground = Ground::new(Spoken::Http1).await;
    let login = serde_json::json!({"emailAddress": "passed@mail.example.com",
        "password": "password-of-passed"});
    let session = ground.partner.post("/api/v1/user/login", login).await.json();
    ground.ask(Protocol::Http2, "").await.assert_status(200);
    let heard = ground.backend.heard().remove(0);
    assert_eq!(heard.header("x-user-id"), session["uuid"].as_str());
    assert_eq!(heard.header("x-client-id").map(str::len), Some(36));
    assert_eq!(heard.header("x-request-id"), Some("asked"));
    assert_eq!(heard.header("host"), Some(ground.backend.authority()));
    let names: Vec<_> = heard.headers.iter().map(|(name, _)| name.as_str()).collect();
    let known = [
        "host",
        "accept",
        "accept-encoding",
        "user-agent",
        "x-client-id",
        "x-user-id",
        "x-request-id",
    ];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
}

#[tokio::test]
async fn a_callers_trace_goes_on_at_the_backend() {
    let ground = Ground::new(Spoken::Http2).await;
    let (trace, caller) = ("00-4bf92f3577b34da6a3ce929d0e0e4736-", "00f067aa0ba902b7-01");
    let ask = ground.partner.request(Method::GET, PATH).header("user-identifier", &ground.user);
    let ask = ask.header("traceparent", &format!("{trace}{caller}"));
    ask.header("tracestate", "shop=cart-7").send().await.assert_status(200);
    let heard = ground.backend.heard().remove(0);
    let parent = heard.header("traceparent").unwrap();
    assert!(parent.starts_with(trace) && !parent.ends_with(caller), "{parent}");
    assert_eq!(heard.header("tracestate"), Some("shop=cart-7"));
}

#[tokio::test]
async fn a_user_is_proven_on_the_connections_of_requests() {
    let ground = Ground::new(Spoken::Http1).await;
    let statements = async || {
        let text = ground.edge.ops("/metrics").await.assert_status(200).text().to_owned();
        let series = r#"rampart_db_statement_duration_seconds_count{pool="requests"} "#;
        let count = text.lines().find_map(|line| line.strip_prefix(series)).unwrap();
        count.parse::<u64>().unwrap()
    };
    let before = statements().await;
    ground.ask(Protocol::Http1, "").await.assert_status(200);
    assert!(statements().await > before, "not on those of workers, which see every tenant");
}

#[tokio::test]
async fn who_is_not_proven_is_refused_at_the_edge() {
    let ground = Ground::new(Spoken::Http1).await;
    let ask = || ground.partner.request(Method::GET, PATH);
    ask().send().await.assert_status(400).assert_codes(&["ER700"]);
    let unknown = "u".repeat(36);
    ask().header("user-identifier", &unknown).send().await.assert_codes(&["ER705"]);
    let anonymous = ground.partner.anonymous(Method::GET, PATH);
    anonymous.header("user-identifier", &ground.user).send().await.assert_codes(&["ER802"]);
    let slow = serde_json::json!({"rateLimits": {"client": "1/min burst 1"}});
    ground.edge.admin(Method::PATCH, "/admin/v1/partners/passing", slow).await.assert_status(200);
    let mut limited = false;
    for _ in 0..3 {
        limited |= ask().header("user-identifier", &unknown).send().await.status() == 429;
    }
    assert!(limited);
    assert_eq!(ground.backend.heard().len(), 0);
}

#[tokio::test]
async fn a_request_with_a_body_is_passed_on_without_it() {
    for spoken in [Spoken::Http1, Spoken::Http2] {
        let ground = Ground::new(spoken).await;
        for (size, status) in [(0, 200), (10, 200), (60_000, 200), (100_000, 413), (300_000, 413)] {
            for protocol in [Protocol::Http1, Protocol::Http2] {
                let request = ground.partner.over(protocol).request(Method::GET, PATH);
                let request = request.header("user-identifier", &ground.user);
                let answer = request.body(vec![b'x'; size]).send().await;
                assert_eq!(answer.status(), status, "{spoken:?} {protocol:?} {size}");
            }
        }
        assert!(ground.backend.heard().iter().all(|heard| heard.body == 0));
    }
}

#[tokio::test]
async fn a_client_that_was_asked_for_its_body_gets_a_503_too() {
    let ground = Ground::new(Spoken::Http1).await;
    ground.backend.behave(Behaviour::Silence);
    let (name, value) = ground.partner.credential();
    let user = &ground.user;
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nHost: a\r\n{name}: {value}\r\nUser-Identifier: {user}\r\n\
         Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    );
    let mut wire = Wire::open(ground.edge.address).await;
    assert_eq!(wire.exchange(head.as_bytes()).await.unwrap().status(), 100);
    let answer = wire.exchange(b"{}").await.expect("an answer behind the interim one");
    answer.assert_status(503).assert_codes(&["ER999"]);
}

#[tokio::test]
async fn a_backend_that_sends_interim_answers_without_end_is_a_503() {
    let ground = Ground::new(Spoken::Http1).await;
    ground.backend.behave(Behaviour::Interim);
    let asking = [Protocol::Http1, Protocol::Http2].map(|protocol| ground.ask(protocol, ""));
    let answers = timeout(SOON, join_all(asking)).await.expect("the time for an answer is bounded");
    for answer in answers {
        answer.assert_status(503).assert_codes(&["ER999"]);
    }
}

#[tokio::test]
async fn an_interim_answer_of_the_backend_is_kept_from_clients() {
    let ground = Ground::new(Spoken::Http1).await;
    ground.backend.behave(Behaviour::Hinted);
    let (name, value) = ground.partner.credential();
    let user = &ground.user;
    for version in ["HTTP/1.0", "HTTP/1.1"] {
        let head = format!(
            "GET {PATH} {version}\r\nHost: a\r\n{name}: {value}\r\n\
             User-Identifier: {user}\r\n\r\n"
        );
        let answer = Wire::open(ground.edge.address).await.exchange(head.as_bytes()).await;
        assert_eq!(answer.unwrap().assert_status(200).text(), ANSWER, "{version}");
    }
}

/// Asks for what a backend that speaks this protocol does not give.
async fn misses(spoken: Spoken) {
    let ground = Ground::new(spoken).await;
    for behaviour in [Behaviour::Silence, Behaviour::Hang, Behaviour::Announced(2 << 20)] {
        ground.backend.behave(behaviour);
        let answer = ground.ask(Protocol::Http2, "").await;
        answer.assert_status(503).assert_codes(&["ER999"]);
        assert!(answer.header("retry-after").is_some() && answer.header("ratelimit").is_some());
    }
    // Its size is found out only after the head has gone: the answer breaks off.
    ground.backend.behave(Behaviour::Endless);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        assert!(ground.try_ask(protocol, "").await.is_none(), "{spoken:?} {protocol:?}");
    }
    ground.backend.behave(Behaviour::Answer);
    ground.ask(Protocol::Http1, "").await.assert_status(200);
    ground.backend.stop().await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let answer = ground.ask(protocol, "").await;
        answer.assert_status(503).assert_codes(&["ER999"]);
    }
    // Nobody else feels it.
    ground.partner.get("/api/v1/prices").await.assert_status(200);
}

#[tokio::test]
async fn a_backend_that_is_down_silent_or_endless_is_a_503() {
    // Each waits for the same time-outs.
    tokio::join!(misses(Spoken::Http1), misses(Spoken::Http2));
}
