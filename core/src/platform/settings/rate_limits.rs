//! `ratelimit`: rates of addresses, of clients and of their users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::platform::crypto::Secret;
use crate::platform::rate_limit::Quota;

/// `ratelimit` (section 4 of the contract)
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Requests per address, before authentication.
    pub address: Quota,
    /// Requests per client.
    pub client: Quota,
    /// Quotes per client.
    pub quotes: Quota,
    /// Rows of a comparison of quotes (`GET /api/v2/quotes/matrix`) that count as one of
    /// `ratelimit.quotes`; one with more counts as several, at most as a full burst.
    #[schemars(range(min = 1, max = 1_000), extend("x-unit" = "rows"))]
    pub matrix_rows_per_quote: u32,
    /// `authenticate` and `refresh`, per user name and per address.
    pub credentials: Quota,
    /// Login, reset-password and exists, per e-mail address, and sign-ins of partners' staff, per
    /// e-mail address and network (/24 in IPv4, /48 in IPv6), beside 60 a minute per e-mail address.
    pub login: Quota,
    /// Login, reset-password and exists, for all addresses of a client, `ratelimit.login` if that is
    /// more; as much besides for its pages, of which one network (/24 in IPv4, /48 in IPv6) has a
    /// quarter, and as much for the page for a forgotten password.
    pub client_login: Quota,
    /// Image uploads per user.
    pub uploads: Quota,
    /// Failed logins of operators per address; above it the address is refused, but for operators
    /// whom the edge knows there.
    pub operators: Quota,
    /// URL of the Redis (6.2 or later) or Valkey through which several edges share the rates of
    /// addresses, clients, quotes and uploads: `redis://user:password@host:port/database`, or
    /// `rediss://` for TLS by the system's authorities.
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "none: each edge counts alone"))]
    pub redis_url: Option<Secret>,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            address: Quota::new(50, 1, 100),
            client: Quota::new(100, 1, 200),
            quotes: Quota::new(50, 1, 100),
            matrix_rows_per_quote: 20,
            credentials: Quota::new(10, 60, 10),
            login: Quota::new(5, 60, 5),
            client_login: Quota::new(60, 60, 60),
            uploads: Quota::new(10, 60, 10),
            operators: Quota::new(10, 60, 10),
            redis_url: None,
        }
    }
}
