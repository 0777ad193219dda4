//! rustls makes its ticket keys at random, so that a ticket is good for one process only: here they
//! are derived from the master key, another one each day, and every edge opens every edge's tickets.

use std::fmt;
use std::sync::Arc;

use rampart_core::Core;
use rampart_core::platform::crypto::{DataKey, Purpose};
use rustls::server::ProducesTickets;

/// Seconds that a ticket is good for, at most: its key is used for this day and the next.
const LIFETIME_SECONDS: u32 = 24 * 60 * 60;
/// Bytes in front of a ticket that name its day.
const DAY_BYTES: usize = 8;
/// The context that tickets are sealed for.
const CONTEXT: &str = "tls ticket";

/// Seals and opens the session tickets of all edges with this master key.
pub(super) struct Tickets(pub(super) Arc<Core>);

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets(…)")
    }
}

impl Tickets {
    fn today(&self) -> i64 {
        self.0.clock.now().timestamp().div_euclid(i64::from(LIFETIME_SECONDS))
    }

    fn key(&self, day: i64) -> Option<DataKey> {
        self.0.keys.sealing_key(Purpose::TlsTickets { day }).ok()
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_SECONDS
    }

    /// Without entropy there is no ticket.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let day = self.today();
        let sealed = self.key(day)?.seal(&self.0.clock, CONTEXT, plain).ok()?;
        Some([&day.to_be_bytes()[..], &sealed].concat())
    }

    /// Those of yesterday too, and of an edge whose clock is ahead at midnight.
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (day, sealed) = cipher.split_first_chunk::<DAY_BYTES>()?;
        let (day, today) = (i64::from_be_bytes(*day), self.today());
        if !(today - 1..=today + 1).contains(&day) {
            return None;
        }
        self.key(day)?.open(CONTEXT, sealed).ok()
    }
}
