//! Passwords: Argon2id (RFC 9106) with 19456 KiB, two passes and one lane, stored as PHC strings.
//!
//! One hash takes some 15 ms of a core, so sending passwords is the cheapest way to overload the
//! service. Hashing has its own threads, memory and bounded queue: other requests never wait for it,
//! and excess jobs are refused, those of one partner, or of none, before they fill the queue. On tokio's
//! blocking threads, the p99 of readers beside logins is five times as high (row e of `make bench`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::platform::clock::Clock;
use crate::platform::crypto::{Secret, constant_time_eq};
use crate::platform::db::tenant;
use crate::platform::error::{Error, Result};
use crate::platform::keyed_semaphore::KeyedSemaphore;
use rampart_types::ClientId;

/// Memory of one hash in KiB, which is also its number of blocks.
const MEMORY_KIB: u32 = 19_456;
/// Passes over the memory.
const PASSES: u32 = 2;
/// Lanes (RFC 9106), computed sequentially.
const LANES: u32 = 1;
/// Bytes of a new hash.
const OUTPUT_BYTES: usize = 32;
/// Bytes of a new salt.
const SALT_BYTES: usize = 16;
/// Most queued jobs; about half a second on two cores.
const QUEUE_MAX: usize = 64;
/// Most jobs of one partner, or of requests that name none, queued and running.
const PARTNER_MAX: usize = QUEUE_MAX - QUEUE_MAX / 4;
/// Scheduling priority of the hashing threads below the serving ones, as `nice` counts.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce(&mut Hasher) + Send>;

/// Hashes and verifies passwords on one thread per core. The threads end when it is dropped.
#[derive(Debug)]
pub struct Passwords {
    clock: Clock,
    queue: SyncSender<Job>,
    partners: KeyedSemaphore<ClientId>,
    waiting: Arc<AtomicUsize>,
}

impl Passwords {
    /// Starts the threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(clock: Clock) -> Result<Self> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(clock, threads)
    }

    fn with_threads(clock: Clock, threads: usize) -> Result<Self> {
        let (queue, jobs) = sync_channel(QUEUE_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new()
                .name("passwords".to_owned())
                .spawn(move || run(&jobs))
                .map_err(|e| Error::internal("start a thread for passwords", e))?;
        }
        Ok(Self {
            clock,
            queue,
            partners: KeyedSemaphore::new(PARTNER_MAX),
            waiting: Arc::default(),
        })
    }

    /// Jobs that wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Hashes a password with a new salt, as a PHC string.
    ///
    /// # Errors
    /// 503 when the queue, or the partner's part of it, is full.
    pub async fn hash(&self, password: Secret) -> Result<String> {
        let salt: [u8; SALT_BYTES] = self.clock.random_bytes()?;
        self.compute(move |hasher| hasher.hash(&password, &salt)).await
    }

    /// Verifies a password against the PHC string `stored`. Without one (unknown name) the result is
    /// false, after the same time.
    ///
    /// # Errors
    /// 503 as [`Passwords::hash`]; 500 when `stored` is not a PHC string of Argon2 within the
    /// configured memory.
    pub async fn verify(&self, password: Secret, stored: Option<String>) -> Result<bool> {
        self.compute(move |hasher| match stored {
            Some(stored) => hasher.verify(&password, &stored),
            None => hasher.hash(&password, &[0; SALT_BYTES]).map(|_| false),
        })
        .await
    }

    async fn compute<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Hasher) -> Result<T> + Send + 'static,
    {
        // Requests that name no partner have one part together with those of an unknown one. What is
        // no partner's request, such as an operator's call, has no such bound.
        let partner =
            tenant::is_request().then(|| tenant::current().unwrap_or_else(|| Uuid::nil().into()));
        let permit = match partner {
            Some(partner) => Some(self.partners.try_acquire(partner).ok_or_else(|| {
                Error::share_used_up("hash a password: too many of this partner wait")
            })?),
            None => None,
        };
        let (reply_sender, reply) = oneshot::channel();
        let waiting = Waiting::begin(&self.waiting);
        let job: Job = Box::new(move |hasher| {
            let _permit = permit;
            drop(waiting);
            // Skipped when the caller has disconnected.
            if !reply_sender.is_closed() {
                let _ = reply_sender.send(work(hasher));
            }
        });
        self.queue
            .try_send(job)
            .map_err(|_| Error::unavailable("hash a password: the queue is full"))?;
        reply.await.map_err(|e| Error::internal("hash a password", e))?
    }
}

/// A job that waits.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn begin(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(waiting))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs jobs until the queue is closed.
fn run(jobs: &Mutex<Receiver<Job>>) {
    // On Linux this applies to the calling thread alone. If it fails, the default priority stays.
    let _ = rustix::process::nice(NICENESS);
    let mut hasher = Hasher { blocks: Vec::new() };
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(&mut hasher),
            Err(_) => return,
        }
    }
}

/// The Argon2 memory of one thread, allocated at its first hash and reused.
struct Hasher {
    blocks: Vec<Block>,
}

impl Hasher {
    fn hash(&mut self, password: &Secret, salt: &[u8; SALT_BYTES]) -> Result<String> {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(OUTPUT_BYTES))
            .map_err(|e| Error::internal("read the parameters of Argon2", e))?;
        let salt = Salt::new(salt).map_err(|e| Error::internal("use a salt", e))?;
        let encoded = ParamsString::try_from(&params)
            .map_err(|e| Error::internal("write the parameters of Argon2", e))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let output = self.compute(&argon2, password, &salt)?;
        let stored = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: encoded,
            salt: Some(salt),
            hash: Some(Output::new(&output).map_err(|e| Error::internal("keep a hash", e))?),
        };
        Ok(stored.to_string())
    }

    fn verify(&mut self, password: &Secret, stored: &str) -> Result<bool> {
        let stored =
            PasswordHash::new(stored).map_err(|e| Error::internal("read a password hash", e))?;
        let unsupported =
            || Error::invariant("read a password hash: it is not Argon2id as we write it");
        let (Some(salt), Some(hash), Some(version)) = (stored.salt, stored.hash, stored.version)
        else {
            return Err(unsupported());
        };
        if stored.algorithm != Algorithm::Argon2id.ident() || hash.len() != OUTPUT_BYTES {
            return Err(unsupported());
        }
        let version = Version::try_from(version).map_err(|_| unsupported())?;
        let params = Params::try_from(&stored).map_err(|_| unsupported())?;
        let argon2 = Argon2::new(Algorithm::Argon2id, version, params);
        let output = self.compute(&argon2, password, &salt)?;
        Ok(constant_time_eq(&output, hash.as_bytes()))
    }

    fn compute(
        &mut self,
        argon2: &Argon2<'_>,
        password: &Secret,
        salt: &[u8],
    ) -> Result<[u8; OUTPUT_BYTES]> {
        self.blocks.resize(MEMORY_KIB as usize, Block::new());
        let mut output = [0; OUTPUT_BYTES];
        argon2
            .hash_password_into_with_memory(
                password.expose().as_bytes(),
                salt,
                &mut output,
                &mut self.blocks,
            )
            .map_err(|e| Error::internal("hash a password", e))?;
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::{BoxFuture, join_all};

    use super::*;

    fn passwords() -> Passwords {
        Passwords::with_threads(Clock::system(), 1).unwrap()
    }

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[tokio::test]
    async fn a_hash_matches_its_own_password_only() {
        let passwords = passwords();
        let stored = passwords.hash(secret("correct horse")).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        for (attempt, expected) in [
            ("correct horse", true),
            ("correct hors", false),
            ("Correct horse", false),
            ("", false),
        ] {
            let matches = passwords.verify(secret(attempt), Some(stored.clone())).await.unwrap();
            assert_eq!(matches, expected, "{attempt:?}");
        }
        assert_ne!(passwords.hash(secret("correct horse")).await.unwrap(), stored);
        assert!(!passwords.verify(secret("correct horse"), None).await.unwrap());
    }

    #[tokio::test]
    async fn an_unknown_name_takes_a_whole_hash() {
        let passwords = passwords();
        assert!(!passwords.verify(secret("correct horse"), None).await.unwrap());
        let is_filled = |block: &&Block| {
            let words: &[u64] = block.as_ref();
            words.iter().any(|word| *word != 0)
        };
        let filled =
            passwords.compute(move |hasher| Ok(hasher.blocks.iter().filter(is_filled).count()));
        assert_eq!(filled.await.unwrap(), MEMORY_KIB as usize);
    }

    #[tokio::test]
    async fn hashes_of_another_implementation_are_verified() {
        // The test vector of RFC 9106's parameters as written by libargon2: password "password",
        // salt "somesalt", t = 2, m = 256 KiB, p = 1.
        let stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ\
                      $nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let verify = |text: &'static str| {
            let (passwords, stored) = (passwords(), stored.to_owned());
            async move { passwords.verify(secret(text), Some(stored)).await.unwrap() }
        };
        assert!(verify("password").await);
        assert!(!verify("passwort").await);
    }

    #[tokio::test]
    async fn an_unsupported_hash_is_an_internal_error() {
        let passwords = passwords();
        for stored in [
            "",
            "secret",
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
            "$argon2d$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$2b$12$WvvTPHKwdBJ3uk0Z37EMR.hLA2W6N9AEBhEgrAOljy2Ae5MtaSIUi",
        ] {
            let result = passwords.verify(secret("x"), Some(stored.to_owned())).await;
            assert!(matches!(result, Err(Error::Failed(_))), "{stored}");
        }
    }

    #[tokio::test]
    async fn a_job_beyond_the_queue_is_refused() {
        let passwords = passwords();
        let (started, has_started) = sync_channel(1);
        let (go, gate) = sync_channel::<()>(1);
        let busy = passwords.compute(move |_| {
            started.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        });
        let mut waiting: Vec<BoxFuture<'_, Result<()>>> = vec![busy.boxed()];
        assert!(futures::poll!(&mut waiting[0]).is_pending());
        has_started.recv().unwrap();
        for _ in 0..QUEUE_MAX {
            let mut one = passwords.compute(|_| Ok(())).boxed();
            assert!(futures::poll!(&mut one).is_pending());
            waiting.push(one);
        }
        let refused = passwords.compute(|_| Ok(())).await.unwrap_err();
        assert!(matches!(&refused, Error::Failed(failure) if failure.unavailable));
        go.send(()).unwrap();
        assert!(join_all(waiting).await.into_iter().all(|r| r.is_ok()));
    }

    #[tokio::test]
    async fn a_partner_leaves_part_of_the_queue_to_the_others() {
        leaves_part_of_the_queue(&[Some(1)]).await;
    }

    #[tokio::test]
    async fn requests_of_no_known_partner_leave_part_of_the_queue_to_the_others() {
        leaves_part_of_the_queue(&[None, Some(0)]).await;
    }

    /// Fills the part of the queue that requests of these partners have together, in turn.
    async fn leaves_part_of_the_queue(partners: &[Option<u128>]) {
        let passwords = passwords();
        let (go, gate) = sync_channel::<()>(1);
        let busy = passwords.compute(move |_| {
            gate.recv().unwrap();
            Ok(())
        });
        let mut waiting: Vec<BoxFuture<'_, Result<()>>> = vec![busy.boxed()];
        assert!(futures::poll!(&mut waiting[0]).is_pending());
        let of = |number: Option<u128>| {
            let partner = number.map(|number| ClientId::from(Uuid::from_u128(number)));
            tenant::run(partner, passwords.compute(|_| Ok(()))).boxed()
        };
        let part = partners.iter().copied().cycle().take(PARTNER_MAX);
        for number in part.chain([Some(2), Some(3)]) {
            let mut one = of(number);
            assert!(futures::poll!(&mut one).is_pending(), "a job of partner {number:?}");
            waiting.push(one);
        }
        for number in partners {
            let refused = of(*number).await.unwrap_err();
            assert!(matches!(&refused, Error::Failed(failure) if failure.unavailable));
        }
        go.send(()).unwrap();
        assert!(join_all(waiting).await.into_iter().all(|r| r.is_ok()));
        assert!(of(partners[0]).await.is_ok(), "what is done leaves its place");
    }
}
