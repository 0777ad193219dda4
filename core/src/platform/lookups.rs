//! Lookups of names by the system's resolver: each has a thread, however long the resolver takes, so
//! there are few at once.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use tokio::sync::Semaphore;

/// Most lookups at a time, in threads of the 512 that the runtime has for all that blocks: documents
/// and policies keep theirs when the resolver hangs.
const LOOKUPS_MAX: usize = 128;

/// Permits for lookups of one purpose.
#[derive(Clone, Debug)]
pub struct Lookups(Arc<Semaphore>);

impl Default for Lookups {
    fn default() -> Self {
        Self::new(LOOKUPS_MAX)
    }
}

impl Lookups {
    fn new(lookups_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(lookups_max)))
    }

    /// The addresses of a host, a name or an address, with this port.
    ///
    /// # Errors
    /// The resolver's.
    pub async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let host = host.to_owned();
        self.run(move || Ok((host.as_str(), port).to_socket_addrs()?.collect())).await
    }

    /// Runs `look_up` once there is a permit. It goes on when nobody waits for it any more, and keeps its
    /// permit until it ends.
    async fn run<T: Send + 'static>(
        &self,
        look_up: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
        let run = move || {
            let _permit = permit;
            look_up()
        };
        tokio::task::spawn_blocking(run).await?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_lookup_that_nobody_waits_for_keeps_its_permit_until_it_ends() {
        let lookups = Lookups::new(1);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let mut given_up = Box::pin(lookups.run(move || Ok(ended.recv().is_ok())));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        let mut waiting = Box::pin(lookups.addresses("localhost", 7));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(lookups.0.available_permits(), 0);
        // An address needs no resolver.
        let known = lookups.addresses("::1", 7).now_or_never().unwrap().unwrap();
        assert_eq!(known, ["[::1]:7".parse::<SocketAddr>().unwrap()]);
        end.send(()).unwrap();
        let found = waiting.await.unwrap();
        assert!(found.iter().all(|one| one.ip().is_loopback() && one.port() == 7), "{found:?}");
    }
}
