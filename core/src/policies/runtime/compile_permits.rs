//! Permits to compile components for calls: few at once, and large ones never in the way of small
//! ones.

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Components compiled at once, each on one thread.
const COMPILES_MAX: usize = 2;
/// Large ones among them.
const LARGE_COMPILES_MAX: usize = 1;
/// Size up to which a component is compiled in milliseconds. One with an interpreter within, such as
/// those in JavaScript, is larger and takes seconds.
const SMALL_BYTES_MAX: usize = 256 * 1024;

/// The permits of this edge.
#[derive(Debug)]
pub(super) struct CompilePermits {
    all: Semaphore,
    large: Semaphore,
}

/// A permit, given back when it is dropped.
#[derive(Debug)]
pub(super) struct CompilePermit<'a> {
    _one: SemaphorePermit<'a>,
    _large: Option<SemaphorePermit<'a>>,
}

impl CompilePermits {
    /// All of them.
    pub(super) const fn new() -> Self {
        Self {
            all: Semaphore::const_new(COMPILES_MAX),
            large: Semaphore::const_new(LARGE_COMPILES_MAX),
        }
    }

    /// Waits for a permit to compile a component of this size.
    ///
    /// # Errors
    /// Never: the semaphores stay open.
    pub(super) async fn acquire(&self, bytes: usize) -> Result<CompilePermit<'_>, AcquireError> {
        // First the one of large components: who waits for it holds nothing that small ones need.
        let large = match bytes > SMALL_BYTES_MAX {
            true => Some(self.large.acquire().await?),
            false => None,
        };
        Ok(CompilePermit { _one: self.all.acquire().await?, _large: large })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn small_components_wait_for_no_large_one() {
        let permits = CompilePermits::new();
        let acquire = |bytes| permits.acquire(bytes).now_or_never().map(Result::unwrap);
        let large = acquire(SMALL_BYTES_MAX + 1).unwrap();
        let mut next = Box::pin(permits.acquire(SMALL_BYTES_MAX + 1));
        assert!(next.as_mut().now_or_never().is_none());
        let small = acquire(SMALL_BYTES_MAX).unwrap();
        assert!(acquire(0).is_none(), "two are compiled at once");
        drop(small);
        drop(acquire(0).unwrap());
        drop(large);
        assert!(next.now_or_never().is_some());
    }
}
