//! The bounded queue of jobs that wait for the worker.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rampart_types::ClientId;

use super::Job;

/// Queue capacity. Shadow runs over it are counted as skipped, and calls with log lines as dropped.
const JOBS_MAX: usize = 512;
/// Most of it for one partner: a busy one leaves room for others.
const JOBS_OF_PARTNER_MAX: usize = 128;

/// Shadow runs and samples that wait for the worker.
#[derive(Default)]
pub struct ShadowQueue(Mutex<Queued>);

#[derive(Default)]
struct Queued {
    jobs: Vec<Job>,
    /// Number of jobs of each partner.
    of_partners: HashMap<ClientId, usize>,
}

impl ShadowQueue {
    /// Jobs that wait.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).jobs.len()
    }

    /// Adds a job of a partner if there is capacity.
    pub(super) fn push(&self, client: ClientId, job: Job) -> bool {
        // A list of whole jobs: a panic elsewhere cannot have left it half written.
        let mut queued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_partner = queued.of_partners.get(&client).copied().unwrap_or(0);
        let has_capacity = queued.jobs.len() < JOBS_MAX && of_partner < JOBS_OF_PARTNER_MAX;
        if has_capacity {
            queued.of_partners.insert(client, of_partner + 1);
            queued.jobs.push(job);
        }
        has_capacity
    }

    pub(super) fn drain(&self) -> Vec<Job> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).jobs
    }
}

rampart_types::opaque_debug!(ShadowQueue);
