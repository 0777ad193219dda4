//! Open and idle connections, and the requests on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus::IntGauge;

/// An open connection in the metrics, until it is dropped.
#[derive(Debug)]
pub struct ConnectionMeter {
    open: IntGauge,
    idle: IntGauge,
    in_flight: IntGauge,
    requests: AtomicUsize,
}

impl ConnectionMeter {
    pub(super) fn new(open: IntGauge, idle: IntGauge, in_flight: IntGauge) -> Self {
        open.inc();
        idle.inc();
        Self { open, idle, in_flight, requests: AtomicUsize::new(0) }
    }

    /// Counts a request on the connection until the guard is dropped.
    pub fn begin_request(self: &Arc<Self>) -> RequestInFlight {
        if self.requests.fetch_add(1, Ordering::AcqRel) == 0 {
            self.idle.dec();
        }
        self.in_flight.inc();
        RequestInFlight(Arc::clone(self))
    }
}

impl Drop for ConnectionMeter {
    /// Requests keep it: it is idle.
    fn drop(&mut self) {
        self.idle.dec();
        self.open.dec();
    }
}

/// A request that is under way.
#[derive(Debug)]
pub struct RequestInFlight(Arc<ConnectionMeter>);

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.in_flight.dec();
        if self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.inc();
        }
    }
}
