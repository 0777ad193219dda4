//! The server that edges share their rates through: Redis 6.2 or later, or Valkey.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, ServerErrorKind, cmd};
use tokio::time::timeout;
use uuid::Uuid;

use crate::platform::crypto::Secret;

/// Time for a connection, from the name lookup to the script.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for the answer to a batch. No request waits for it.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_millis(100);
/// Bytes of a bucket's digest that name it.
pub(super) const DIGEST_BYTES: usize = 16;
/// Time after which an edge that has not announced itself counts as gone.
pub(super) const GONE: Duration = Duration::from_secs(5);
/// The edges that share their rates.
const EDGES: &str = "rampart:edges";
/// Edges that a new connection announces, to try whether the server takes it.
const PROBED_EDGES: &str = "rampart:edges:probe";
/// The beginning of every bucket's name.
const PREFIX: &str = "rampart:rate:";
/// The bucket with which a new connection tries whether the server takes anything at all.
const PROBE: Portion = Portion { digest: [0; DIGEST_BYTES], taken_us: 1, least_us: 0, most_us: 1 };

/// The news of a bucket for the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portion {
    /// Names the bucket.
    pub(super) digest: [u8; DIGEST_BYTES],
    /// Time of the quota that requests took since the last portion.
    pub(super) taken_us: u64,
    /// Least time that the bucket is known to want until it is full.
    pub(super) least_us: u64,
    /// Longest time that it may want before this portion.
    pub(super) most_us: u64,
}

/// The reason rates are not shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Away,
    Slow,
    Full,
    Refused,
    Wrong,
}

impl Failure {
    /// Label of metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Slow => "slow",
            Self::Full => "full",
            Self::Refused => "refused",
            Self::Wrong => "wrong",
        }
    }

    /// The end of a sentence about `ratelimit.redis_url`. Nothing that the server says is in it.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Away => "the server cannot be reached",
            Self::Slow => "the server does not answer in time",
            Self::Full => "the server's memory is full",
            Self::Refused => "the server refuses the user, the password or the script",
            Self::Wrong => "the server gives no usable answer",
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let refused = [Some("NOAUTH"), Some("WRONGPASS"), Some("NOPERM")];
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
                Self::Refused
            }
            _ if refused.contains(&error.code()) => Self::Refused,
            _ if error.code() == Some("OOM") => Self::Full,
            _ if error.is_timeout() => Self::Slow,
            ErrorKind::Io => Self::Away,
            _ => Self::Wrong,
        }
    }
}

/// The server's URL, which may hold a password: neither it nor what the client says of it is shown.
pub(super) struct Server {
    client: Client,
    /// Names this edge there.
    edge: Uuid,
}

impl Server {
    /// The server of a URL; `None` when it is none.
    pub(super) fn parse(url: &Secret, edge: Uuid) -> Option<Self> {
        // The client takes the process's TLS provider; a second installation changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        Client::open(url.expose()).ok().map(|client| Self { client, edge })
    }

    /// A connection that has taken a portion.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(REPLY_TIMEOUT));
        let connecting = async {
            let mut link =
                self.client.get_multiplexed_async_connection_with_config(&config).await?;
            let load = |script: &str| cmd("SCRIPT").arg("LOAD").arg(script).to_owned();
            let take = load(include_str!("take.lua")).query_async(&mut link).await?;
            let announce = load(include_str!("announce.lua")).query_async(&mut link).await?;
            let mut connection = Connection { link, take, announce, edge: self.edge };
            connection.exchange(&[PROBE]).await?;
            connection.announce_among(PROBED_EDGES).await?;
            Ok(connection)
        };
        timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or(Err(Failure::Slow))
    }
}

/// A connection whose server knows the scripts.
pub(super) struct Connection {
    link: MultiplexedConnection,
    /// The digest of `take.lua`, as the server names it.
    take: String,
    /// That of `announce.lua`.
    announce: String,
    edge: Uuid,
}

impl Connection {
    /// Tells that this edge lives; how many do, this one among them.
    pub(super) async fn announce(&mut self) -> Result<u32, Failure> {
        self.announce_among(EDGES).await
    }

    async fn announce_among(&mut self, edges: &str) -> Result<u32, Failure> {
        let mut command = cmd("EVALSHA");
        command.arg(&self.announce).arg(1).arg(edges).arg(self.edge.as_bytes());
        command.arg(u64::try_from(GONE.as_millis()).unwrap_or(u64::MAX));
        Ok(command.query_async::<u32>(&mut self.link).await?.max(1))
    }

    /// Sends portions of different buckets; the microseconds that each wants until it is full.
    pub(super) async fn exchange(&mut self, portions: &[Portion]) -> Result<Vec<u64>, Failure> {
        let mut command = cmd("EVALSHA");
        command.arg(&self.take).arg(portions.len());
        let mut name = [0; PREFIX.len() + 2 * DIGEST_BYTES];
        name[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        for portion in portions {
            // It fits: its length is a constant.
            let _ = hex::encode_to_slice(portion.digest, &mut name[PREFIX.len()..]);
            command.arg(&name[..]);
        }
        for portion in portions {
            command.arg(portion.taken_us).arg(portion.least_us).arg(portion.most_us);
        }
        let backlogs: Vec<u64> = command.query_async(&mut self.link).await?;
        (backlogs.len() == portions.len()).then_some(backlogs).ok_or(Failure::Wrong)
    }
}
