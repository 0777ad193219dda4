//! The connector killed at each of its calls, before the edge gets it and before the answer is back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rampart_core::platform::clock::Clock;
use rampart_tests::test_context::TestContext;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Sales of the test.
const SALES: usize = 3;
/// Most kills: more than a run has pieces.
const KILLS_MAX: usize = 200;

/// A way to the edge that lets so many pieces pass, whichever way they go, and holds the next one.
struct Tripwire {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    left: AtomicUsize,
    tripped: AtomicBool,
}

impl Tripwire {
    async fn before(edge: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(edge).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(Arc::clone(&shared).carry(from_client, to_server));
                tokio::spawn(Arc::clone(&shared).carry(from_server, to_client));
            }
        });
        Self { address, state }
    }
}

impl State {
    async fn carry(self: Arc<Self>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let pass = |left: usize| left.checked_sub(1);
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pass).is_err() {
                self.tripped.store(true, Ordering::Relaxed);
                return;
            }
            if to.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn killed_at_every_call_it_writes_each_transfer_once() {
    let market = Market::open().await;
    let context = TestContext::beside(&market.edge, Clock::system()).await;
    let mut sales = Vec::new();
    for _ in 0..SALES {
        sales.push(market.sale().await);
    }
    let open = async || -> i64 {
        let count = "select count(*) from command where kind = 'transfer.send' and state = 'open'";
        sqlx::query_scalar(count).fetch_one(context.db()).await.unwrap()
    };
    let all = i64::try_from(SALES).unwrap();
    until("the transfers are commanded", WITHIN, async || (open().await == all).then_some(()))
        .await;
    let way = Tripwire::before(market.edge.connectors).await;
    market.bank.lead_to(way.address);
    let mut kills = 0;
    while open().await > 0 {
        assert!(kills < KILLS_MAX, "it does not get further");
        way.state.left.store(kills, Ordering::Relaxed);
        way.state.tripped.store(false, Ordering::Relaxed);
        let connector = market.bank.spawn(&[]);
        until("it is stopped on its way", WITHIN, async || {
            assert!(connector.status().is_none(), "{:?}", connector.err());
            way.state.tripped.load(Ordering::Relaxed).then_some(())
        })
        .await;
        connector.kill();
        kills += 1;
        market.bank.collect();
        // The lease of a process that is gone ends at once, instead of in minutes.
        let end = "update command set leased_until = now() where leased_until is not null";
        sqlx::query(end).execute(context.db()).await.unwrap();
    }
    let transfers = market.bank.transfers();
    let times: Vec<usize> = transfers.values().map(|(times, _)| *times).collect();
    assert_eq!(times, [1; SALES], "after {kills} kills");
    let mut paid: Vec<u64> =
        transfers.values().map(|(_, text)| element(text, "Ustrd").parse().unwrap()).collect();
    paid.sort_unstable();
    sales.sort_unstable();
    assert_eq!(paid, sales);
    assert!(kills > 2 * SALES + 2, "{kills} kills are fewer than a run has calls");
}
