//! A link between an edge and its Postgres that can break in every way a network can: connections
//! that are cut, bytes that are late or never come, and above all the answer of a commit that is
//! lost after Postgres has committed.
//!
//! It reads as much of Postgres's protocol (version 3, without TLS) as tells commits from the rest.

mod commits;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::commits::{Backend, Frontend, Lane, Reached};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// The state of every connection of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Bytes are forwarded as they come.
    Fair,
    /// Bytes arrive so much later.
    Slow(Duration),
    /// Connections stay open, new ones are accepted, and nothing is forwarded until this ends.
    Silent,
    /// As `Silent`, and connections that saw it never forward again.
    BlackHole,
    /// Open connections are closed, and new ones as soon as they are made.
    Refusing,
    /// What Postgres sends arrives broken: of some pieces the first half alone, in place of others noise.
    Garbled,
}

/// The link: an address on loopback in front of another one.
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    upstream: watch::Sender<SocketAddr>,
    weather: watch::Sender<Weather>,
    /// Connections of an earlier epoch are cut.
    epoch: watch::Sender<u64>,
    /// Commits whose answers are still to be lost.
    armed: AtomicUsize,
    lost: AtomicUsize,
}

impl Shared {
    /// Takes one of the armed cuts.
    fn disarm(&self) -> bool {
        let taken = |armed: usize| armed.checked_sub(1);
        self.armed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

impl Link {
    /// A link to `upstream`, open.
    pub async fn to(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            upstream: watch::Sender::new(upstream),
            weather: watch::Sender::new(Weather::Fair),
            epoch: watch::Sender::new(0),
            armed: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, Arc::clone(&serving)));
            }
        });
        Self { address, shared, accepting }
    }

    /// The address that stands for the other one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on new connections go there.
    pub fn lead_to(&self, upstream: SocketAddr) {
        self.shared.upstream.send_replace(upstream);
    }

    /// From now on connections, open ones too, are like this.
    pub fn set(&self, weather: Weather) {
        self.shared.weather.send_replace(weather);
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }

    /// Loses the answers of the next commits of bought orders, so many, and cuts their connections:
    /// after Postgres has committed, before the edge knows.
    pub fn lose_commits(&self, count: usize) {
        self.shared.armed.fetch_add(count, Ordering::Relaxed);
    }

    /// Answers of commits lost so far.
    pub fn commits_lost(&self) -> usize {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

/// Carries a connection until one of its ends or the link ends it.
async fn carry(client: TcpStream, shared: Arc<Shared>) {
    let mut epoch = shared.epoch.subscribe();
    let mut weather = shared.weather.subscribe();
    let mut carrying = pin!(forward(client, &shared));
    let ending = tokio::select! {
        biased;
        _ = epoch.changed() => return,
        ending = weather.wait_for(|now| matches!(now, Weather::BlackHole | Weather::Refusing)) => {
            ending.map(|ending| *ending)
        }
        () = &mut carrying => return,
    };
    if ending.is_ok_and(|ending| ending == Weather::BlackHole) {
        // Both ends stay open, and nobody reads them.
        let _cut = epoch.changed().await;
    }
}

/// Forwards both ways until one of the ends is closed.
async fn forward(client: TcpStream, shared: &Shared) {
    wait_for_weather(shared).await;
    let upstream = *shared.upstream.borrow();
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let lane = Arc::new(Lane::default());
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let frontend = Frontend::new(Arc::clone(&lane));
    let backend = Backend::new(lane);
    tokio::select! {
        () = upwards(from_client, to_server, frontend, shared) => {}
        () = downwards(from_server, to_client, backend, shared) => {}
    }
}

/// Forwards what the edge sends, and watches for commits.
async fn upwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut frontend: Frontend,
    shared: &Shared,
) {
    while let Some(bytes) = next(&mut from, shared).await {
        frontend.read(&bytes, || shared.disarm());
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Forwards what Postgres answers, up to the answer that is to be lost.
async fn downwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut backend: Backend,
    shared: &Shared,
) {
    while let Some(mut bytes) = next(&mut from, shared).await {
        let reached = backend.read(&bytes);
        let weather = *shared.weather.borrow();
        if weather == Weather::Garbled {
            garble(&mut bytes);
        }
        match reached {
            Reached::Forward => {
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Reached::Withhold => {}
            Reached::Committed => {
                shared.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// The next bytes, once the weather lets them through; `None` at the end.
async fn next(from: &mut OwnedReadHalf, shared: &Shared) -> Option<Vec<u8>> {
    let mut bytes = vec![0; CHUNK];
    let count = from.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
    bytes.truncate(count);
    wait_for_weather(shared).await;
    Some(bytes)
}

/// Breaks a piece of what Postgres sends, in one of two ways.
fn garble(bytes: &mut Vec<u8>) {
    let random = SystemRandom::new();
    let mut coin = [0];
    random.fill(&mut coin).unwrap();
    if coin[0] % 2 == 0 {
        bytes.truncate(bytes.len() / 2);
    } else {
        random.fill(bytes).unwrap();
    }
}

/// Waits until the weather is not silent, and as long as it delays.
async fn wait_for_weather(shared: &Shared) {
    let mut weather = shared.weather.subscribe();
    let Ok(now) = weather.wait_for(|weather| *weather != Weather::Silent).await.map(|now| *now)
    else {
        return;
    };
    if let Weather::Slow(delay) = now {
        late(delay).await;
    }
}

/// The delay of a slow link.
#[expect(clippy::disallowed_methods, reason = "the delay itself is what is simulated")]
async fn late(delay: Duration) {
    tokio::time::sleep_until(Instant::now() + delay).await;
}
