//! Connections that one address opens and keeps: beyond its share it gets none, and others get
//! theirs.

use std::time::Duration;

use futures::StreamExt as _;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::wire::connect;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// Connections that an address may have, as the edge is set up here.
const SHARE: usize = 64;
/// Connections that are tried, with a handshake and without.
const TRIED: usize = 3 * SHARE;
/// Connections that are opened at once.
const AT_ONCE: usize = 16;
/// Time for which they are kept.
const KEPT: Duration = Duration::from_secs(3);

pub(crate) async fn connections(scale: Scale) -> Report {
    let target = Target::with(|setup| {
        setup.set("edge.connections_per_address_max", SHARE.to_string());
        // The first one is open until the last one is, however long that takes.
        setup.set("edge.request_header_timeout_seconds", "60");
    })
    .await;
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        let address = target.edge.address;
        let opening = (0..TRIED).map(|_| connect(address, "http/1.1"));
        let open: Vec<_> = futures::stream::iter(opening).buffer_unordered(AT_ONCE).collect().await;
        let open: Vec<_> = open.into_iter().flatten().collect();
        for number in 0..TRIED {
            let beyond = number >= SHARE && number < open.len();
            verdict.note(beyond, || format!("connection {number} of one address"));
        }
        assert!(open.len() > SHARE / 2, "the share itself is granted: {}", open.len());
        // A connection without a handshake is closed when it is one too many.
        let silent = (0..TRIED).map(|_| TcpStream::connect(address));
        let silent: Vec<_> = futures::future::join_all(silent).await;
        keep((open, silent)).await;
    })
    .await
}

/// Keeps these for a while.
async fn keep<T>(kept: T) {
    let forever = std::future::pending::<()>();
    assert!(timeout(KEPT, forever).await.is_err());
    drop(kept);
}
