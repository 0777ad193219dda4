//! A client of the connectors' API, and what every connector's program begins with.
//!
//! [`Client::lease`] gets commands, [`Client::checkpoint`] stores what must not be forgotten,
//! [`Client::report`] ends a command and [`Client::event`] tells a fact. Each call is repeated until
//! an edge has answered it, so that only an answer counts: a connector that is killed at any instant
//! and started again goes on from its last checkpoint.

mod client;
mod command;
pub mod http;
pub mod listener;
pub mod pace;
pub mod program;
mod secret;

pub use self::client::{Client, ClientError, EdgeSettings, Held};
pub use self::command::{Command, LeaseRequest, Outcome};
pub use self::secret::{Secret, SecretError, SecretSource};
