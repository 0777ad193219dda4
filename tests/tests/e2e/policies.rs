//! Policies pushed while requests run, and policies that do not end.

mod two_edges;

use std::process::Stdio;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use http::Method;
use nix::sys::signal::Signal;
use rampart_core::platform::clock::Clock;
use rampart_tests::answer::Answer;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::edge::Edge;
use rampart_tests::guests::component;
use rampart_tests::process::binary;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Pause between two requests: 100 a second, which leave a processor for the compiler at times.
const PACE: Duration = Duration::from_millis(10);
/// Of so many requests one is a quote; the others read prices.
const QUOTE_EVERY: usize = 10;
/// Quotes of a policy that loops, at once, and of the other partner beside them.
const LOOPS: usize = 20;
const BESIDE: usize = 5;

async fn quote(partner: &Caller, country: &str) -> Answer {
    let body = json!({
        "currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100,
        "countryCode": country,
    });
    partner.post("/api/v1/buy/quote", body).await
}

async fn partner_fee(partner: &Caller) -> Value {
    quote(partner, "NL").await.assert_status(200).json()["partnerFee"].clone()
}

/// Requests of one partner that go on at [`PACE`], each of them granted.
struct Load {
    task: JoinHandle<()>,
    answered: watch::Receiver<usize>,
    stop: watch::Sender<bool>,
}

impl Load {
    fn start(partner: &Caller) -> Self {
        let (counter, answered) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(load(partner.clone(), counter, stopped));
        Self { task, answered, stop }
    }

    /// Waits until so many more requests are answered that a quote is among them.
    async fn goes_on(&mut self) {
        let enough = *self.answered.borrow() + 2 * QUOTE_EVERY;
        let answered = self.answered.wait_for(|answered| *answered >= enough).await;
        answered.expect("no request fails");
    }

    async fn end(self) {
        self.stop.send(true).expect("no request fails");
        self.task.await.expect("no request fails");
    }
}

/// Asks whether or not answers have come, until told to stop, and counts the answers.
async fn load(partner: Caller, counter: watch::Sender<usize>, stop: watch::Receiver<bool>) {
    let (mut pace, mut asked) = (tokio::time::interval(PACE), 0_usize);
    let mut answers = FuturesUnordered::new();
    while !*stop.borrow() {
        pace.tick().await;
        asked += 1;
        let partner = partner.clone();
        answers.push(tokio::spawn(async move {
            if asked.is_multiple_of(QUOTE_EVERY) {
                quote(&partner, "NL").await.assert_status(200);
            } else {
                partner.get("/api/v1/prices").await.assert_status(200);
            }
        }));
        while let Some(Some(answer)) = answers.next().now_or_never() {
            answer.expect("no request fails");
            counter.send_modify(|answered| *answered += 1);
        }
    }
    while let Some(answer) = answers.next().await {
        answer.expect("no request fails");
    }
}

#[tokio::test]
async fn a_policy_pushed_under_load_prices_the_next_quote_and_no_request_fails() {
    let edge = Edge::shared().await;
    let partner = edge.partner("pushing").await;
    let mut load = Load::start(&partner.over(Protocol::Http2));
    let path = "/admin/v1/partners/pushing/policies/fee";
    let built_in = partner_fee(&partner).await;
    let push = async |guest| {
        edge.admin_bytes(Method::PUT, path, component(guest)).await.assert_status(200);
        partner_fee(&partner).await
    };
    assert_eq!(push("tiered-fee").await, json!(1.5));
    load.goes_on().await;
    assert_eq!(push("hostile").await, json!(1));
    load.goes_on().await;
    let rollback = format!("{path}/rollback");
    edge.admin(Method::POST, &rollback, json!({})).await.assert_status(200);
    assert_eq!(partner_fee(&partner).await, json!(1.5));
    load.goes_on().await;
    edge.admin(Method::DELETE, path, json!({})).await.assert_status(204);
    assert_eq!(partner_fee(&partner).await, built_in);
    assert!(built_in != json!(1.5) && built_in != json!(1), "{built_in}");
    load.goes_on().await;
    load.end().await;
}

#[tokio::test]
async fn failures_leave_one_line_a_second_with_the_policys_own_words() {
    let edge = Edge::start().await;
    let partner = edge.partner("failing").await;
    let path = "/admin/v1/partners/failing/policies/fee?config=%7B%22mode%22:%22error@FR%22%7D";
    edge.admin_bytes(Method::PUT, path, component("hostile")).await.assert_status(200);
    let clock = Clock::system();
    let began = clock.monotonic_ns();
    // A success between them keeps the breaker closed.
    for country in ["FR", "NL", "FR", "NL", "FR", "NL"] {
        quote(&partner, country).await.assert_status(200);
    }
    let seconds = (clock.monotonic_ns() - began) / 1_000_000_000;
    // An edge that has ended has written every line.
    edge.process.signal(Signal::SIGTERM);
    edge.process.ended().await;
    let mut lines = edge.process.err();
    lines.retain(|line| line.contains("a policy call failed"));
    let at_most = usize::try_from(seconds).unwrap() + 1;
    assert!((1..=at_most).contains(&lines.len()), "{lines:?}");
    for said in ["unsupported: this and that", "failing", "error"] {
        assert!(lines[0].contains(said), "{}", lines[0]);
    }
}

/// Calls of a partner's fee policy that ended because they took too long, by fuel or by time.
async fn stopped(edge: &Edge, partner: &str) -> usize {
    let metrics = edge.ops("/metrics").await.text().to_owned();
    let of = |outcome: &str| {
        let series = format!(
            r#"rampart_policy_calls_total{{kind="fee",outcome="{outcome}",partner="{partner}"}} "#
        );
        let count = metrics.lines().find_map(|line| line.strip_prefix(&series));
        count.map_or(0, |count| count.parse::<usize>().unwrap())
    };
    of("fuel") + of("deadline")
}

/// The time that a loop costs is measured where nothing else runs: by a unit test of the host and, as
/// others feel it, by the attacks in full.
#[tokio::test]
async fn a_policy_that_loops_is_stopped_and_every_request_beside_it_is_granted() {
    let edge = Edge::with(|setup| _ = setup.unset("policy.deadline_ms")).await;
    let (looping, other) = (edge.partner("looping").await, edge.partner("other").await);
    let path = "/admin/v1/partners/looping/policies/fee?config=%7B%22mode%22:%22loop@FR%22%7D";
    edge.admin_bytes(Method::PUT, path, component("hostile")).await.assert_status(200);
    let built_in = quote(&other, "FR").await.assert_status(200).json()["partnerFee"].clone();

    let looped = quote(&looping, "FR").await.assert_status(200).json();
    assert_eq!(looped["partnerFee"], built_in);
    assert_eq!(stopped(&edge, "looping").await, 1, "the breaker does not help yet");

    // A new version has a breaker of its own: the loops begin again while the other one asks.
    edge.admin_bytes(Method::PUT, path, component("hostile")).await.assert_status(200);
    let loops = futures::future::join_all((0..LOOPS).map(|_| quote(&looping, "FR")));
    let beside = async {
        for _ in 0..BESIDE {
            quote(&other, "FR").await.assert_status(200);
        }
    };
    let (loops, ()) = tokio::join!(loops, beside);
    for answer in loops {
        assert_eq!(answer.assert_status(200).json()["partnerFee"], built_in);
    }
    assert!(stopped(&edge, "looping").await > 1);
}

#[tokio::test]
async fn a_compilation_is_bounded_by_a_process_of_its_own() {
    let compile = async |memory_bytes: u64| {
        let mut command = Command::new(binary());
        command.args(["policy", "compile-child", &memory_bytes.to_string(), "60", "2097152"]);
        // As an edge starts it: reserved memory is not counted.
        command.env_clear().env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A child without memory ends before it has read everything.
        let _ = input.write_all(&component("tiered-fee")).await;
        drop(input);
        child.wait_with_output().await.unwrap()
    };
    let compiled = compile(1 << 30).await;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    assert!(compiled.stdout.len() > 10_000);
    let refused = compile(1 << 20).await;
    assert!(!refused.status.success() && refused.stdout.is_empty());
}
