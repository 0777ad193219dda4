//! A partner that reads the catalogue at its own pace, for paths that ask what it feels of others.

use std::time::Duration;

use bytes::Bytes;
use rampart_tests::rounds::quantile;

use super::CATALOGUE;
use crate::load_client::{paced, request};
use crate::side::Side;

/// Its connections, and the time between two of its requests, all connections together.
const CONNECTIONS: usize = 8;
const PACE: Duration = Duration::from_millis(1);
/// Factor by which it reads longer than other measurements: few requests have no meaningful p99.
const LONGER: u32 = 2;

/// A partner without policies.
pub(super) struct Reader<'a> {
    side: &'a Side<'a>,
    read: Bytes,
}

impl<'a> Reader<'a> {
    /// The one of this edge.
    pub(super) fn of(side: &'a Side<'a>) -> Self {
        Self { side, read: request(&format!("GET {CATALOGUE}"), &[&side.plain], "") }
    }

    /// Seconds within which 99 of 100 of its requests are answered while others do `meanwhile`,
    /// which is told how long it should take. Counted from when each was due.
    pub(super) fn p99<T>(&self, time: Duration, meanwhile: impl AsyncFnOnce(Duration) -> T) -> f64 {
        let time = time * LONGER;
        let reading = paced(self.side.address(), CONNECTIONS, vec![self.read.clone()], PACE, time);
        let both = async { tokio::join!(reading, meanwhile(time)).0 };
        let seconds = self.side.environment.runtime.block_on(both);
        quantile(&seconds, 99, 100).expect("some were read")
    }
}
