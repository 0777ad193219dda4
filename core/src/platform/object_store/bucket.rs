//! Objects in a bucket of S3 (`documents.s3_url`).
//!
//! An object is sealed into a file without a name while it arrives, and put into the bucket in one
//! call once its header is known. Every call has a deadline. One that fails closes the store: until
//! a probe succeeds, calls are refused at once, so that a bucket that hangs holds up a few requests
//! and not all of them. What may have been stored and was not retained is deleted in the background.

mod client;

use std::collections::VecDeque;
use std::io::Cursor;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prometheus::{HistogramVec, IntGauge};
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use uuid::Uuid;

use self::client::{Client, Failure, time_for};
use super::StoredObject;
use super::format::{HEADER_BYTES, SEALED_BYTES_MAX, failed};
use super::sealed_object::SealedObject;
use super::writer::ObjectWriter;
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_shares::{KeyedShares, Share};
use crate::platform::metrics::Metrics;
use crate::platform::settings;
use rampart_types::ClientId;

const MIB: usize = 1024 * 1024;
/// Memory of objects that are being put, in MiB.
const PUTS_MIB: u32 = 96;
/// Most of it for those of one partner: three quarters.
const PUTS_PER_PARTNER_MIB: u32 = PUTS_MIB - PUTS_MIB / 4;
/// Least that an object counts there, which bounds the puts at once.
const PUT_MIB_MIN: u32 = 6;
/// Most objects that operators read at once.
const GETS_MAX: usize = 2;
/// Longest wait for a permit to do either.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two probes of a bucket that can be used.
const PROBE_PAUSE: Duration = Duration::from_secs(15);
/// Time between two probes of one that cannot, and between two looks at what is to be deleted.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Time after which a discarded object is deleted again: a put that was given up may come to its end
/// after the first time.
const DELETE_AGAIN: Duration = Duration::from_secs(60);
/// Most objects that wait to be deleted; a further one stays, sealed.
const DISCARDED_MAX: usize = 16_384;
/// The content of a probe's object.
const PROBE: &[u8] = b"rampart";
/// The operation in logs.
const OPERATION: &str = "use the store of documents";
/// That of a call that gets no permit.
const TOO_MANY: &str = "use the store of documents: too many others do";
/// That of a put whose partner has its share already.
const TOO_MANY_OF_PARTNER: &str = "use the store of documents: too many others of this partner do";

/// A bucket of sealed objects.
pub(super) struct Bucket {
    client: Client,
    clock: Clock,
    /// Name of this process's probe.
    probe: String,
    puts: PutPermits,
    gets: Semaphore,
    /// The reason the bucket cannot be used; `None` when it can, or nobody has tried.
    problem: Mutex<Option<Failure>>,
    /// Objects to be deleted, in the order in which they are due.
    discarded: Mutex<VecDeque<Discarded>>,
    /// Told when something was discarded or a call has failed.
    waiting: Notify,
    available: IntGauge,
    call_duration: HistogramVec,
}

/// Permits for objects that are being put, in MiB: of all, and of each partner among them, so that the
/// uploads of one leave room for those of others.
struct PutPermits {
    all: Arc<Semaphore>,
    partners: Arc<KeyedShares<ClientId>>,
}

/// The permits of one put.
struct PutPermit {
    _share: Share<ClientId>,
    _all: OwnedSemaphorePermit,
}

impl PutPermits {
    fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(PUTS_MIB as usize)),
            partners: Arc::new(KeyedShares::new(PUTS_PER_PARTNER_MIB)),
        }
    }

    /// Permits for an object of a partner.
    ///
    /// # Errors
    /// 503 when they are not free in time.
    async fn acquire(&self, partner: ClientId, mib: u32) -> Result<PutPermit> {
        let mut has_share = false;
        let acquiring = async {
            let (share, _) = self.partners.take(partner, mib).await?;
            has_share = true;
            let all = Arc::clone(&self.all).acquire_many_owned(mib).await?;
            Ok::<_, AcquireError>(PutPermit { _share: share, _all: all })
        };
        match timeout(PERMIT_TIMEOUT, acquiring).await {
            Ok(Ok(permit)) => Ok(permit),
            _ if has_share => Err(Error::unavailable(TOO_MANY)),
            _ => Err(Error::share_used_up(TOO_MANY_OF_PARTNER)),
        }
    }
}

/// An object that nobody retained.
struct Discarded {
    id: Uuid,
    due_ns: u64,
    is_last_time: bool,
}

rampart_types::opaque_debug!(Bucket);

impl Bucket {
    /// The bucket that is configured, if one is.
    ///
    /// # Errors
    /// One sentence that names the setting, without its value.
    pub(super) fn new(
        settings: &settings::Documents,
        clock: &Clock,
        metrics: &Metrics,
    ) -> Result<Option<Self>, &'static str> {
        let Some(client) = Client::new(settings)? else { return Ok(None) };
        let process = clock.uuid().map_err(|_| "there is no entropy")?;
        Ok(Some(Self {
            client,
            clock: clock.clone(),
            probe: format!("probe-{process}"),
            puts: PutPermits::new(),
            gets: Semaphore::new(GETS_MAX),
            problem: Mutex::default(),
            discarded: Mutex::default(),
            waiting: Notify::new(),
            available: metrics.documents_available.with_label_values::<&str>(&[]),
            call_duration: metrics.document_call_duration.clone(),
        }))
    }

    /// Puts a finished object of a partner. `stored` is dropped, which discards the object, when that fails or
    /// nobody waits for it any more.
    pub(super) async fn put(
        self: &Arc<Self>,
        partner: ClientId,
        object: ObjectWriter,
        header: Vec<u8>,
        stored: StoredObject,
    ) -> Result<StoredObject> {
        let length = object.length()?;
        let permit = match self.admit_put(partner, length).await {
            Ok(permit) => permit,
            Err(error) => {
                // There is nothing to discard.
                stored.retain();
                return Err(error);
            }
        };
        let (bucket, runtime) = (Arc::clone(self), Handle::current());
        // On a blocking thread: it reads a file, and signing hashes all of it.
        let put = move || {
            let _permit = permit;
            let sealed = Bytes::from(object.sealed(&header)?);
            drop(object);
            let name = stored.id().to_string();
            let call = bucket.client.put(&name, sealed);
            runtime.block_on(bucket.call("put", length, call)).map(|()| stored)
        };
        spawn_blocking(put).await.map_err(failed)?
    }

    /// An object.
    pub(super) async fn get(&self, id: Uuid) -> Result<SealedObject> {
        let _permit = self.admit_get().await?;
        let object = self.read(id, SEALED_BYTES_MAX, None).await?;
        let object = object.ok_or_else(|| Error::invariant("read a document: it is lost"))?;
        SealedObject::new(id, object.len(), Cursor::new(object))
    }

    /// The header of an object; `None` if there is no such object.
    pub(super) async fn header(&self, id: Uuid) -> Result<Option<Vec<u8>>> {
        self.check_usable()?;
        let header = self.read(id, HEADER_BYTES, Some(0..HEADER_BYTES as u64)).await?;
        Ok(header.map(Vec::from))
    }

    async fn read(
        &self,
        id: Uuid,
        most: usize,
        range: Option<Range<u64>>,
    ) -> Result<Option<Bytes>> {
        let name = id.to_string();
        self.call("get", most, self.client.get(&name, range)).await
    }

    /// Removes an object if it exists.
    pub(super) async fn remove(&self, id: Uuid) -> Result<()> {
        self.check_usable()?;
        let name = id.to_string();
        self.call("delete", 0, self.client.delete(&name)).await
    }

    /// Has an object deleted in the background.
    pub(super) fn discard(&self, id: Uuid) {
        let mut discarded = self.lock();
        if discarded.len() < DISCARDED_MAX {
            let due_ns = self.clock.monotonic_ns();
            // Before those that are deleted for the second time.
            discarded.push_front(Discarded { id, due_ns, is_last_time: false });
            self.waiting.notify_one();
        } else {
            tracing::warn!(%id, "a document without a row stays: too many wait to be deleted");
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Discarded>> {
        self.discarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason the bucket cannot be used, if it cannot.
    pub(super) fn problem(&self) -> Option<&'static str> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).map(Failure::reason)
    }

    fn set_problem(&self, problem: Option<Failure>) {
        let known = &mut *self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        self.available.set(i64::from(problem.is_none()));
        match problem {
            Some(failure) if *known != problem => {
                tracing::warn!(reason = failure.reason(), "the bucket of documents cannot be used");
            }
            None if known.is_some() => tracing::info!("the bucket of documents can be used again"),
            _ => {}
        }
        *known = problem;
    }

    /// Permits to put an object of this many bytes.
    async fn admit_put(&self, partner: ClientId, bytes: usize) -> Result<PutPermit> {
        self.check_usable()?;
        let mib = u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
        self.puts.acquire(partner, mib.clamp(PUT_MIB_MIN, PUTS_PER_PARTNER_MIB)).await
    }

    /// A permit to get an object.
    async fn admit_get(&self) -> Result<SemaphorePermit<'_>> {
        self.check_usable()?;
        match timeout(PERMIT_TIMEOUT, self.gets.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::unavailable(TOO_MANY)),
        }
    }

    fn check_usable(&self) -> Result<()> {
        match self.problem() {
            Some(_) => Err(Error::unavailable(OPERATION)),
            None => Ok(()),
        }
    }

    /// Runs a call that may transfer this many bytes.
    async fn call<T>(
        &self,
        operation: &'static str,
        bytes: usize,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T> {
        let called = self.run_call(operation, bytes, call).await;
        called.map_err(|failure| {
            self.set_problem(Some(failure));
            self.waiting.notify_one();
            Error::unavailable(OPERATION)
        })
    }

    async fn run_call<T>(
        &self,
        operation: &'static str,
        bytes: usize,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let began_ns = self.clock.monotonic_ns();
        let called = timeout(time_for(bytes), call).await.unwrap_or(Err(Failure::Slow));
        let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(began_ns));
        let outcome = called.as_ref().err().map_or("ok", |failure| failure.label());
        let labels = [operation, outcome];
        self.call_duration.with_label_values(&labels).observe(took.as_secs_f64());
        called
    }

    /// Finds out whether the bucket can be used.
    pub(super) async fn check(&self) {
        let probed = self.run_call("probe", 0, self.probe()).await;
        self.set_problem(probed.err());
    }

    /// Uses every right that is needed, on an object of this process's own.
    async fn probe(&self) -> Result<(), Failure> {
        self.client.put(&self.probe, Bytes::from_static(PROBE)).await?;
        if self.client.get(&self.probe, None).await?.as_deref() != Some(PROBE) {
            return Err(Failure::Wrong);
        }
        self.client.delete(&self.probe).await?;
        // Without the right to list, a store does not tell that an object is not there.
        match self.client.get(&self.probe, None).await? {
            None => Ok(()),
            Some(_) => Err(Failure::Wrong),
        }
    }

    /// Probes the bucket, and deletes what was discarded, until `stop` is true.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) {
        let work = async {
            let mut probed_ns = None;
            loop {
                let pause = if self.problem().is_some() { RETRY_PAUSE } else { PROBE_PAUSE };
                let now_ns = self.clock.monotonic_ns();
                if probed_ns.is_none_or(|at| now_ns >= later(at, pause)) {
                    self.check().await;
                    probed_ns = Some(self.clock.monotonic_ns());
                }
                self.delete_discarded().await;
                // Either is a reason to look.
                let _ = timeout(RETRY_PAUSE, self.waiting.notified()).await;
            }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        // Nobody does it after this process; what stays is sealed.
        let _ = timeout(RETRY_PAUSE, self.delete_discarded()).await;
    }

    /// Deletes what is due, as long as the bucket can be used.
    async fn delete_discarded(&self) {
        while self.problem().is_none() {
            let Some(due) = self.next_due() else { return };
            let name = due.id.to_string();
            let deleted = self.call("delete", 0, self.client.delete(&name)).await;
            let now_ns = self.clock.monotonic_ns();
            match deleted {
                Err(_) => self.lock().push_front(due),
                Ok(()) if due.is_last_time => {}
                Ok(()) => self.lock().push_back(Discarded {
                    due_ns: later(now_ns, DELETE_AGAIN),
                    is_last_time: true,
                    ..due
                }),
            }
        }
    }

    /// Takes the next object that is due.
    fn next_due(&self) -> Option<Discarded> {
        let now_ns = self.clock.monotonic_ns();
        self.lock().pop_front_if(|next| next.due_ns <= now_ns)
    }
}

fn later(at_ns: u64, pause: Duration) -> u64 {
    at_ns.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
