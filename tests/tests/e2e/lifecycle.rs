//! The end of a process, and the start of its successor, as its clients see them.

use std::fs;
use std::time::Duration;

use futures::future::join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::certificate::{CERTIFICATE, Certificate};
use rampart_tests::cluster::{self, until_a_lock_is_awaited};
use rampart_tests::deadline::{SOON, after, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::wire::{Wire, connect, connect_to};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::migrations::{LATER, execute, undo_newest};

const PRICES: &str = "/api/v1/prices";
/// Requests that run at any time during an upgrade.
const BUSY: usize = 6;
/// Newcomers at once: as many as wait in a socket by default of Linux.
const NEWCOMERS: usize = 4_096;
/// Upgrades in a row.
const UPGRADES: usize = 3;
/// Time in which a process that does not wait for what is in flight has ended.
const END: Duration = Duration::from_secs(2);

/// A request that is answered with 404.
const NOWHERE: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n";

/// The head of a request whose body its sender keeps back until it is asked for.
fn head_of_quote(partner: &Caller) -> String {
    let key = partner.secret("apiKey");
    format!(
        "POST /api/v1/buy/quote HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\
         Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
}

#[tokio::test]
async fn sigterm_finishes_what_is_in_flight_and_says_first_that_it_is_not_ready() {
    let edge = Edge::start().await;
    let partner = edge.partner("patient").await;
    edge.ops("/readyz").await.assert_status(200);
    let idle = Wire::open(edge.address).await;
    let mut wire = Wire::open(edge.address).await;
    let begun = wire.exchange(head_of_quote(&partner).as_bytes()).await.unwrap();
    assert_eq!(begun.status(), 100, "the request is in flight");

    edge.process.signal(Signal::SIGTERM);
    let unready = until("/readyz says no", SOON, async || {
        let ready = edge.ops("/readyz").await;
        (ready.status() == 503).then_some(ready)
    })
    .await;
    assert_eq!(unready.json()["stopping"], true);
    assert_eq!(unready.header("retry-after"), Some("1"));
    edge.ops("/healthz").await.assert_status(200);

    let answer = wire.exchange(b"{}").await.expect("what is in flight is answered");
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(wire.is_closed().await);
    assert_eq!(edge.process.ended().await.code(), Some(0));
    drop(idle);
    assert!(Wire::try_open(edge.address).await.is_err(), "nobody accepts any more");
}

/// Asks until told to stop; the number of answers. Every one is granted.
async fn keep_asking(caller: Caller, anew: bool, stop: watch::Receiver<bool>) -> usize {
    let (mut answers, mut caller) = (0, caller);
    while !*stop.borrow() {
        if anew {
            caller = caller.over(Protocol::Http1);
        }
        caller.get(PRICES).await.assert_status(200);
        answers += 1;
    }
    answers
}

/// Requests over HTTP/1.1, on few connections and on many, and over HTTP/2.
struct Load {
    stop: watch::Sender<bool>,
    asking: Vec<JoinHandle<usize>>,
}

impl Load {
    fn begin(partner: &Caller) -> Self {
        let (stop, stopped) = watch::channel(false);
        let asking = (0..BUSY).map(|number| {
            let protocol = if number % 3 == 0 { Protocol::Http2 } else { Protocol::Http1 };
            let caller = partner.over(protocol);
            tokio::spawn(keep_asking(caller, number % 3 == 1, stopped.clone()))
        });
        Self { asking: asking.collect(), stop }
    }

    async fn end(self) {
        self.stop.send(true).unwrap();
        for answers in join_all(self.asking).await {
            assert!(answers.expect("no request fails") > 0);
        }
    }
}

/// A new process in the place of this edge.
async fn upgraded(edge: Edge) -> Edge {
    let mut setup = edge.setup();
    setup.clear_arguments().argument("--upgrade");
    let upgrading = Edge::of(setup);
    edge.process.signal(Signal::SIGQUIT);
    let next = upgrading.await;
    assert_eq!((next.address, next.admin, next.ops), (edge.address, edge.admin, edge.ops));
    assert_eq!(edge.process.ended().await.code(), Some(0));
    next
}

/// Waits for these words in the log of an edge.
async fn until_said(edge: &Edge, words: &str) {
    until("it says so", SOON, async || {
        edge.process.err().iter().any(|line| line.contains(words)).then_some(())
    })
    .await;
}

/// Connections to the public and the operations' listener that were accepted and sent no request,
/// beside one that lies idle behind its first.
struct Newcomers {
    public: Wire,
    private: Wire<TcpStream>,
    idle: Wire,
}

impl Newcomers {
    async fn accepted(edge: &Edge) -> Self {
        let public = Wire::open(edge.address).await;
        let private = Wire::plain(edge.ops).await;
        let mut idle = Wire::open(edge.address).await;
        assert_eq!(idle.exchange(NOWHERE).await.unwrap().status(), 404);
        // One after another they are accepted.
        edge.ops("/healthz").await.assert_status(200);
        Self { public, private, idle }
    }

    /// Their first requests are their last ones, and answered although idle connections are closed.
    async fn are_served(mut self) {
        assert!(self.idle.is_closed().await);
        let answers = [self.public.exchange(NOWHERE).await, self.private.exchange(NOWHERE).await];
        for answer in answers {
            let answer = answer.expect("a first request is answered");
            assert_eq!(answer.status(), 404);
            assert_eq!(answer.header("connection"), Some("close"));
        }
    }
}

#[tokio::test]
async fn accepted_connections_get_a_first_answer_in_an_upgrade_and_a_stop() {
    // A successor starts in less.
    let edge = Edge::with(|setup| _ = setup.set("edge.request_header_timeout_seconds", "60")).await;
    let mut setup = edge.setup();
    setup.clear_arguments().argument("--upgrade");
    let newcomers = Newcomers::accepted(&edge).await;
    let upgrading = Edge::of(setup);
    edge.process.signal(Signal::SIGQUIT);
    let (next, ()) = tokio::join!(upgrading, newcomers.are_served());
    assert_eq!(edge.process.ended().await.code(), Some(0));

    let newcomers = Newcomers::accepted(&next).await;
    next.process.signal(Signal::SIGTERM);
    newcomers.are_served().await;
    assert_eq!(next.process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn an_upgrade_under_load_loses_no_request() {
    let mut edge = Edge::start().await;
    let load = Load::begin(&edge.partner("steady").await);
    for _ in 0..UPGRADES {
        edge = upgraded(edge).await;
    }
    edge.ops("/readyz").await.assert_status(200);
    load.end().await;
}

#[tokio::test]
async fn an_upgrade_with_a_migration_and_the_way_back_lose_no_request() {
    let database = cluster::database().await;
    let pool = cluster::pool(&database).await;
    undo_newest(&pool).await;
    let setup = Setup::over(&database);
    let edge = Edge::of(setup.clone()).await;
    let load = Load::begin(&edge.partner("steady").await);
    let migrating = setup.run("migrate");
    assert_eq!(migrating.ended().await.code(), Some(0), "{:?}", migrating.err());
    let edge = upgraded(edge).await;
    // To the edge of an earlier version the schema is a later one.
    execute(&pool, LATER).await;
    let edge = upgraded(edge).await;
    edge.ops("/readyz").await.assert_status(200);
    load.end().await;
}

/// The connection over which an edge tells its successor, which says that it is ready, to accept.
async fn ready(edge: &Edge) -> UnixStream {
    let path = edge.setup().folder().join("upgrade.sock");
    let transfer = UnixListener::bind(&path).unwrap();
    edge.process.signal(Signal::SIGQUIT);
    // The sockets are in the message, and closed with it.
    let (mut message, _) = transfer.accept().await.unwrap();
    message.read_to_end(&mut Vec::new()).await.unwrap();
    fs::remove_file(&path).unwrap();
    let mut answers = until("the edge waits for its successor", SOON, async || {
        UnixStream::connect(path.with_added_extension("accepting")).await.ok()
    })
    .await;
    answers.write_all(b"ready\n").await.unwrap();
    answers
}

#[tokio::test]
async fn an_edge_accepts_again_when_its_successor_does_not() {
    let edge = Edge::start().await;
    let partner = edge.partner("stays").await;
    let mut kept = Wire::open(edge.address).await;
    assert_eq!(kept.exchange(NOWHERE).await.unwrap().status(), 404);
    for (why, waits) in [("it has ended", false), ("it is late", true)] {
        let mut successor = ready(&edge).await;
        let mut told = [0; 7];
        successor.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, b"accept\n");
        let mut rest = Vec::new();
        if waits {
            successor.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"withdrawn\n");
        }
        drop(successor);
        until("it says so", SOON, async || {
            let err = edge.process.err();
            let says = |line: &String| line.contains("accepting again") && line.contains(why);
            err.iter().any(says).then_some(())
        })
        .await;
        let answer = kept.exchange(NOWHERE).await.expect("an earlier connection goes on");
        assert_ne!(answer.header("connection"), Some("close"));
        for protocol in [Protocol::Http1, Protocol::Http2] {
            partner.over(protocol).get(PRICES).await.assert_status(200);
        }
        edge.ops("/readyz").await.assert_status(200);
    }
    let mut setup = edge.setup();
    setup.clear_arguments().argument("--upgrade");
    let upgrading = Edge::of(setup);
    edge.process.signal(Signal::SIGQUIT);
    let next = upgrading.await;
    assert_eq!(next.address, edge.address);
    assert_eq!(edge.process.ended().await.code(), Some(0));
    partner.over(Protocol::Http1).get(PRICES).await.assert_status(200);
}

#[tokio::test]
async fn sigterm_while_a_successor_takes_over_finishes_what_is_in_flight() {
    let edge = Edge::start().await;
    let partner = edge.partner("taken-over").await;
    let mut wire = Wire::open(edge.address).await;
    let mut kept = Wire::open(edge.address).await;
    let mut successor = ready(&edge).await;
    successor.read_exact(&mut [0; 7]).await.unwrap();
    let begun = wire.exchange(head_of_quote(&partner).as_bytes()).await.unwrap();
    assert_eq!(begun.status(), 100, "the request is in flight");
    edge.process.signal(Signal::SIGTERM);
    until("the signal is caught", SOON, async || {
        let status = fs::read_to_string(format!("/proc/{}/status", edge.process.id())).unwrap();
        status.lines().any(|line| line == "ShdPnd:\t0000000000000000").then_some(())
    })
    .await;
    assert_eq!(kept.exchange(NOWHERE).await.unwrap().status(), 404);
    successor.write_all(b"taken\n").await.unwrap();
    until_said(&edge, "the new process accepts").await;
    after(END).await;
    let answer = wire.exchange(b"{}").await.expect("what is in flight is answered");
    assert_eq!(answer.status(), 400);
    assert_eq!(edge.process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_stop_accepts_for_its_delay_and_finishes_what_takes_longer_than_the_drain() {
    let edge = Edge::with(|setup| {
        setup.set("edge.shutdown_delay_seconds", "4").set("edge.drain_seconds", "0");
    })
    .await;
    let partner = edge.partner("late").await;
    let mut holder = PgConnection::connect(edge.setup().database()).await.unwrap();
    let mut lock = holder.begin().await.unwrap();
    sqlx::raw_sql("lock table webhook_endpoint in access exclusive mode")
        .execute(&mut *lock)
        .await
        .unwrap();
    let slow = tokio::spawn({
        let partner = partner.clone();
        async move { partner.get("/api/v2/webhooks").await }
    });
    until_a_lock_is_awaited(&cluster::pool(edge.setup().database()).await).await;
    edge.process.signal(Signal::SIGTERM);
    until("/readyz says no", SOON, async || {
        (edge.ops("/readyz").await.status() == 503).then_some(())
    })
    .await;
    let answer = partner.over(Protocol::Http1).get(PRICES).await;
    assert_eq!(answer.assert_status(200).header("connection"), Some("close"));
    until("nobody accepts any more", SOON, async || {
        Wire::try_open(edge.address).await.is_err().then_some(())
    })
    .await;
    edge.ops("/healthz").await.assert_status(200);
    lock.rollback().await.unwrap();
    slow.await.unwrap().assert_status(200);
    assert_eq!(edge.process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn an_upgrade_that_nobody_takes_changes_nothing() {
    let edge = Edge::with(|setup| _ = setup.unset("edge.upgrade_socket")).await;
    let partner = edge.partner("stays").await;
    edge.process.signal(Signal::SIGQUIT);
    until_said(&edge, "'edge.upgrade_socket'").await;
    partner.get(PRICES).await.assert_status(200);
    edge.ops("/readyz").await.assert_status(200);
}

/// As while a new process starts, or a processor is wanted by others.
#[tokio::test]
async fn newcomers_wait_in_the_socket_of_a_process_that_cannot_accept() {
    let edge = Edge::start().await;
    // Each newcomer is an open file of the test.
    let (_, open_files_max) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, open_files_max, open_files_max).unwrap();
    edge.process.signal(Signal::SIGSTOP);
    let connecting = join_all((0..NEWCOMERS).map(|_| TcpStream::connect(edge.address)));
    let connected = timeout(SOON, connecting).await;
    edge.process.signal(Signal::SIGCONT);
    for newcomer in connected.expect("the socket has room for all of them") {
        newcomer.unwrap();
    }
    let next =
        until("newcomers are served", SOON, async || Wire::try_open(edge.address).await.ok());
    assert_eq!(next.await.exchange(NOWHERE).await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let edge = Edge::start().await;
    let mut before = Wire::open(edge.address).await;
    assert_eq!(&before.certificate(), CERTIFICATE.der());
    let new = Certificate::make();
    new.write(edge.setup().folder());
    until("the new certificate is shown", SOON, async || {
        connect_to(edge.address, &new, "http/1.1").await.ok()
    })
    .await;
    assert!(connect(edge.address, "http/1.1").await.is_err(), "the old one is shown no more");
    assert_eq!(before.exchange(NOWHERE).await.unwrap().status(), 404, "open connections go on");

    fs::write(edge.setup().folder().join("cert.pem"), "not PEM").unwrap();
    until("the broken one is named", SOON, async || {
        let err = edge.process.err();
        err.iter().any(|line| line.contains("cert.pem' cannot be used")).then_some(())
    })
    .await;
    connect_to(edge.address, &new, "h2").await.unwrap();
}
