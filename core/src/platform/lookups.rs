//! Lookups of names by the system's resolver: each has a thread, however long the resolver takes, so
//! there are few at once, and fewer of one partner.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use rampart_types::ClientId;
use tokio::sync::Semaphore;

use super::keyed_shares::KeyedShares;

/// Most lookups at a time, in threads of the 512 that the runtime has for all that blocks: documents
/// and policies keep theirs when the resolver hangs.
const LOOKUPS_MAX: usize = 192;
/// Most of them for one partner: the name servers of its hosts are its own, and may be dead.
const LOOKUPS_PER_PARTNER_MAX: u32 = 24;

/// Permits for lookups of one purpose.
#[derive(Clone, Debug)]
pub struct Lookups {
    all: Arc<Semaphore>,
    partners: Arc<KeyedShares<ClientId>>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self::new(LOOKUPS_MAX, LOOKUPS_PER_PARTNER_MAX)
    }
}

impl Lookups {
    /// At most `lookups_max` at a time, of which one partner has at most `per_partner_max`.
    pub(crate) fn new(lookups_max: usize, per_partner_max: u32) -> Self {
        let all = Arc::new(Semaphore::new(lookups_max));
        Self { all, partners: Arc::new(KeyedShares::new(per_partner_max)) }
    }

    /// The addresses of a host, a name or an address, with this port. A name that a partner has given is
    /// looked up within its share.
    ///
    /// # Errors
    /// The resolver's.
    pub async fn addresses(
        &self,
        partner: Option<ClientId>,
        host: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let host = host.to_owned();
        self.run(partner, move || Ok((host.as_str(), port).to_socket_addrs()?.collect())).await
    }

    /// Runs `look_up` once there is a permit. It goes on when nobody waits for it any more, and keeps its
    /// permit until it ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        partner: Option<ClientId>,
        look_up: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        // Before the permit: a partner that waits for its share holds no permit meanwhile.
        let share = match partner {
            Some(partner) => {
                Some(self.partners.take(partner, 1).await.map_err(io::Error::other)?.0)
            }
            None => None,
        };
        let permit = Arc::clone(&self.all).acquire_owned().await.map_err(io::Error::other)?;
        let run = move || {
            let _held = (permit, share);
            look_up()
        };
        tokio::task::spawn_blocking(run).await?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_lookup_that_nobody_waits_for_keeps_its_permit_until_it_ends() {
        let lookups = Lookups::new(1, 1);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let mut given_up = Box::pin(lookups.run(None, move || Ok(ended.recv().is_ok())));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        let mut waiting = Box::pin(lookups.addresses(None, "localhost", 7));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(lookups.all.available_permits(), 0);
        // An address needs no resolver.
        let known = lookups.addresses(None, "::1", 7).now_or_never().unwrap().unwrap();
        assert_eq!(known, ["[::1]:7".parse::<SocketAddr>().unwrap()]);
        end.send(()).unwrap();
        let found = waiting.await.unwrap();
        assert!(found.iter().all(|one| one.ip().is_loopback() && one.port() == 7), "{found:?}");
    }

    #[tokio::test]
    async fn a_partner_leaves_lookups_to_the_others() {
        let lookups = Lookups::new(2, 1);
        let [one, other] = [1, 2].map(|number| Some(Uuid::from_u128(number).into()));
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let mut hung = Box::pin(lookups.run(one, move || Ok(ended.recv().is_ok())));
        assert!(hung.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(lookups.addresses(one, "localhost", 7));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(lookups.all.available_permits(), 1, "one that waits for its share holds none");
        assert!(!lookups.addresses(other, "localhost", 7).await.unwrap().is_empty());
        assert!(waiting.as_mut().now_or_never().is_none());
        end.send(()).unwrap();
        assert!(hung.await.unwrap());
        assert!(!waiting.await.unwrap().is_empty());
    }
}
